// Stalls: a worker or event loop that must not block and does is reported with its stack.

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
	stallStack = 64 << 10 // bytes of all stacks that are searched for the one that stands still
	stallMost  = 10_000   // goroutines above which stacks are not looked at: that stops the world
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

// stalled returns for how long the loop has been busy, if that is too long and was not told yet. The time in which the
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
			x.tellStall(entity.Inline, took, "exec.(*pass).", "exec.(*Exec).Data(")
		}
	}
}

// tellStall reports one, with the stack of the goroutine in which one of the calls is found.
func (x *Exec) tellStall(mode entity.Mode, took time.Duration, calls ...string) {
	i := entity.Incident{Mode: mode, Kind: entity.Stalled, Took: took, Running: true}
	if runtime.NumGoroutine() <= stallMost {
		all := make([]byte, stallStack)
		all = all[:runtime.Stack(all, true)]
		for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
			if slices.ContainsFunc(calls, func(call string) bool { return bytes.Contains(stack, []byte(call)) }) {
				i.Text = string(stack[:min(len(stack), entity.MaxIncidentText)])
				break
			}
		}
	}
	x.incidents.tell(i)
}
