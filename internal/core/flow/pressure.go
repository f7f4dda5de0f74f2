// Pressure: which entities are full at the other end of a data connection, as its receiver says it and its sender
// knows it.

package flow

import (
	"errors"
	"math"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// MaxPressed is how many entities the receiver of one data connection names as full at once. Over it the whole node
// counts as full to senders that wait, until one of them has room.
const MaxPressed = 1024

// The bounds of a whole node, as frames name them.
var (
	FullBudget = wire.Full{Reason: uint16(route.BudgetFull)} // the budget of all mailboxes
	FullTable  = wire.Full{Reason: uint16(route.TableFull)}  // more entities are full than MaxPressed
)

// FullEntity names an entity by the hash of its id.
func FullEntity(t route.TypeID, n route.ShardID, hash uint64) wire.Full {
	return wire.Full{Type: uint32(t), Shard: uint32(n), Hash: hash, Reason: uint16(route.MailboxFull)}
}

// ErrBadPressure is returned for what no honest receiver says: more than MaxPressed entities, or a bound that is none.
var ErrBadPressure = errors.New("flow: impossible pressure")

// FullSet is the receiver's end: what is full of what the sender of one data connection waits for, and what of that it
// knows. Both are kept apart: however often an entity fills and empties before anything is written, at most
// one frame is written of it. The zero value has nothing to say. It is not safe for concurrent use.
type FullSet struct {
	at      map[wire.Full]*pressing
	changed []wire.Full
}

type pressing struct {
	limit  int
	full   bool // so it is
	said   bool // so the sender knows it
	listed bool // in changed
}

// Full notes that something with the bound limit is full, and reports whether that is news: if so, the caller says Full
// to the sender, and Room later. An entity beyond MaxPressed is no news; its next message says it again.
func (p *FullSet) Full(f wire.Full, limit int) (news bool) {
	e := p.at[f]
	switch {
	case e != nil && e.full:
		return false
	case e == nil && f.Reason == uint16(route.MailboxFull) && len(p.at) >= MaxPressed:
		if t := p.at[FullTable]; t == nil || !t.full {
			p.turn(FullTable, MaxPressed, true)
		}
		return false
	}
	p.turn(f, limit, true)
	return true
}

// Room notes that something has room again. What was not full stays as it is.
func (p *FullSet) Room(f wire.Full) {
	if e := p.at[f]; e == nil || !e.full {
		return
	}
	p.turn(f, 0, false)
	if t := p.at[FullTable]; t != nil && t.full {
		p.turn(FullTable, 0, false)
	}
}

func (p *FullSet) turn(f wire.Full, limit int, full bool) {
	e := p.at[f]
	if e == nil {
		if p.at == nil {
			p.at = map[wire.Full]*pressing{}
		}
		e = &pressing{}
		p.at[f] = e
	}
	e.full, e.limit = full, limit
	if !e.listed {
		e.listed = true
		p.changed = append(p.changed, f)
	}
}

// Any reports whether something is full, or was said to be and its room is not said yet. While that is so credit must
// not come to the sender before what Append has to say.
func (p *FullSet) Any() bool { return len(p.at) > 0 }

// Waiting reports whether Append may have something to say.
func (p *FullSet) Waiting() bool { return len(p.changed) > 0 }

// Agrees reports whether a sender that has heard everything knows what is so.
func (p *FullSet) Agrees(sender *FullByPeer) bool {
	full := 0
	for f, e := range p.at { // in any order: it is counted
		if e.full {
			full++
			if _, known := sender.at[f]; !known {
				return false
			}
		}
	}
	return full == len(sender.at)
}

// Append appends the frames that tell the sender what it does not know, in the order in which it came about.
func (p *FullSet) Append(dst []byte) []byte {
	for _, f := range p.changed {
		e := p.at[f]
		e.listed = false
		if at := 0; e.full && !e.said {
			dst, at = wire.BeginFrame(dst, wire.KindFull, 0, 0)
			dst = wire.AppendFull(dst, f, uint64(e.limit))
			wire.EndFrame(dst, at)
		} else if !e.full && e.said {
			dst, at = wire.BeginFrame(dst, wire.KindRoom, 0, 0)
			dst = wire.AppendRoom(dst, f)
			wire.EndFrame(dst, at)
		}
		if e.said = e.full; !e.full {
			delete(p.at, f)
		}
	}
	p.changed = p.changed[:0]
	return dst
}

// FullByPeer is the sender's end: what its receiver says is full. It is over with the connection. The zero value knows
// of nothing. It is not safe for concurrent use.
type FullByPeer struct {
	at   map[wire.Full]int
	some [64]uint16 // what is full that concerns the shards of a number modulo 64; the whole node concerns all
}

// May reports whether an entity of a shard may be full, in a few instructions: a sender to others than those that are
// full pays for nothing more, but for one shard in 64.
func (p *FullByPeer) May(n route.ShardID) bool { return p.some[n%64] != 0 }

// put notes that something is full or, which was, has room.
func (p *FullByPeer) put(f wire.Full, limit int, full bool) {
	_, was := p.at[f]
	if full {
		if p.at == nil {
			p.at = map[wire.Full]int{}
		}
		p.at[f] = limit
	} else {
		delete(p.at, f)
	}
	if was == full {
		return
	}
	for n := range p.some {
		switch {
		case f.Reason == uint16(route.MailboxFull) && n != int(f.Shard%64):
		case full:
			p.some[n]++
		default:
			p.some[n]--
		}
	}
}

// Take takes the body of a KindFull or KindRoom frame. room says that something which was full has room now. Errors
// are *wire.Error and ErrBadPressure; nothing has changed then.
func (p *FullByPeer) Take(kind wire.Kind, body []byte) (f wire.Full, room bool, err error) {
	if kind == wire.KindRoom {
		if f, err = wire.ParseRoom(body); err != nil || !honest(f) {
			return f, false, orBad(err)
		}
		if _, room = p.at[f]; room {
			p.put(f, 0, false)
		}
		return f, room, nil
	}
	f, limit, err := wire.ParseFull(body)
	if err != nil || !honest(f) || limit > math.MaxInt64 {
		return f, false, orBad(err)
	}
	if _, known := p.at[f]; !known && len(p.at) >= MaxPressed+2 {
		return f, false, ErrBadPressure
	}
	p.put(f, int(limit), true)
	return f, false, nil
}

func orBad(err error) error {
	if err == nil {
		return ErrBadPressure
	}
	return err
}

// honest reports whether f names a bound that a receiver may be full by.
func honest(f wire.Full) bool {
	return f.Reason == uint16(route.MailboxFull) || f == FullBudget || f == FullTable
}

// Find returns what leaves no room for an entity at the receiver, and the value of that bound; false when nothing does.
func (p *FullByPeer) Find(entity wire.Full) (f wire.Full, limit int, full bool) {
	for _, f := range [...]wire.Full{entity, FullBudget, FullTable} {
		if limit, full := p.at[f]; full {
			return f, limit, true
		}
	}
	return wire.Full{}, 0, false
}

// Clear forgets everything, because the connection is over, and reports whether there was something.
func (p *FullByPeer) Clear() bool {
	some := len(p.at) > 0
	*p = FullByPeer{}
	return some
}
