// The ticker: time limits of asks, what execution has due, reports that are gathered for a while.

package driver

import (
	"time"

	"github.com/kith-io/kith/internal/plane"
)

const (
	tickEvery   = plane.ClockTick
	tellEvery   = 50 * time.Millisecond
	ticksOfTell = int64(tellEvery / tickEvery)
)

// tick is the ticker's goroutine.
func (d *Driver) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
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
		if n%ticksOfTell == 0 {
			d.tellRefusals(false)
			d.failed.tell()
			d.exec.Watch(d.now())
		}
	}
}
