// Meta: a small bounded map of the application's own that travels with the state (MEM-12).

package membership

import (
	"errors"
	"fmt"
	"github.com/kith-io/kith/cluster"
)

// SetMetadataCommand sets one key of the metadata that the cluster's state carries; an empty value deletes it. The last
// writer wins: of two at once, one, everywhere the same. Errors: ErrNotMember, ErrBadMetadata, ErrMetadataFull.
type SetMetadataCommand struct {
	Key   string
	Value []byte
}

func (SetMetadataCommand) command() {}

// setMetadata writes one key into the state.
func (m *Machine) setMetadata(c SetMetadataCommand) error {
	switch {
	case m.phase != member:
		return ErrNotMember
	case c.Key == "" || len(c.Key) > cluster.MaxMetadataKey:
		return fmt.Errorf("%w: key of %d bytes, must have 1 to %d", ErrBadMetadata, len(c.Key), cluster.MaxMetadataKey)
	case len(c.Value) > cluster.MaxMetadataValue:
		return fmt.Errorf("%w: value of %d bytes, at most %d", ErrBadMetadata, len(c.Value), cluster.MaxMetadataValue)
	}
	next, err := m.st.WithMetadata(c.Key, string(c.Value), m.self)
	if next != nil {
		m.install(next, true)
	}
	return err
}

// ErrBadMetadata is returned by a SetMetadataCommand for a key or value out of bounds.
var ErrBadMetadata = errors.New("membership: bad metadata")
