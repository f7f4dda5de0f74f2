// The ledger: every message that the load sends has an entry, and at the end every entry has a fate.

package world

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// ledgerMagic marks a payload that the ledger knows.
const ledgerMagic = 0x6b6f6f62

// LedgerSize is the least payload of a message with an entry.
const LedgerSize = 12

// Fate is what has become of a message.
type Fate uint8

// The fates of a message.
const (
	fateOpen      Fate = iota // accepted, under way
	FateDelivered             // a handler got it
	FateLate                  // a handler got it on a node that did not know yet that it is down
	FateRefused               // the receiver refused it, counted
	FateFailed                // the sender gave it up, counted
	FateInFlight              // its connection broke, counted
	FateRejected              // never accepted: the sender got an error
)

var fateNames = [...]string{"under way", "delivered", "delivered late", "refused", "failed", "lost in flight",
	"rejected"}

// entry is one message.
type entry struct {
	sender *Process
	where  *Process // the process that has it, or sent it into the network last
	typ    route.TypeID
	shard  route.ShardID
	id     string
	seq    uint64 // per sender and entity
	fate   Fate
	why    route.Reason // of what was refused or failed
	ask    bool
	large  bool
	told   bool // an ask with its end reported to the asker, or a tell reported to its owner's embedder
	hosted bool // lies in a mailbox of where, which promised to deliver it
	unsure bool // lost in flight, as reported to its sender: its receiver may have it

	denied bool // its sender knows that no handler was called for it, or will be

	limitOf // of an ask
}

type streamKey struct {
	sender peer.ID
	typ    route.TypeID
	id     string
}

// Ledger is off until the first message is written in it.
type Ledger struct {
	entries []entry
	sent    map[streamKey]uint64
	asks    map[askKey]int       // of processes, by correlation
	unseen  time.Duration        // sum of the sleeps that no clock has shown: nobody can count them
	last    map[streamKey]uint64 // highest sequence delivered
	Fates   [len(fateNames)]int
	reports map[Report]uint64
	late    map[route.Reason]uint64 // reports of messages that have no entry: of types that come late
	unknown map[*Process]uint64
}

// Write makes an entry and the payload that carries it, padded to size.
func (l *Ledger) Write(p *Process, typ route.TypeID, id string, size int) (payload []byte, nth int) {
	if l.sent == nil {
		l.sent, l.last = map[streamKey]uint64{}, map[streamKey]uint64{}
	}
	key := streamKey{p.ID, typ, id}
	l.sent[key]++
	l.entries = append(l.entries, entry{sender: p, where: p, typ: typ, id: id, seq: l.sent[key]})
	nth = len(l.entries) - 1
	payload = wire.AppendU64(wire.AppendU32(make([]byte, 0, max(size, LedgerSize)), ledgerMagic), uint64(nth))
	return payload[:max(size, LedgerSize)], nth
}

// Open reports whether nothing is known yet of what became of a message.
func (l *Ledger) Open(nth int) bool { return l.entries[nth].fate == fateOpen }

// Sends reports whether the process took a message that it was given, to be sent as an ask.
func (l *Ledger) Sends(nth int) bool { return l.entries[nth].ask }

// NumberOf returns the number of a numbered message.
func NumberOf(payload []byte) int { return int(binary.LittleEndian.Uint64(payload[4:])) }

// Numbered reports whether a payload is one that write returned.
func Numbered(payload []byte) bool {
	return len(payload) >= LedgerSize && binary.LittleEndian.Uint32(payload) == ledgerMagic
}

// BookState tells whether anything was written between two looks.
type BookState struct {
	entries int
	fates   [len(fateNames)]int
}

// State tells two looks apart between which something was written.
func (l *Ledger) State() BookState { return BookState{len(l.entries), l.Fates} }

// Quiet reports whether no message is under way that a running process has or sent.
func (w *World) Quiet() bool {
	for i := range w.Book.entries {
		if e := &w.Book.entries[i]; e.fate == fateOpen && e.where.Alive {
			return false
		}
	}
	return true
}

func (l *Ledger) find(payload []byte) (*entry, bool) {
	if len(payload) < LedgerSize || binary.LittleEndian.Uint32(payload) != ledgerMagic {
		return nil, false
	}
	nth := uint64(NumberOf(payload))
	if nth >= uint64(len(l.entries)) {
		return nil, false
	}
	return &l.entries[nth], true
}

// accepted notes that a process's host took a message for one of its entities.
func (w *World) accepted(payload []byte) {
	if e, ok := w.Book.find(payload); ok {
		e.hosted = true
	}
}

// place notes which process has a message.
func (w *World) place(payload []byte, p *Process) {
	if e, ok := w.Book.find(payload); ok {
		e.where = p
	}
}

