// Stalls: goroutines that must not block and do. A worker or event loop that stands still is reported with its stack,
// and calls that would wait look whether they were made on one.

package driver

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

const (
	stallAfter = time.Second // how long a worker may be busy with stallStep messages, a loop with one pass
	stallStep  = 64
	lookDepth  = 128      // calls up to which a stack is looked at
	stallStack = 64 << 10 // bytes of all stacks that are searched for the one that stands still
	stallMost  = 10_000   // goroutines above which stacks are not looked at: that stops the world
)

// enter notes that a worker or loop begins to call handlers, or goes on.
func (c *execCounters) enter(d *Driver) { c.since.Store(d.coarse.Load() | 1) }

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
func (d *Driver) watchStalls() {
	now := time.Duration(d.coarse.Load())
	if d.held(d.now()) {
		d.gateOpened = now
		return
	}
	for _, w := range d.workers {
		if took, ok := w.count.stalled(now, d.gateOpened); ok {
			d.tellStall(entity.Worker, took, fmt.Sprintf("driver.(*worker).run(%p", w))
		}
	}
	for _, p := range d.passes {
		if took, ok := p.count.stalled(now, d.gateOpened); ok {
			d.tellStall(entity.Inline, took, "driver.(*pass).", "driver.(*Driver).Data(")
		}
	}
}

// tellStall reports one, with the stack of the goroutine in which one of the calls is found.
func (d *Driver) tellStall(mode entity.Mode, took time.Duration, calls ...string) {
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
	d.tell(i)
}

// mustNotBlock are the functions below which user code holds up others: the calls of Worker and Inline handlers, of the
// functions of AskFunc, of hooks.
var mustNotBlock = func() []string {
	host, here := reflect.TypeFor[entity.Shard]().PkgPath(), reflect.TypeFor[Driver]().PkgPath()
	return []string{host + ".(*Shard).handle", host + ".(*Shard).Hand", host + ".(*Shard).halt",
		here + ".(*askTable).finish", here + ".(*Driver).tick"}
}()

// mayWait returns entity.ErrWouldBlock when the caller's caller was called by a goroutine that must not wait. Only
// calls that may look are slow anyway: this walks the stack, which takes some hundred nanoseconds. Nodes that host no
// Worker or Inline entities and call no functions of the embedder's do not look.
func (d *Driver) mayWait() error {
	if !d.callsOut.Load() {
		return nil
	}
	var pcs [lookDepth]uintptr
	for _, pc := range pcs[:runtime.Callers(3, pcs[:])] {
		if d.callers.mustNotBlock(pc) {
			return fmt.Errorf("%w: it runs on a worker, an event loop or in a hook", entity.ErrWouldBlock)
		}
	}
	return nil
}

// callers remembers which places in the program lie in a function of mustNotBlock: to ask the runtime allocates, and a
// sender that is held up again and again asks thousands of times a second. Looking costs a load and a search.
type callers struct {
	known atomic.Pointer[map[uintptr]bool]
}

// callersMost bounds what is remembered.
const callersMost = 4096

func (c *callers) mustNotBlock(pc uintptr) bool {
	known := c.known.Load()
	if known != nil {
		if is, ok := (*known)[pc]; ok {
			return is
		}
	}
	f := runtime.FuncForPC(pc - 1)
	is := f != nil && slices.Contains(mustNotBlock, f.Name())
	more := map[uintptr]bool{}
	if known != nil {
		if len(*known) >= callersMost {
			return is
		}
		more = maps.Clone(*known)
	}
	more[pc] = is
	c.known.CompareAndSwap(known, &more) // who loses against another finds out the next time
	return is
}

// callingOut notes that this node calls user code that must not block.
func (d *Driver) callingOut() {
	if !d.callsOut.Load() {
		d.callsOut.Store(true)
	}
}
