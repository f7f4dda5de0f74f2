// The ticker: time limits of asks, what execution has due, reports that are gathered for a while. And the goroutine
// that calls the embedder's hooks.

package driver

import (
	"runtime/debug"
	"time"

	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
)

const (
	tickEvery   = plane.ClockTick
	tellEvery   = 50 * time.Millisecond
	ticksOfTell = int64(tellEvery / tickEvery)

	ticksOfCrowd = int64(crowdEvery / tickEvery)
)

// tick is the ticker's goroutine.
func (d *Driver) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var mail fall
	for n := int64(1); ; n++ {
		select {
		case <-d.tickerStop:
			return
		case <-ticker.C:
		}
		d.lookForSleep()
		now := d.now()
		d.asks.advance(int64(now / wheelTick))
		watchLeases(d)
		d.exec.Tick(now)
		if n%ticksOfCrowd == 0 {
			tellCrowds(d, crowdFrom)
		}
		if n%ticksOfTell == 0 {
			d.tellRefusals(false)
			d.exec.Watch(d.now())
			ringHooks(d)
			if mail.step(d.now(), d.mail.waits()) {
				d.threads.Go(debug.FreeOSMemory) // it collects first, which takes a while
			}
		}
	}
}

// ringHooks wakes the goroutine that calls the hooks if there is something to report.
func ringHooks(d *Driver) {
	if d.failed.some(d.now()) || exec.Untold(&d.exec) {
		select {
		case d.hooks <- struct{}{}:
		default:
		}
	}
}

// callHooks is the goroutine that calls the embedder's hooks, Undelivered and Incident. It holds up nobody but them.
func callHooks(d *Driver) {
	over := false
	defer func() {
		if !over {
			d.threads.Go(func() { callHooks(d) }) // a hook has ended its goroutine, which stands in threads still
		}
	}()
	for {
		select {
		case <-d.tickerStop:
			over = true
			return
		case <-d.hooks:
		}
		d.failed.tell(d.now(), false)
		d.exec.TellHook()
	}
}
