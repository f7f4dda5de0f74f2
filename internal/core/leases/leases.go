// Package leases decides when a lease is asked for, confirmed, lost and given back: the lock outside of the cluster
// without which an entity that is kept alive must not live (SHD-12). It is stepped: a runtime makes the calls.
package leases

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/route"
)

// Config is how a lease is used. All of it is positive, and Timeout and Renew are less than Hold.
type Config struct {
	Timeout time.Duration // how long one call may take
	Renew   time.Duration // how often a lease that is held is confirmed; the longest rest between two attempts
	Hold    time.Duration // how long it counts as held, from when the last call was made that confirmed it
	Backoff time.Duration // the first rest after an attempt that failed; it doubles up to Renew
}

// maxGiven is how many ownerships may wait for their lease to be given back. What is beyond ends by the time limit of
// the store.
const maxGiven = 16

// maxText is the most bytes of an error's text that are kept.
const maxText = 256

// Op is one call to make: acquire the lease for the owner under a fence, or release it. Its answer is a Result.
type Op struct {
	ID      uint64
	Release bool
	Fence   route.Fence
	Limit   time.Duration // how long it may take
}

// Result answers an Op. The call has returned: no other is made before.
type Result struct {
	ID  uint64
	OK  bool   // acquired, or released
	Err string // what went wrong; empty: nothing, the answer is OK
}

// Effects is what the verbs want done. Slices are valid until the next verb.
type Effects struct {
	Withhold, Permit bool          // the entity must not live, or may; never both
	Op               *Op           // a call to make
	Freed            []route.Fence // ownerships of which End was reported, and that hold no lease as far as is known
	Events           []Event
}

// gift is an ownership with a lease that is to be given back.
type gift struct {
	fence   route.Fence
	at      time.Duration // of the next attempt
	fails   int
	by      time.Duration // until when End waits
	waiting bool          // it still does
}

// Holder is the lease of one entity on one node. Its verbs are Begin, End, Answer and Tick; now never goes back. A
// Holder without a Begin wants nothing.
type Holder struct {
	cfg Config
	now time.Duration

	fence route.Fence // of the ownership that wants it; zero: none does
	asked bool        // since Begin it was asked for: the store may know this owner
	held  bool
	valid time.Duration // until when it counts as held
	at    time.Duration // of the next attempt
	fails int
	why   string        // it is not held
	since time.Duration // it is not held, or is

	call    Op // under way; ID zero: none
	calls   uint64
	made    time.Duration // when it was
	late    bool          // its time is over
	give    []gift
	giveWhy string
	counts  Counts
	out     Effects
	fresh   bool // out has been handed over
}

// New returns the holder of a lease.
func New(cfg Config) *Holder { return &Holder{cfg: cfg} }

func (h *Holder) step(now time.Duration) {
	h.now = max(h.now, now)
	if h.fresh {
		h.fresh = false
		h.out = Effects{Freed: h.out.Freed[:0], Events: h.out.Events[:0]}
	}
}

// Drain hands over what the verbs want done, since the last time.
func (h *Holder) Drain() Effects {
	if h.fresh {
		return Effects{}
	}
	h.fresh = true
	return h.out
}

// Begin says that the entity is to live here under a fence. It must not until Effects.Permit.
func (h *Holder) Begin(now time.Duration, f route.Fence) {
	h.step(now)
	if h.fence == f {
		return
	}
	if !h.fence.IsZero() {
		h.End(now, h.fence)
	}
	h.fence, h.asked, h.held = f, false, false
	h.at, h.fails, h.why, h.since = h.now, 0, "it is being asked for", h.now
	h.pump()
}

// End says that nothing of the entity lives here under a fence any more. Effects.Freed follows: at once where the lease
// was not asked for, else when it was given back, and after Config.Timeout in any case.
func (h *Holder) End(now time.Duration, f route.Fence) {
	h.step(now)
	if h.fence != f || f.IsZero() || !h.asked {
		if h.fence == f {
			h.fence = route.Fence{}
		}
		h.out.Freed = append(h.out.Freed, f)
		return
	}
	h.fence, h.held = route.Fence{}, false
	if len(h.give) == maxGiven {
		h.counts.Dropped++
		h.free(&h.give[0])
		h.give = append(h.give[:0], h.give[1:]...)
	}
	h.give = append(h.give, gift{fence: f, at: h.now, by: h.now + h.cfg.Timeout, waiting: true})
	h.pump()
}

// Answer takes the answer to the call under way. Others mean nothing.
func (h *Holder) Answer(now time.Duration, r Result) {
	h.step(now)
	if r.ID == 0 || r.ID != h.call.ID {
		return
	}
	h.expire() // a Guard may have ended it: it is held anew then
	op, late := h.call, h.late || h.now >= h.made+h.call.Limit
	h.call, h.late = Op{}, false
	why := r.Err
	if len(why) > maxText {
		why = why[:maxText]
	}
	if late && why == "" {
		why = fmt.Sprintf("an answer after %v, of at most %v", h.now-h.made, op.Limit)
	}
	if why != "" {
		h.counts.Failed++
	}
	if op.Release {
		h.released(op.Fence, why)
	} else if op.Fence == h.fence {
		h.answered(r.OK, why)
	}
	h.Tick(now)
}

