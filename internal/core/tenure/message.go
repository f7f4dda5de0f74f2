// Messages between owners, holders of seats and seekers, as bytes. They go bare: only the newest matters, and what is
// lost is asked again.

package tenure

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// verb is what a message is.
type verb uint8

const (
	renew   verb = 1 // an owner asks for its tenure
	granted verb = 2
	refused verb = 3
	ask     verb = 4 // a seeker asks whether the target is missed too; firm: to vouch for it no more
	missed  verb = 5 // an answer: this holder misses the target itself, or does not
	over    verb = 6 // it vouches for the target no more, and its promise has run out
	ended   verb = 7 // the target handles nothing any more: that is proven, and an order behind this rests on it
)

// refusal is why a holder does not grant.
type refusal uint8

const (
	noHolder refusal = 1 // by its own list
	tooNew   refusal = 2 // a promise of the holder before it may still run
	noMember refusal = 3 // by its own view the owner is Down, or no member
)

func (r refusal) String() string {
	switch r {
	case noHolder:
		return "it holds no seat by its own list"
	case tooNew:
		return "it has just got its seat"
	case noMember:
		return "this node is no member in its view"
	}
	return "for no reason that this node knows"
}

// message is one, decoded. Which fields count depends on its verb.
type message struct {
	verb   verb
	seq    uint64 // renew, granted, refused
	list   Seats  // its number and writer: granted, missed, over
	target peer.ID
	yes    bool // ask: firm; missed: it is
	why    refusal
}

func (m *message) append(b []byte) []byte {
	b = append(b, byte(m.verb))
	switch m.verb {
	case renew:
		return wire.AppendUvarint(b, m.seq)
	case granted:
		return appendList(wire.AppendUvarint(b, m.seq), m.list)
	case refused:
		return append(wire.AppendUvarint(b, m.seq), byte(m.why))
	case ask:
		return wire.AppendBool(peer.AppendID(b, m.target), m.yes)
	case ended:
		return peer.AppendID(b, m.target)
	case missed:
		return wire.AppendBool(peer.AppendID(appendList(b, m.list), m.target), m.yes)
	default:
		return peer.AppendID(appendList(b, m.list), m.target)
	}
}

// Ended returns the message that says that id handles nothing any more. A coordinator sends it before an order that
// rests on it, in the same stream: its reader has the proof in its own state before it follows the order.
func Ended(id peer.ID) []byte {
	m := message{verb: ended, target: id}
	return m.append(nil)
}

func appendList(b []byte, s Seats) []byte {
	return peer.AppendID(wire.AppendUvarint(b, uint64(s.Number)), s.Writer)
}

func readList(r *wire.Reader) Seats {
	number := r.Uvarint()
	s := Seats{Number: uint32(number), Writer: peer.ReadID(r)}
	if number == 0 || number > MaxNumber || s.Writer.IsZero() {
		r.Fail(wire.ErrBadValue)
	}
	return s
}

// read decodes a body. An error is a *wire.Error.
func read(body []byte) (m message, err error) {
	r := wire.NewReader(0, body)
	m.verb = verb(r.U8())
	switch m.verb {
	case renew, granted, refused:
		m.seq = r.Uvarint()
		if m.verb == granted {
			m.list = readList(&r)
		}
		if m.verb == refused {
			if m.why = refusal(r.U8()); m.why < noHolder || m.why > noMember {
				r.Fail(wire.ErrBadValue)
			}
		}
	case ask, missed, over, ended:
		if m.verb == missed || m.verb == over {
			m.list = readList(&r)
		}
		if m.target = peer.ReadID(&r); m.target.IsZero() {
			r.Fail(wire.ErrBadValue)
		}
		if m.verb == ask || m.verb == missed {
			m.yes = r.Bool()
		}
	default:
		r.Fail(wire.ErrBadValue)
	}
	return m, r.Done()
}
