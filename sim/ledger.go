// The ledger: every message that the load sends has an entry, and at the end every entry has a fate.

package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// ledgerMagic marks a payload that the ledger knows.
const ledgerMagic = 0x6b6f6f62

// ledgerSize is the least payload of a message with an entry.
const ledgerSize = 12

type fate uint8

const (
	fateOpen      fate = iota // accepted, under way
	fateDelivered             // a handler got it
	fateLate                  // a handler got it whose node did not know yet that it is down
	fateRefused               // the receiver refused it, counted
	fateFailed                // the sender gave it up, counted
	fateInFlight              // its connection broke, counted
	fateRejected              // never accepted: the sender got an error
)

var fateNames = [...]string{"under way", "delivered", "delivered late", "refused", "failed", "lost in flight",
	"rejected"}

// entry is one message.
type entry struct {
	sender *proc
	where  *proc // the process that has it, or sent it into the network last
	typ    route.TypeID
	id     string
	seq    uint64 // per sender and entity
	fate   fate
	hosted bool // lies in a mailbox of where, which promised to deliver it
	unsure bool // lost in flight for all that its sender knows, who was told so: its receiver may have it
}

type streamKey struct {
	sender peer.ID
	typ    route.TypeID
	id     string
}

// ledger is off until the first message is written in it.
type ledger struct {
	entries []entry
	sent    map[streamKey]uint64
	last    map[streamKey]uint64 // highest sequence delivered
	fates   [len(fateNames)]int
}

// write makes an entry and the payload that carries it, padded to size.
func (l *ledger) write(p *proc, typ route.TypeID, id string, size int) (payload []byte, nth int) {
	if l.sent == nil {
		l.sent, l.last = map[streamKey]uint64{}, map[streamKey]uint64{}
	}
	key := streamKey{p.id, typ, id}
	l.sent[key]++
	l.entries = append(l.entries, entry{sender: p, where: p, typ: typ, id: id, seq: l.sent[key]})
	nth = len(l.entries) - 1
	payload = wire.AppendU64(wire.AppendU32(make([]byte, 0, max(size, ledgerSize)), ledgerMagic), uint64(nth))
	return payload[:max(size, ledgerSize)], nth
}

// open reports whether nothing is known yet of what became of a message.
func (l *ledger) open(nth int) bool { return l.entries[nth].fate == fateOpen }

// numberOf returns the number of a numbered message.
func numberOf(payload []byte) int { return int(binary.LittleEndian.Uint64(payload[4:])) }

// numbered reports whether a payload is one that write returned.
func numbered(payload []byte) bool {
	return len(payload) >= ledgerSize && binary.LittleEndian.Uint32(payload) == ledgerMagic
}

// bookState tells whether anything was written between two looks.
type bookState struct {
	entries int
	fates   [len(fateNames)]int
}

func (l *ledger) state() bookState { return bookState{len(l.entries), l.fates} }

// settled reports whether no message is under way that a running process has or sent.
func (w *world) settled() bool {
	for i := range w.book.entries {
		if e := &w.book.entries[i]; e.fate == fateOpen && e.where.alive {
			return false
		}
	}
	return true
}

func (l *ledger) find(payload []byte) (*entry, bool) {
	if len(payload) < ledgerSize || binary.LittleEndian.Uint32(payload) != ledgerMagic {
		return nil, false
	}
	nth := uint64(numberOf(payload))
	if nth >= uint64(len(l.entries)) {
		return nil, false
	}
	return &l.entries[nth], true
}

// accepted notes that a process's host took a message for one of its entities.
func (w *world) accepted(payload []byte) {
	if e, ok := w.book.find(payload); ok {
		e.hosted = true
	}
}

// place notes which process has a message.
func (w *world) place(payload []byte, p *proc) {
	if e, ok := w.book.find(payload); ok {
		e.where = p
	}
}

