// Stalls: a worker or event loop that must not block and does is reported with its stack, and a stop call that does not
// return by its deadline with its entity.

package exec

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

const (
	stallAfter = time.Second // how long a worker may be busy with stallStep messages, a loop with one pass
	stallStep  = 64
	stallStack = 2 << 10 // bytes of a stack, on average, of all that are searched for the one that stands still
	stallMost  = 10_000  // goroutines above which stacks are not looked at: that stops the world

	hangsAfter = time.Second      // how long a stop call may take in any case, also behind the deadline of its shard
	hangsAlone = 10 * time.Second // how long one may take that has no deadline: of a passivation
)

// execCounters belong to one loop or worker.
type execCounters struct {
	handled atomic.Uint64
	since   atomic.Int64 // when the batch in hand was begun, by the slewed clock, or a little later; zero: none
	told    int64        // the since of the last stall that was reported; the ticker's
	_       [40]byte
}

// enter notes that a worker or loop begins to call handlers, or goes on.
func (c *execCounters) enter(x *Exec) { c.since.Store(x.Clock.slewed.Load() | 1) }

// leave notes that it does not any more.
func (c *execCounters) leave() { c.since.Store(0) }

// stalled returns for how long the loop has been busy, if that is too long and not reported yet. The time in which the
// gate was closed does not count. Ticker.
func (c *execCounters) stalled(now, opened time.Duration) (time.Duration, bool) {
	since := c.since.Load()
	took := now - max(time.Duration(since), opened)
	if since == 0 || took < stallAfter || c.told == since {
		return 0, false
	}
	c.told = since
	return took, true
}

// watchStalls reports workers and loops that stand still. Ticker.
func (x *Exec) watchStalls(at time.Duration) {
	now := x.Clock.Slewed()
	if x.Gate.Held(at) {
		x.opened = now
		return
	}
	for _, w := range x.workers {
		if took, ok := w.count.stalled(now, x.opened); ok {
			x.tellStall(entity.Worker, took, fmt.Sprintf("exec.(*worker).run(%p", w))
		}
	}
	for _, p := range x.passes {
		if took, ok := p.count.stalled(now, x.opened); ok {
			x.tellStall(entity.Inline, took, "exec.Call(", "exec.(*pass).", "exec.(*Exec).Data(")
		}
	}
}

// tellStall reports one, with the stack of the goroutine in which one of the calls is found.
func (x *Exec) tellStall(mode entity.Mode, took time.Duration, calls ...string) {
	i := entity.Incident{Mode: mode, Kind: entity.Stalled, Took: took, Running: true}
	if n := runtime.NumGoroutine(); n <= stallMost {
		all := make([]byte, (n+64)*stallStack)
		all = all[:runtime.Stack(all, true)]
		for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
			if bytes.Contains(stack, []byte("exec.(*pass).sit(")) {
				continue // it waits for the one that is meant
			}
			if slices.ContainsFunc(calls, func(call string) bool { return bytes.Contains(stack, []byte(call)) }) {
				i.Text = string(stack[:min(len(stack), entity.MaxIncidentText)])
				break
			}
		}
	}
	x.incidents.tell(i)
}

// watchStops tells of each stop call that has not returned by its deadline, once. The ticker, and the end of the node
// for those that it leaves behind.
func watchStops(x *Exec, now, slewed time.Duration) {
	var again []*Host
	for _, h := range x.parting.take() {
		found, more := hanging(h, now, slewed)
		for _, i := range found {
			x.report(h.t, i)
		}
		if more {
			again = append(again, h)
		}
	}
	x.parting.add(again...)
}

// hanging returns what is to be reported of a host's stop calls, and whether there are any.
func hanging(h *Host, now, slewed time.Duration) (found []entity.Incident, more bool) {
	c := &h.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.end.attended.Load() {
		delete(c.stops, nil)
	}
	if len(c.stops) == 0 {
		c.stops = nil // so that a shard with entities that go now and then holds no memory for it
		return nil, false
	}
	patience := stopPatience(h, now)
	for e, s := range c.stops {
		if s.told || slewed-s.since < patience {
			continue
		}
		s.told = true
		c.stops[e] = s
		id := ""
		if e != nil {
			id = e.ID()
		}
		found = append(found, entity.Incident{Type: h.t.typ.Name, ID: id, Shard: h.shard, Fence: h.fence,
			Mode: h.t.typ.Mode, Kind: entity.StopHangs, Took: now - s.at, Running: true, Text: s.what.String()})
	}
	return found, true
}

// stopPatience returns how long a stop call of a host may have taken at now. The deadline is that of the shard: what it
// worked off before is its own affair, but a call that has only begun is not reported.
func stopPatience(h *Host, now time.Duration) time.Duration {
	if h.end.lost.Load() {
		return hangsAfter
	}
	if !h.end.began.Load() {
		return hangsAlone
	}
	by := h.end.cutAt
	if by == 0 || h.end.by > 0 && h.end.by < by {
		by = h.end.by
	}
	switch {
	case by == 0:
		return hangsAlone
	case now < by:
		return never
	}
	return hangsAfter
}
