// The course of moves: how far a move is by what the nodes have noted, and the count of faults that came into moves.
// Pure.

package chaos

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/kith-io/kith"
)

// MoveCell counts the faults that came in one phase of a move upon one participant.
type MoveCell struct {
	Phase Phase `json:"phase"`
	Fault Kind  `json:"fault"`
	Long  bool  `json:"long"` // long enough for its victim to be given up
	Who   Role  `json:"who"`
	Came  int   `json:"came"`
	// What became of the moves: done under the coordinator that began them, given up, come back to the owner since nobody
	// took what was left, or nothing of that: another coordinator term, or the end of a participant, has decided where the
	// shard lives.
	Done     int `json:"done"`
	Aborted  int `json:"aborted"`
	Returned int `json:"returned"`
	Left     int `json:"handed_over"` // moves that handed something over
}

// cell returns the cell of a fault, empty.
func (f *Fault) cell() MoveCell {
	return MoveCell{Phase: f.Moving.Phase, Fault: f.Moving.Blow, Long: f.For >= longPause, Who: f.First}
}

// same reports whether two cells count the same faults.
func (c *MoveCell) same(o *MoveCell) bool {
	return c.Phase == o.Phase && c.Fault == o.Fault && c.Long == o.Long && c.Who == o.Who
}

// moveNote is what one node has noted of a move: an event, or that an instance of the shard got its stop call.
type moveNote struct {
	kind     kith.ShardEventKind
	typ      uint8
	shard    uint32
	number   uint64 // term and number of the move; of nothing for a release and a stop call
	from, to uint64 // addresses, as addrWord makes them
	at       time.Duration
}

// stopCall is the kind of a note that no event stands behind.
const stopCall kith.ShardEventKind = 255

func (n *moveNote) record() record {
	return record{1 | uint64(n.kind)<<8 | uint64(n.typ)<<16 | uint64(n.shard)<<32, uint64(n.at), n.number, n.from, n.to}
}

func moveNoteOf(r record) moveNote {
	return moveNote{kind: kith.ShardEventKind(r[0] >> 8), typ: uint8(r[0] >> 16), shard: uint32(r[0] >> 32),
		at: time.Duration(r[1]), number: r[2], from: r[3], to: r[4]}
}

// addrWord makes a number of an IPv4 address and its port, zero of any other.
func addrWord(addr string) uint64 {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().Is4() {
		return 0
	}
	b := at.Addr().As4()
	return uint64(binary.BigEndian.Uint32(b[:]))<<16 | uint64(at.Port())
}

// moveTracker is how far one move is.
type moveTracker struct {
	number                                   uint64
	from, to                                 uint64
	began, marked, stopped, handed, released time.Duration // zero: not yet
	done, given, returned                    time.Duration // likewise
}

// follow returns how far the first move of a shard is that began at or after a moment, by the notes of all nodes in any
// order. Of a move that has not begun nothing is known.
func follow(notes []moveNote, typ uint8, shard uint32, since time.Duration) (c moveTracker) {
	for i := range notes {
		n := &notes[i]
		if n.kind == kith.MoveBegan && n.typ == typ && n.shard == shard && n.at >= since && (c.began == 0 || n.at < c.began) {
			c = moveTracker{number: n.number, from: n.from, to: n.to, began: n.at}
		}
	}
	if c.began == 0 {
		return c
	}
	first := func(into *time.Duration, at time.Duration) {
		if *into == 0 || at < *into {
			*into = at
		}
	}
	for i := range notes {
		n := &notes[i]
		if n.typ != typ || n.shard != shard || n.at < c.began || n.number != 0 && n.number != c.number {
			continue
		}
		switch n.kind {
		case kith.MoveMarked:
			first(&c.marked, n.at)
		case stopCall:
			first(&c.stopped, n.at)
		case kith.MoveHandedOver:
			first(&c.handed, n.at)
		case kith.ShardReleased:
			first(&c.released, n.at)
		case kith.MoveDone:
			first(&c.done, n.at)
		case kith.MoveAborted:
			first(&c.given, n.at)
		case kith.MoveReturned:
			first(&c.returned, n.at)
		}
	}
	return c
}

// phase returns the one that a move is in.
func (c *moveTracker) phase() Phase {
	switch {
	case c.began == 0:
		return noPhase
	case c.done > 0 || c.given > 0 || c.returned > 0:
		return overPhase
	case c.handed > 0 || c.released > 0:
		return Starting
	case c.stopped > 0:
		return HandingOver
	case c.marked > 0:
		return WorkingOff
	}
	return Marking
}

// moved is a move that a fault came into.
type moved struct {
	MoveCell
	shard uint32
	since time.Duration
	phase Phase // when the fault had come
}

// met reports whether a fault came in its phase.
func met(all []moved, f *Fault) bool {
	cell := f.cell()
	return slices.ContainsFunc(all, func(m moved) bool { return m.phase == m.Phase && m.same(&cell) })
}

// countMoves counts the faults that came in their phases, and those that did not. notes are those since a moment.
func countMoves(moves []moved, notes func(since time.Duration) []moveNote) (all []MoveCell, missed int) {
	for _, m := range moves {
		if m.phase != m.Phase {
			missed++
			continue
		}
		i := slices.IndexFunc(all, func(c MoveCell) bool { return c.same(&m.MoveCell) })
		if i < 0 {
			i, all = len(all), append(all, m.MoveCell)
		}
		c := follow(notes(m.since), 0, m.shard, m.since)
		for into, at := range map[*int]time.Duration{&all[i].Done: c.done, &all[i].Aborted: c.given,
			&all[i].Returned: c.returned, &all[i].Left: c.handed} { // counts: the order does not show
			if at > 0 {
				*into++
			}
		}
		all[i].Came++
	}
	return all, missed
}
