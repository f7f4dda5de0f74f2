// The flight record of a running node, as a file.

package operate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kith-io/kith/internal/core/flight"
)

// Flight is kith flight-record.
type Flight struct {
	Asked
	File string `arg:"" type:"path" help:"Where to write it; it must not exist."`
}

// Run asks the node for what it has recorded. It is written under another name first: half a record is none.
func (c *Flight) Run(to *Console) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	if _, err := os.Lstat(c.File); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", c.File, errors.Join(os.ErrExist, err))
	}
	a, err := c.open(ctx, "/v1/flight-record")
	if err != nil {
		return err
	}
	defer a.Body.Close()
	record := bufio.NewReader(a.Body)
	switch begin, err := record.Peek(len(flight.Magic)); {
	case len(begin) == 0 && err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return errEnded
	case err != nil && err != io.EOF:
		return fmt.Errorf("the record broke off: %w", err)
	case string(begin) != flight.Magic:
		return fmt.Errorf("%w: it is no flight record", errForeign)
	}
	part := c.File + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, record)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, c.File)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the record broke off: %w", err), os.Remove(part))
	}
	_, err = fmt.Fprintf(to.Out, "%s: %d bytes\n", c.File, n)
	return err
}
