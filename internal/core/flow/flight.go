// InFlight: tells that were sent on data connections which are over, until their receiver says how many of them it
// took.

package flow

import (
	"slices"

	"github.com/kith-io/kith/wire"
)

// MaxFlights is how many connections to one peer, or from it, are remembered until their account is settled, and the
// most entries of one Taken body.
const MaxFlights = 256

// TakenSince is the wire version since which nodes say what they took of a connection that is over.
const TakenSince = 4

const minTakenSize = 2 + 4 + 1

// Taken says of one data connection that is over how many tells its receiver was delivered on it.
type Taken struct {
	Number     uint16 // of the connection, and its generation: its sender chose them
	Generation uint32
	Tells      uint64
}

// AppendTaken appends the body of a KindTaken notice:
//
//	uvarint  number of entries, at most 256
//	each:    u16 number of the data connection, u32 generation, uvarint tells
func AppendTaken(b []byte, list []Taken) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = wire.AppendUvarint(wire.AppendU32(wire.AppendU16(b, e.Number), e.Generation), e.Tells)
	}
	return b
}

// ParseTaken reads what AppendTaken wrote; errors are *wire.Error.
func ParseTaken(body []byte) ([]Taken, error) {
	r := wire.NewReader(wire.KindTaken, body)
	list := make([]Taken, 0, r.Count(minTakenSize, MaxFlights))
	for range cap(list) {
		list = append(list, Taken{r.U16(), r.U32(), r.Uvarint()})
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return list, nil
}

// Flown says of one data connection that is over how many tells were sent on it, and of how many of these its credit
// does not show that they were taken. What it shows is a guess where frames of one connection are worked off side by
// side: credit names none of them, so that of a later one counts for an earlier one. The peer's word is exact.
type Flown struct {
	Number        uint16
	Generation    uint32
	Sent, Unknown uint64
	// Read says that the peer has read all of it, and closed the connection behind what this node ended it with.
	Read bool
}

// InFlight is what a node does not know of the tells that it sent to one peer. Both ends of a connection that breaks
// hear of it in any order, so what comes first waits for the other. The zero value is empty.
type InFlight struct {
	flown []Flown // of which the peer has not said yet what it took
	taken []Taken // of connections that are not known here as over yet
}

// Over notes a connection that is over, and returns how many tells are lost for sure now: exactly those that the peer
// was not delivered, when it has said so; all that is not known of an older connection, when too many are remembered.
// Then one goes of which all was taken as far as is known, if there is one.
func (f *InFlight) Over(c Flown) (lost uint64) {
	if i := slices.IndexFunc(f.taken, func(t Taken) bool {
		return t.Number == c.Number && t.Generation == c.Generation
	}); i >= 0 {
		lost = c.less(f.taken[i].Tells)
		f.taken = slices.Delete(f.taken, i, i+1)
		return lost
	}
	if len(f.flown) >= MaxFlights {
		i := max(0, slices.IndexFunc(f.flown, func(c Flown) bool { return c.Unknown == 0 }))
		lost = f.flown[i].Unknown
		f.flown = slices.Delete(f.flown, i, i+1)
	}
	f.flown = append(f.flown, c)
	return lost
}

// Says takes the peer's word on a connection, and returns how many tells are lost for sure now.
func (f *InFlight) Says(t Taken) (lost uint64) {
	i := slices.IndexFunc(f.flown, func(c Flown) bool { return t.Number == c.Number && t.Generation == c.Generation })
	if i < 0 {
		if len(f.taken) >= MaxFlights {
			f.taken = slices.Delete(f.taken, 0, 1)
		}
		f.taken = append(f.taken, t)
		return 0
	}
	lost = f.flown[i].less(t.Tells)
	f.flown = slices.Delete(f.flown, i, i+1)
	return lost
}

// End says that the peer is gone for good: it returns of how many tells it will never be known whether they were
// handled, and forgets everything.
func (f *InFlight) End() (unknown uint64) {
	for i := range f.flown {
		unknown += f.flown[i].Unknown
	}
	*f = InFlight{}
	return unknown
}

// Close says that this node ends, and hears of its peers no more: it returns of how many tells it will not be known
// whether they were handled, and forgets everything. What a peer has read to the end it handles or tells: it lives, or
// its own end accounts for it.
func (f *InFlight) Close() (unknown uint64) {
	for i := range f.flown {
		if !f.flown[i].Read {
			unknown += f.flown[i].Unknown
		}
	}
	*f = InFlight{}
	return unknown
}

// less returns what was sent less what was taken; more than was sent is no count that anybody honest has.
func (c *Flown) less(taken uint64) uint64 { return c.Sent - min(c.Sent, taken) }

// ConsumedCounts is what a node has to say to one peer of the connections from it that are over, until it is said. The
// zero value is empty.
type ConsumedCounts struct{ list []Taken }

// Add notes one, and forgets the oldest when too many wait: a peer that misses the count takes the rest for lost.
func (w *ConsumedCounts) Add(t ...Taken) {
	w.list = append(w.list, t...)
	w.list = slices.Delete(w.list, 0, max(0, len(w.list)-MaxFlights))
}

// Take returns what there is to say, at most MaxFlights, and starts anew. The list is the caller's.
func (w *ConsumedCounts) Take() []Taken {
	list := w.list
	w.list = nil
	return list
}
