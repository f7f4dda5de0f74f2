// Feign: states into which tests of rules put a process, because no run would lead there in good time.

package world

import (
	"github.com/kith-io/kith/stats"
)

// FeignSuspended has the process hold user messages, or not, without an order of its node.
func FeignSuspended(p *Process, on bool) { p.gate.suspended = on }

// FeignDeaf has no deadline of the node come any more.
func FeignDeaf(p *Process) { p.wakes++ }

// FeignAwake has a paused process go on as if it had not slept.
func FeignAwake(p *Process) {
	p.naps++
	p.Asleep, p.deferred, p.stepped = false, nil, p.clock()
	p.gate.suspended = false
}

// FeignFrame has bytes come on a data connection from another process.
func FeignFrame(p, from *Process, b []byte) {
	p.data(&conn{w: p.World, from: from, back: &pipe{closed: true}}, b)
}

// FeignParked has n bytes count as parked that nothing gives back.
func FeignParked(p *Process, n int) { p.parked.Take(n) }

// BulkStats adds up the figures of what the process has sent as large messages.
func BulkStats(p *Process) (sum stats.BulkSent) {
	for _, c := range p.bulk.links.list {
		st := c.bulk.s.Stats()
		sum.Taken += st.Taken
		sum.Lost += st.Lost
		sum.Refused += st.Refused
		sum.Cancelled += st.Cancelled
	}
	return sum
}
