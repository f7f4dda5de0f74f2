// The ticker: the coarse clock, time limits of asks, timers of hosts, reports that are gathered for a while.

package driver

import "time"

const (
	tickEvery   = 5 * time.Millisecond
	tickSlew    = 8 * time.Millisecond // most that the coarse clock moves in one step: below entity.SlowAfter
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
		d.coarse.Store(min(int64(now), d.coarse.Load()+int64(tickSlew)))
		d.asks.advance(int64(now / wheelTick))
		if d.tickGate(now) {
			d.hosts.tick(now) // a timer that fires into handlers waits for the gate too
		}
		d.pool.again()
		for _, p := range d.passes {
			p.local.poke()
		}
		if n%ticksOfTell == 0 {
			d.tellRefusals()
			d.tellUndelivered()
			d.watchCalls()
			d.watchStalls()
			d.tellLater()
		}
	}
}