// answered follows an answer to an acquisition for the ownership that wants the lease. why is empty unless it failed.
func (h *Holder) answered(ok bool, why string) {
	switch {
	case why == "" && ok:
		h.fails, h.at = 0, h.made+h.cfg.Renew
		h.valid = h.made + h.cfg.Hold
		if !h.held && h.valid > h.now {
			h.held, h.why, h.since = true, "", h.now
			h.counts.Acquired++
			h.out.Permit, h.out.Withhold = true, false
			h.event(Acquired, h.fence, "")
		}
		return
	case why == "":
		h.counts.Refused++
		why = "another has it"
		h.lose(why)
	}
	h.wait(why)
	h.at = h.now + h.rest(h.fails)
	h.fails++
}

// wait notes why the lease is not held, when it is not.
func (h *Holder) wait(why string) {
	if !h.held && why != h.why {
		h.why = why
		h.event(Refused, h.fence, why)
	}
}

// lose ends a lease that is held.
func (h *Holder) lose(why string) {
	if !h.held {
		return
	}
	h.held, h.why, h.since, h.fails = false, why, h.now, 0
	h.counts.Lost++
	h.out.Withhold, h.out.Permit = true, false
	h.event(Lost, h.fence, why)
}

// released follows an answer to a release.
func (h *Holder) released(f route.Fence, why string) {
	for i := range h.give {
		g := &h.give[i]
		if g.fence != f {
			continue
		}
		if h.free(g); why == "" {
			h.giveWhy = ""
			h.event(Released, f, "")
			h.give = append(h.give[:i], h.give[i+1:]...)
			return
		}
		if why != h.giveWhy {
			h.giveWhy = why
			h.event(NotFreed, f, why)
		}
		g.at = h.now + h.rest(g.fails)
		g.fails++
		return
	}
}

// free tells that an ownership is over.
func (h *Holder) free(g *gift) {
	if g.waiting {
		g.waiting = false
		h.out.Freed = append(h.out.Freed, g.fence)
	}
}

func (h *Holder) event(k EventKind, f route.Fence, why string) {
	h.out.Events = append(h.out.Events, Event{k, f, why})
}

// rest is how long nobody asks after so many failures in a row and one more.
func (h *Holder) rest(fails int) time.Duration {
	d := h.cfg.Backoff
	for range min(fails, 40) {
		if d >= h.cfg.Renew {
			break
		}
		d *= 2
	}
	return min(d, h.cfg.Renew)
}

// Tick does what is due.
func (h *Holder) Tick(now time.Duration) {
	h.step(now)
	h.expire()
	if h.call.ID != 0 && !h.late && h.now >= h.made+h.call.Limit {
		h.late = true
		h.wait(h.noAnswer())
	}
	for i := range h.give {
		if g := &h.give[i]; g.waiting && h.now >= g.by {
			h.free(g)
		}
	}
	h.pump()
}

// expire ends a lease that is held and was not confirmed in time.
func (h *Holder) expire() {
	if !h.held || h.now < h.valid {
		return
	}
	why := "nobody has confirmed it"
	if h.call.ID != 0 {
		why = h.noAnswer()
	}
	h.lose(fmt.Sprintf("%s for %v", why, h.now-h.valid+h.cfg.Hold))
}

// noAnswer says which call has not returned.
func (h *Holder) noAnswer() string {
	if h.call.Release {
		return "Release has not returned"
	}
	return "Acquire has not returned"
}

// pump makes the next call that is due, when none is under way: what is to be given back comes first.
func (h *Holder) pump() {
	if h.call.ID != 0 {
		return
	}
	for i := range h.give {
		if g := &h.give[i]; g.at <= h.now {
			h.do(true, g.fence)
			return
		}
	}
	if !h.fence.IsZero() && h.at <= h.now {
		h.asked = true
		h.do(false, h.fence)
	}
}

func (h *Holder) do(release bool, f route.Fence) {
	h.calls++
	h.call, h.made, h.late = Op{h.calls, release, f, h.cfg.Timeout}, h.now, false
	op := h.call
	h.out.Op = &op
}

// Next returns when Tick has something to do.
func (h *Holder) Next() (at time.Duration, ok bool) {
	sooner := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if h.held {
		sooner(h.valid)
	}
	for i := range h.give {
		if g := &h.give[i]; g.waiting {
			sooner(g.by)
		}
		if h.call.ID == 0 {
			sooner(h.give[i].at)
		}
	}
	switch {
	case h.call.ID != 0 && !h.late:
		sooner(h.made + h.call.Limit)
	case h.call.ID == 0 && !h.fence.IsZero():
		sooner(h.at)
	}
	return at, ok
}