// fate settles a message that will not be delivered.
func (w *world) fate(payload []byte, f fate, words string) {
	e, ok := w.book.find(payload)
	if !ok {
		return
	}
	if e.fate != fateOpen {
		w.check.violate(e.where, "fate", "message %d of %s to %s was %s, is %s now (%s)", e.seq, w.name(e.sender.id), e.id,
			fateNames[e.fate], fateNames[f], words)
		return
	}
	e.fate = f
	w.book.fates[f]++
}

// lostInFlight writes off the frames of a broken connection.
func (w *world) lostInFlight(b []byte) {
	w.eachEnvelope(b, func(e *wire.Envelope) { w.fate(e.Payload, fateInFlight, "connection broke") })
}

// placeAll notes that a process's host has taken these frames.
func (w *world) placeAll(b []byte, p *proc) {
	w.eachEnvelope(b, func(e *wire.Envelope) { w.place(e.Payload, p) })
}

func (w *world) eachEnvelope(b []byte, do func(*wire.Envelope)) {
	for len(b) >= wire.HeaderSize {
		frame, n, err := wire.Split(b, wire.LaneData, wire.DefaultMaxFrame)
		if err != nil || n == 0 {
			return
		}
		b = b[n:]
		var e wire.Envelope
		if wire.ParseHeader(frame).Kind == wire.KindEnvelope && wire.ParseEnvelope(frame, &e) == nil {
			do(&e)
		}
	}
}

// delivered is a handler of an entity that has a message: never twice, never behind a later one of its sender.
func (w *world) delivered(p *proc, typ route.TypeID, id string, payload []byte) {
	e, ok := w.book.find(payload)
	if !ok {
		w.check.violate(p, "delivery", "a message to %s that nobody sent", id)
		return
	}
	name := fmt.Sprintf("message %d of %s to %s/%s", e.seq, w.name(e.sender.id), w.typeName(typ), id)
	switch {
	case e.typ != typ || e.id != id:
		w.check.violate(p, "delivery", "%s came to %s", name, id)
		return
	case e.fate == fateOpen:
	case e.fate == fateInFlight && e.unsure:
		w.book.fates[fateInFlight]--
	case e.fate == fateInFlight || e.fate == fateFailed || e.fate == fateRefused:
		w.check.violate(p, "fate", "%s was %s and is delivered now", name, fateNames[e.fate])
		return
	default:
		w.check.violate(p, "duplicate", "%s was %s and is delivered again", name, fateNames[e.fate])
		return
	}
	if w.check.lost(p.id) {
		e.fate = fateLate
		w.book.fates[fateLate]++
		return
	}
	e.fate = fateDelivered
	w.book.fates[fateDelivered]++
	key := streamKey{e.sender.id, typ, id}
	if last := w.book.last[key]; e.seq <= last {
		w.check.violate(p, "order", "%s is delivered after message %d", name, last)
		return
	}
	w.book.last[key] = e.seq
}

// untold counts the messages that a process held when it died, and of which their senders, who live, heard nothing.
func (w *world) untold() (n int) {
	for i := range w.book.entries {
		if e := &w.book.entries[i]; e.fate == fateOpen && !e.where.alive && e.sender.alive {
			n++
		}
	}
	return n
}

// audit gives every message that is still under way to the crash of the process that had it, or calls it lost.
func (w *world) audit() (crashed, lost int) {
	for i := range w.book.entries {
		e := &w.book.entries[i]
		switch {
		case e.fate != fateOpen:
		case e.hosted && e.where.ended != nil && e.where.ended.Kind == membership.EndLeft && !e.where.forced:
			lost++
			w.check.violate(e.where, "lost", "message %d of %s to %s/%s lay in a mailbox of a node that left gracefully", e.seq,
				w.name(e.sender.id), w.typeName(e.typ), e.id)
		case !e.where.alive:
			crashed++
		default:
			lost++
			if lost <= 3 {
				w.check.violate(e.where, "lost", "message %d of %s to %s/%s was accepted and is nowhere", e.seq,
					w.name(e.sender.id), w.typeName(e.typ), e.id)
			}
		}
	}
	return crashed, lost
}