// handed notes that a process has what another did not work off. How long it was on the way is nobody's to say: an ask
// may be handled as much later.
func (l *Ledger) handed(payload []byte, p *Process) {
	if e, ok := l.find(payload); ok {
		e.where, e.hosted, e.over = p, true, 0
	}
}

// mayBeLost notes that a process drops a message which it had handed over, or got so, and that the other of the two may
// have all the same. A tell is reported to its embedder. The asker of an ask may have learnt that its time is over.
func mayBeLost(w *World, payload []byte) {
	if e, ok := w.Book.find(payload); ok && e.fate == fateOpen {
		w.Fate(payload, FateInFlight, route.LostInFlight, "handed over, and nobody knows whether it came")
		e.unsure, e.told = true, e.told || !e.ask
	}
}

// Fate settles a message that will not be delivered, for a reason where there is one.
func (w *World) Fate(payload []byte, f Fate, why route.Reason, words string) {
	e, ok := w.Book.find(payload)
	if !ok {
		return
	}
	if e.fate == FateInFlight && e.unsure && f == FateRefused {
		return // its sender did not know: its receiver had it, and has dropped it
	}
	if e.fate != fateOpen {
		w.Watcher.Violate(e.where, "fate", "message %d of %s to %s was %s, is %s now (%s)", e.seq, w.Name(e.sender.ID), e.id,
			fateNames[e.fate], fateNames[f], words)
		return
	}
	e.fate, e.why = f, why
	w.Book.Fates[f]++
}

// lostInFlight writes off the frames of a broken connection.
func (w *World) lostInFlight(b []byte) {
	w.eachEnvelope(b, func(e *wire.Envelope) { w.Fate(e.Payload, FateInFlight, route.OK, "connection broke") })
}

// placeAll notes that a process's host has taken these frames.
func (w *World) placeAll(b []byte, p *Process) {
	w.eachEnvelope(b, func(e *wire.Envelope) { w.place(e.Payload, p) })
}

func (w *World) eachEnvelope(b []byte, do func(*wire.Envelope)) {
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

// Delivered is a handler of an entity that has a message: never twice, never behind a later one of its sender.
func (w *World) Delivered(p *Process, typ route.TypeID, id string, payload []byte) {
	e, ok := w.Book.find(payload)
	if !ok {
		w.Watcher.Violate(p, "delivery", "a message to %s that nobody sent", id)
		return
	}
	name := fmt.Sprintf("message %d of %s to %s/%s", e.seq, w.Name(e.sender.ID), w.TypeName(typ), id)
	if e.denied {
		w.Watcher.Violate(p, "executed", "%s is handled, and its sender was told that it never would be", name)
	}
	switch {
	case e.typ != typ || e.id != id:
		w.Watcher.Violate(p, "delivery", "%s came to %s", name, id)
		return
	case e.fate == fateOpen:
	case e.fate == FateInFlight && e.unsure:
		w.Book.Fates[FateInFlight]--
	case e.fate == FateInFlight || e.fate == FateFailed || e.fate == FateRefused:
		w.Watcher.Violate(p, "fate", "%s was %s and is delivered now", name, fateNames[e.fate])
		return
	default:
		w.Watcher.Violate(p, "duplicate", "%s was %s and is delivered again", name, fateNames[e.fate])
		return
	}
	w.inTime(p, e, name)
	if w.Watcher.Lost(p.ID) {
		e.fate = FateLate
		w.Book.Fates[FateLate]++
		return
	}
	e.fate = FateDelivered
	w.Book.Fates[FateDelivered]++
	key := streamKey{e.sender.ID, typ, id}
	if last := w.Book.last[key]; e.seq <= last {
		w.Watcher.Violate(p, "order", "%s is delivered after message %d", name, last)
		return
	}
	w.Book.last[key] = e.seq
}

// Untold counts the messages that a process held when it died, and of which their living senders heard nothing.
func (w *World) Untold() (n int) {
	for i := range w.Book.entries {
		if e := &w.Book.entries[i]; e.fate == fateOpen && !e.where.Alive && e.sender.Alive {
			n++
		}
	}
	return n
}

// Audit gives every message that is still under way to the crash of the process that had it, or calls it lost.
func (w *World) Audit() (crashed, lost int) {
	for i := range w.Book.entries {
		e := &w.Book.entries[i]
		switch {
		case e.fate != fateOpen:
		case e.hosted && e.where.Ended != nil:
			lost++
			w.Watcher.Violate(e.where, "lost", "message %d of %s to %s/%s lay in a mailbox of a node that ended by itself, and "+
				"nobody was told", e.seq, w.Name(e.sender.ID), w.TypeName(e.typ), e.id)
		case !e.where.Alive:
			crashed++
		default:
			lost++
			if lost <= 3 {
				w.Watcher.Violate(e.where, "lost", "message %d of %s to %s/%s was accepted and is nowhere", e.seq,
					w.Name(e.sender.ID), w.TypeName(e.typ), e.id)
			}
		}
	}
	return crashed, lost
}
