// Limits of asks, as the ledger holds them to their law: no handler begins one that nobody waits for any more, and none
// is dropped before that.

package world

import (
	"time"

	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// askKey names an ask of a process.
type askKey struct {
	asker peer.ID
	corr  uint64
}

// limitOf is what the ledger knows of the limit of an ask.
type limitOf struct {
	corr  uint64
	over  time.Duration // when its asker gives up, on the world's clock; zero for a tell
	slack time.Duration // how much later a handler may begin, beside the time on the way: clocks and ticks are coarse
	left  time.Duration // when it last left a process
	way   time.Duration // how long it was on its way
	slept time.Duration // Ledger.unseen when it was asked
}

// asked notes that a message is an ask, and how long its asker waits.
func (w *World) asked(p *Process, payload []byte, corr uint64, d time.Duration) {
	e, ok := w.Book.find(payload)
	if !ok {
		return
	}
	e.corr, e.slept = corr, w.Book.unseen
	e.over, e.slack = p.reaches(p.clock()+d), 3*plane.WheelTick+d/128
	if w.Book.asks == nil {
		w.Book.asks = map[askKey]int{}
	}
	w.Book.asks[askKey{p.ID, corr}] = NumberOf(payload)
}

// departed notes when messages leave a process, arrived how long one was on its way: nobody can count that time, since
// clocks differ.
func (w *World) departed(b []byte) {
	w.eachEnvelope(b, func(m *wire.Envelope) {
		if e, ok := w.Book.find(m.Payload); ok {
			e.left = w.Now
		}
	})
}

func (w *World) arrived(frame []byte) {
	w.eachEnvelope(frame, func(m *wire.Envelope) {
		if e, ok := w.Book.find(m.Payload); ok {
			e.way += w.Now - e.left
		}
	})
}

// inTime: a handler begins an ask while its asker waits, or so little later that nobody could know.
func (w *World) inTime(p *Process, e *entry, name string) {
	if e.over == 0 || e.large || w.version() < 4 {
		return
	}
	if late := w.Now - e.over - e.way - (w.Book.unseen - e.slept); late > e.slack {
		w.Watcher.Violate(p, "limits", "%s is handled %v after its asker has given up", name, late)
	}
}

// expires: a process drops an ask because nobody waits for it any more, which is so.
func (w *World) expires(p *Process, payload []byte) {
	e, ok := w.Book.find(payload)
	if !ok {
		return
	}
	w.Plane.ExpiredAsks++
	if w.Now < e.over && e.sender.waitsFor(e.corr) {
		w.Watcher.Violate(p, "limits", "message %d of %s to %s is dropped %v before its asker gives up", e.seq,
			w.Name(e.sender.ID), e.id, e.over-w.Now)
	}
}

// Denied notes that the sender of a message has got an error. If that says that no handler was called for it, none was,
// and none will be.
func (w *World) Denied(p *Process, nth int, err error) {
	if err == nil || route.MayHaveRun(err) {
		return
	}
	e := &w.Book.entries[nth]
	e.denied = true
	if e.fate == FateDelivered || e.fate == FateLate {
		w.Watcher.Violate(p, "executed", "message %d of %s to %s was handled, and its sender is told that it was not: %v",
			e.seq, w.Name(e.sender.ID), e.id, err)
	}
}

// expired settles an ask that lay in a mailbox for too long.
func (w *World) expired(p *Process, asker peer.ID, corr uint64) {
	nth, ok := w.Book.asks[askKey{asker, corr}]
	if !ok {
		return
	}
	payload := wire.AppendU64(wire.AppendU32(nil, ledgerMagic), uint64(nth))
	w.expires(p, payload)
	if w.Book.entries[nth].fate == fateOpen {
		w.Fate(payload, FateRefused, route.Expired, "expired in a mailbox")
	}
}
