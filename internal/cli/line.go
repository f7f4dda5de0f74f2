// The last line of a command: a word, a space, one JSON object; and the progress lines before it.

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// ErrNoLine is returned by ParseLine when the output holds no last line with that word.
var ErrNoLine = errors.New("no last line")

// Line writes the last line of a command: word, a space, v as one JSON object, a newline.
func Line(w io.Writer, word string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("last line %q: %w", word, err)
	}
	if _, err := fmt.Fprintf(w, "%s %s\n", word, b); err != nil {
		return fmt.Errorf("last line %q: %w", word, err)
	}
	return nil
}

// ParseLine reads the last line of output, which must begin with word, into v.
func ParseLine(output []byte, word string, v any) error {
	lines := strings.Split(strings.TrimRight(string(output), "\n"), "\n")
	rest, ok := strings.CutPrefix(lines[len(lines)-1], word+" ")
	if !ok {
		return fmt.Errorf("%w %q in %d bytes of output", ErrNoLine, word, len(output))
	}
	if err := json.Unmarshal([]byte(rest), v); err != nil {
		return fmt.Errorf("last line %q: %w", word, err)
	}
	return nil
}

// Fault says what is wrong with a command line, by an error of its parser: a flag without its value by the name of what
// is missing.
func Fault(err error) string {
	bad := (*kong.ParseError)(nil)
	if !errors.As(err, &bad) || bad.Context == nil {
		return err.Error()
	}
	for _, f := range bad.Context.Flags() {
		why, is := strings.CutPrefix(err.Error(), "--"+f.Name+": ")
		if is && (strings.HasPrefix(why, "missing value") || strings.Contains(why, " value but got ")) {
			return fmt.Sprintf("--%s needs a value: --%s=%s", f.Name, f.Name, f.FormatPlaceHolder())
		}
	}
	return err.Error()
}

// Hint says where to read on after an error of the parser of a program's command line.
func Hint(program string, err error) string {
	at, what := program, "the commands and their flags"
	if bad := (*kong.ParseError)(nil); errors.As(err, &bad) && bad.Context != nil && bad.Context.Selected() != nil {
		at, what = bad.Context.Selected().FullPath(), "its flags"
	}
	return fmt.Sprintf("Run %q for %s.", at+" --help", what)
}

// Progress writes progress lines, or nothing when it is off. Its zero value is off. Safe for concurrent use.
type Progress struct {
	mu sync.Mutex
	w  io.Writer
}

// NewProgress returns a Progress that writes to f when f is a terminal or always is set.
func NewProgress(f *os.File, always bool) *Progress {
	if always || IsTerminal(f) {
		return &Progress{w: Clean(f)}
	}
	return &Progress{}
}

// On reports whether lines are written.
func (p *Progress) On() bool { return p.w != nil }

// Printf writes one line; a newline is added.
func (p *Progress) Printf(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// IsTerminal reports whether f is a terminal. It takes every character device for one; the one that is none, the null
// device, takes lines unseen.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Table prints rows in columns. A cell is one line, whatever it holds.
func Table(w io.Writer, rows ...[]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = OneLine(cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// oneLine escapes what ends a line, or a cell of a table.
var oneLine = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// OneLine returns text that comes from somebody else as it may stand in a line: no part of it is taken for another
// line, or for another cell of a table. What else a terminal could obey, Clean escapes.
func OneLine(text string) string { return oneLine.Replace(text) }
