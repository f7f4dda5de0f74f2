// Feign: states into which tests of rules put a process, because no run would lead there in good time.

package world

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
)

// FeignSuspended makes the process hold user messages, or not, without an order of its node.
func FeignSuspended(p *Process, on bool) { p.gate.suspended = on }

// FeignDeaf has no deadline of the node come any more.
func FeignDeaf(p *Process) { p.wakes++ }

// FeignAwake makes a paused process go on as if it had not slept.
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

// FeignUndelivered makes the process report n messages to a shard as undelivered.
func FeignUndelivered(p *Process, typ route.TypeID, shard route.ShardID, why route.Reason, n uint64) {
	p.World.Book.undelivered(p, typ, shard, why, n)
}

// FeignRefused makes the process at refuse a message.
func FeignRefused(at *Process, payload []byte, why route.Reason) {
	at.World.Fate(payload, FateRefused, why, why.String())
	at.World.place(payload, at)
}

// FeignLost breaks the connection that a message goes over. told says that its sender hears of it.
func FeignLost(w *World, payload []byte, told bool) {
	why := route.OK
	if told {
		why = route.PeerLost
	}
	w.Fate(payload, FateInFlight, why, "")
	if e, ok := w.Book.find(payload); ok {
		e.unsure = told
	}
}

// FeignKept makes the gate of a process keep a message.
func FeignKept(w *World, payload []byte, p *Process) { w.place(payload, p) }

// FeignPlace puts a message into a mailbox of a process.
func FeignPlace(w *World, payload []byte, p *Process) {
	w.place(payload, p)
	w.accepted(payload)
}

// FeignAsk marks a message as sent as an ask.
func FeignAsk(w *World, payload []byte) { w.Book.sends(payload, 0, true, false) }

// FeignPerhapsHandedOver makes a process drop a message that it handed over, or got so, without knowing whether the
// other has it.
func FeignPerhapsHandedOver(w *World, payload []byte) { mayBeLost(w, payload) }
