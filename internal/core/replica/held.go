// Held: which updates of a value a node holds, by the incarnation that made them.

package replica

import (
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxWriters is how many incarnations may have changed one key, as each node sees it. Apart they come to more.
const MaxWriters = 4096

// maxMarks is how many a node takes from others.
const maxMarks = 2 * MaxWriters

// mark says that the first n updates of an incarnation are held.
type mark struct {
	id peer.ID
	n  uint64
}

// held has one mark for each incarnation of which something is held, in order.
type held []mark

func (h held) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(h, id, func(m mark, id peer.ID) int { return m.id.Compare(id) })
}

func (h held) of(id peer.ID) uint64 {
	if i, ok := h.find(id); ok {
		return h[i].n
	}
	return 0
}

// raise notes that the first n updates of id are held.
func (h *held) raise(id peer.ID, n uint64) {
	i, ok := h.find(id)
	switch {
	case ok:
		(*h)[i].n = max((*h)[i].n, n)
	case n > 0:
		*h = slices.Insert(*h, i, mark{id, n})
	}
}

// covers reports whether everything of o is held.
func (h held) covers(o held) bool {
	return !slices.ContainsFunc(o, func(m mark) bool { return h.of(m.id) < m.n })
}

const minMark = peer.MinIDSize + 1

// appendHeld appends how many marks there are (varint), and for each its identity and number (varint).
func appendHeld(b []byte, h held) []byte {
	b = wire.AppendUvarint(b, uint64(len(h)))
	for _, m := range h {
		b = wire.AppendUvarint(peer.AppendID(b, m.id), m.n)
	}
	return b
}

func readHeld(r *wire.Reader) (h held) {
	for range r.Count(minMark, maxMarks) {
		m := mark{peer.ReadID(r), r.Uvarint()}
		if m.n == 0 {
			r.Fail(wire.ErrBadValue)
		}
		if len(h) > 0 && !h[len(h)-1].id.Less(m.id) {
			r.Fail(wire.ErrBadOrder)
		}
		if r.Err() != nil {
			return nil
		}
		h = append(h, m)
	}
	return h
}
