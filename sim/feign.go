// Feign: states into which tests of rules put a process, because no run would lead there in good time.

package sim

import (
	"github.com/kith-io/kith/stats"
)

// feignSuspended has the process hold user messages, or not, without an order of its node.
func feignSuspended(p *proc, on bool) { p.gate.suspended = on }

// feignDeaf has no deadline of the node come any more.
func feignDeaf(p *proc) { p.wakes++ }

// feignAwake has a paused process go on as if it had not slept.
func feignAwake(p *proc) {
	p.naps++
	p.asleep, p.deferred, p.stepped = false, nil, p.clock()
	p.gate.suspended = false
}

// feignFrame has bytes come on a data connection from another process.
func feignFrame(p, from *proc, b []byte) {
	p.data(&conn{w: p.w, from: from, back: &pipe{closed: true}}, b)
}

// feignParked has n bytes count as parked that nothing gives back.
func feignParked(p *proc, n int) { p.parked.Take(n) }

// bulkStats adds up the figures of what the process has sent as large messages.
func bulkStats(p *proc) (sum stats.BulkSent) {
	for _, c := range p.bulk.links.list {
		st := c.bulk.s.Stats()
		sum.Taken += st.Taken
		sum.Lost += st.Lost
		sum.Refused += st.Refused
		sum.Cancelled += st.Cancelled
	}
	return sum
}
