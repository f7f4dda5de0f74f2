// Seats: the list of their holders, a part of the gossiped state, and how a leader changes it.

package tenure

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxNumber is the highest number of a list: under it the seats stay as they are.
const MaxNumber = 1 << 31

// Seats is a list of the holders of the seats. It is immutable. The zero value is the list before the first one.
type Seats struct {
	Number  uint32 // of the list; 0 for the zero value alone
	Writer  peer.ID
	Holders []peer.ID // by seat; zero where it is empty. No member holds two
}

// Member is what a leader needs to know of a member to give it a seat.
type Member struct {
	ID      peer.ID
	Zone    string
	Up      bool // it may get a seat: it is Up, and of the voters' role
	Down    bool
	Leaving bool
}

// Newer reports whether s replaces o: the higher number, of one number that of the lower writer. Holders differ under
// one number and writer only if that writer is faulty; then all still agree.
func (s Seats) Newer(o Seats) bool {
	return cmp.Or(cmp.Compare(o.Number, s.Number), s.Writer.Compare(o.Writer),
		slices.CompareFunc(s.Holders, o.Holders, peer.ID.Compare)) < 0
}

// Same reports whether s and o are one list: a writer writes one under a number.
func (s Seats) Same(o Seats) bool { return s.Number == o.Number && s.Writer == o.Writer }

// Seat returns the seat that id holds, -1 for none.
func (s Seats) Seat(id peer.ID) int {
	if id.IsZero() {
		return -1
	}
	return slices.Index(s.Holders, id)
}

// Next returns the list that the leader self writes next, by its state with these members, sorted by id; ok is false
// when there is nothing to change. The caller holds that all members which are not Down have been seen with exactly
// that state, and that self leads by it.
//
// The first list fills at least a quorum of the seats at once: nobody has handled anything before. Later a seat is
// first emptied, and filled in a list after that; and a quorum stays with members that are not Down. When a quorum of
// holders is Down the electorate is founded anew, in one step, and the list stays as it is until that may be.
//
// ended says that all members which are Down or were removed have ended: nobody that is lost holds a seat or writes a
// list any more. Without it no electorate is founded, for the lost may found another.
func (s Seats) Next(self peer.ID, voters int, members []Member, ended bool) (next Seats, ok bool) {
	if len(s.Holders) != voters {
		s.Holders = make([]peer.ID, voters) // the zero value
	}
	p := planner{members: members, holders: slices.Clone(s.Holders), quorum: voters/2 + 1}
	switch {
	case s.Number >= MaxNumber:
	case s.Number == 0:
		p.fill()
		ok = ended && p.held() >= p.quorum
	case p.emptyDown():
		if ok = p.held() >= p.quorum; !ok && ended {
			p.fill()
			ok = p.held() >= p.quorum
		}
	default:
		ok = p.held() >= p.quorum && (p.fill() || p.emptyLeaver(self))
	}
	if !ok {
		return s, false
	}
	return Seats{Number: s.Number + 1, Writer: self, Holders: p.holders}, true
}

// planner is a list that is being changed.
type planner struct {
	members []Member
	holders []peer.ID
	quorum  int
}

func (p *planner) member(id peer.ID) *Member {
	i, ok := slices.BinarySearchFunc(p.members, id, func(m Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		return nil
	}
	return &p.members[i]
}

// held counts the seats that somebody holds.
func (p *planner) held() (n int) {
	for _, h := range p.holders {
		if !h.IsZero() {
			n++
		}
	}
	return n
}

// emptyDown empties the seats of those that are Down, or no members any more, and reports whether there are any.
func (p *planner) emptyDown() (found bool) {
	for i, h := range p.holders {
		if m := p.member(h); !h.IsZero() && (m == nil || m.Down) {
			p.holders[i] = peer.ID{}
			found = true
		}
	}
	return found
}

// emptyLeaver empties the seats of leavers while a quorum stays, where somebody else can get the seat. The leader keeps
// its own: it writes the list that fills it.
func (p *planner) emptyLeaver(self peer.ID) (found bool) {
	for i, h := range p.holders {
		m := p.member(h)
		if m == nil || !m.Leaving || h == self || p.held() <= p.quorum || p.best() == nil {
			continue
		}
		p.holders[i] = peer.ID{}
		found = true
	}
	return found
}

// fill gives empty seats to members without one, and reports whether it gave any.
func (p *planner) fill() (found bool) {
	for i, h := range p.holders {
		if !h.IsZero() {
			continue
		}
		m := p.best()
		if m == nil {
			break
		}
		p.holders[i] = m.ID
		found = true
	}
	return found
}

// best returns the member that gets the next seat: of the zone with the fewest seats, then the lowest; nil for none.
func (p *planner) best() (best *Member) {
	least := 0
	for i := range p.members {
		m := &p.members[i]
		if !m.Up || m.Down || m.Leaving || slices.Contains(p.holders, m.ID) {
			continue
		}
		n := 0
		for _, h := range p.holders {
			if o := p.member(h); o != nil && o.Zone == m.Zone {
				n++
			}
		}
		if best == nil || n < least {
			best, least = m, n
		}
	}
	return best
}

// AppendSeats appends the wire form of s: two bytes for the zero value.
func AppendSeats(b []byte, s Seats) []byte {
	b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(s.Number)), uint64(len(s.Holders)))
	if s.Number == 0 {
		return b
	}
	b = peer.AppendID(b, s.Writer)
	for _, h := range s.Holders {
		b = peer.AppendID(b, h)
	}
	return b
}

// ReadSeats reads what AppendSeats wrote. Errors stay in r: ErrBadValue for a list that no leader writes.
func ReadSeats(r *wire.Reader) (s Seats) {
	number := r.Uvarint()
	n := r.Count(peer.MinIDSize, MaxVoters)
	if number > MaxNumber || (number == 0) != (n == 0) || n != 0 && (n < MinVoters || n%2 == 0) {
		r.Fail(wire.ErrBadValue)
	}
	if number == 0 || r.Err() != nil {
		return Seats{}
	}
	s = Seats{Number: uint32(number), Writer: peer.ReadID(r), Holders: make([]peer.ID, n)}
	held := 0
	for i := range s.Holders {
		h := peer.ReadID(r)
		if !h.IsZero() {
			held++
		}
		if s.Seat(h) >= 0 {
			r.Fail(wire.ErrBadValue)
		}
		s.Holders[i] = h
	}
	if s.Writer.IsZero() || held <= n/2 {
		r.Fail(wire.ErrBadValue)
	}
	if r.Err() != nil {
		return Seats{}
	}
	return s
}
