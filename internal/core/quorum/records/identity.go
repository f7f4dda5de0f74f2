// Identity: what a disk knows of itself and of its store, once for all.

package records

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func (m *replica) identBytes(f *found) []byte {
	return f.append(peer.AppendID(wire.AppendString(nil, m.ident.name), m.ident.id))
}

// foundBy founds the store.
func (m *replica) foundBy(c FoundCommand) error {
	if m.found.store != 0 {
		if m.found.store == c.Store {
			return nil
		}
		return ErrFounded
	}
	if len(c.Groups) == 0 || len(c.Groups) > maxGroups {
		return fmt.Errorf("%w: %d groups, must be 1 to %d", ErrTooLarge, len(c.Groups), maxGroups)
	}
	f := found{store: cmp.Or(c.Store, m.rng.Uint64()|1)}
	for _, g := range c.Groups {
		if err := checkSet(g); err != nil {
			return err
		}
		f.groups = append(f.groups, g.Clone())
	}
	return m.write(&f)
}

// write puts what is written down of the store on the disk, once.
func (m *replica) write(f *found) error {
	if err := m.disk.Commit([]Change{{Key: []byte(identKey), Value: m.identBytes(f)}}); err != nil {
		m.stats.Failed++
		return fmt.Errorf("records: writing what the store was founded as: %w", err)
	}
	m.found = *f
	return nil
}

// wipeAtOnce is how many keys one commit of Wipe takes away.
const wipeAtOnce = 1024

// Wipe takes all that this package has on a disk away, part by part: a backup is no replica of anything.
func Wipe(disk Engine) error {
	for {
		var batch []Change
		err := disk.Each([]byte(keyPrefix), nil, func(key, _ []byte) bool {
			batch = append(batch, Change{Key: bytes.Clone(key)})
			return len(batch) < wipeAtOnce
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := disk.Commit(batch); err != nil {
			return err
		}
	}
}

// learn takes what another member says of the founding.
func (m *replica) learn(from peer.ID, x *message) {
	switch {
	case x.kind == founding && m.found.store != 0:
		m.send(from, &message{kind: founded, found: m.found})
	case x.kind == founded && m.found.store == 0 && x.found.store != 0:
		_ = m.write(&x.found) // where the disk refuses, it is asked for again
	}
}
