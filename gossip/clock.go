// Clock: the vector clock that versions the gossiped state (GOS-1).

package gossip

import (
	"slices"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Order is how one version stands to another.
type Order uint8

// The four outcomes of a comparison.
const (
	Same       Order = 0
	Before     Order = 1 // the receiver is older
	After      Order = 2 // the receiver is newer
	Concurrent Order = 3 // each holds a change that the other lacks
)

// String names the order.
func (o Order) String() string { return enum.Name(orderNames, o, "order") }

// MarshalText gives the name.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (o *Order) UnmarshalText(text []byte) error { return enum.Parse(o, text) }

var orderNames = []string{Same: "same", Before: "before", After: "after", Concurrent: "concurrent"}

// Entry counts the changes made by one node.
type Entry struct {
	ID peer.ID
	N  uint64 // never 0
}

// Clock is a sorted list of entries, an absent one counts as 0. It is immutable: methods return a new clock. The nil
// Clock is the empty one.
type Clock []Entry

func (c Clock) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(c, id, func(e Entry, id peer.ID) int { return e.ID.Compare(id) })
}

// Of returns how many changes of id the clock holds.
func (c Clock) Of(id peer.ID) uint64 {
	if i, ok := c.find(id); ok {
		return c[i].N
	}
	return 0
}

// Bump returns c with one more change of id.
func (c Clock) Bump(id peer.ID) Clock { return c.BumpTo(id, c.Of(id)+1) }

// BumpTo returns c with n as the count of changes of id, which must be more than it was. A node goes on from its own
// count after its entry was pruned: no number ever names two changes.
func (c Clock) BumpTo(id peer.ID, n uint64) Clock {
	i, ok := c.find(id)
	if !ok {
		out := make(Clock, 0, len(c)+1)
		return append(append(append(out, c[:i]...), Entry{id, n}), c[i:]...)
	}
	out := slices.Clone(c)
	out[i].N = n
	return out
}

// Compare walks both clocks in step and says how c stands to o.
func (c Clock) Compare(o Clock) Order {
	if len(c) == len(o) && (len(c) == 0 || &c[0] == &o[0]) {
		return Same
	}
	less, more := false, false
	i, j := 0, 0
	for (i < len(c) || j < len(o)) && !(less && more) {
		switch order := compareHeads(c, o, i, j); {
		case order < 0:
			more = true
			i++
		case order > 0:
			less = true
			j++
		default:
			less = less || c[i].N < o[j].N
			more = more || c[i].N > o[j].N
			i++
			j++
		}
	}
	switch {
	case less && more:
		return Concurrent
	case less:
		return Before
	case more:
		return After
	}
	return Same
}

// compareHeads orders the next identities of both clocks; an exhausted clock comes last. Most of the time they are
// equal, which is cheaper to ask than which comes first.
func compareHeads(c, o Clock, i, j int) int {
	switch {
	case i == len(c):
		return 1
	case j == len(o):
		return -1
	case c[i].ID == o[j].ID:
		return 0
	}
	return c[i].ID.Compare(o[j].ID)
}

// Merge returns the entry-wise maximum of both clocks; c or o itself when that is it.
func (c Clock) Merge(o Clock) Clock {
	switch c.Compare(o) {
	case Same, After:
		return c
	case Before:
		return o
	}
	out := make(Clock, 0, max(len(c), len(o)))
	i, j := 0, 0
	for i < len(c) || j < len(o) {
		switch order := compareHeads(c, o, i, j); {
		case order < 0:
			out = append(out, c[i])
			i++
		case order > 0:
			out = append(out, o[j])
			j++
		default:
			e := c[i]
			e.N = max(e.N, o[j].N)
			out = append(out, e)
			i++
			j++
		}
	}
	return out
}

// Prune returns c without the entries for which gone says true (GOS-2).
func (c Clock) Prune(gone func(peer.ID) bool) Clock {
	if !slices.ContainsFunc(c, func(e Entry) bool { return gone(e.ID) }) {
		return c
	}
	out := make(Clock, 0, len(c))
	for _, e := range c {
		if !gone(e.ID) {
			out = append(out, e)
		}
	}
	return out
}

// AppendClock appends the wire form: a count, then identity and counter of each entry.
func AppendClock(b []byte, c Clock) []byte {
	b = wire.AppendUvarint(b, uint64(len(c)))
	for _, e := range c {
		b = wire.AppendUvarint(peer.AppendID(b, e.ID), e.N)
	}
	return b
}

// MaxChanges is the most changes of one node that a clock may name: far from where the next one would wrap.
const MaxChanges = 1 << 62

// ReadClock reads what AppendClock wrote: at most limit entries, sorted, none of them zero. Errors stay in r.
func ReadClock(r *wire.Reader, limit int) Clock {
	n := r.Count(peer.MinIDSize+1, limit)
	c := make(Clock, 0, n)
	for range n {
		e := Entry{peer.ReadID(r), r.Uvarint()}
		if r.Err() == nil && (e.N == 0 || e.N > MaxChanges || e.ID.Addr.IsZero()) {
			r.Fail(wire.ErrBadValue)
		}
		if r.Err() == nil && len(c) > 0 && !c[len(c)-1].ID.Less(e.ID) {
			r.Fail(wire.ErrBadOrder)
		}
		if r.Err() != nil {
			return nil
		}
		c = append(c, e)
	}
	return c
}
