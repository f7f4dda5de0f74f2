// Look: what checkers, storms and tests may ask of a world beyond its fields, and what handlers see of the clocks.

package world

import (
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// Note enters words into the trace, at a host by its index.
func (w *World) Note(host int, words string) { w.trace.note(w.Now, host, opNote, words) }

// Fault enters into the trace what is done to a host, by its index, or to the cluster (0).
func (w *World) Fault(host int, words string) { w.trace.note(w.Now, host, opFault, words) }

// Traced returns the hash of everything that has happened so far, and of how many records.
func (w *World) Traced() (hash, records uint64) { return w.trace.sum(), w.trace.records }

// Text returns the trace as lines that people can read, "" unless Config.Text asks for it.
func (w *World) Text() string {
	if !w.trace.text {
		return ""
	}
	return w.trace.String()
}

// TraceLines returns the newest lines of the trace, none unless Config.Text asks for them. They belong to the world.
func (w *World) TraceLines() []string { return w.trace.lines }

// Tally counts messages by their fates.
type Tally = [len(fateNames)]int

// Written returns how many messages have an entry.
func (l *Ledger) Written() int { return len(l.entries) }

// Reject settles a message that its sender's node did not accept, by the number that write returned.
func (l *Ledger) Reject(nth int) {
	l.entries[nth].fate = FateRejected
	l.Fates[FateRejected]++
}

// Waiting returns how many messages of the type wait on the process for a home.
func (r *Region) Waiting() (n int) {
	for i := range r.slots.All {
		k, _ := r.Slot(i).Parked()
		n += k
	}
	return n
}

// Role returns the role under which the process has registered the type.
func (r *Region) Role() string { return r.decl.role(r.Process) }

// Homeless returns how many shards of the type have no home that the process knows and has open.
func (r *Region) Homeless() (n int) {
	n = int(r.Type.Shards)
	for i := range r.slots.All {
		if r.Slot(i).State().Open() {
			n--
		}
	}
	return n
}

// queued returns how many bytes wait in the mailboxes of a shard here.
func (r *Region) queued(n route.ShardID) int {
	if h := r.shards.Peek(n); h != nil {
		return h.shard.Stats().QueuedBytes
	}
	return 0
}

// Lives returns the shard with that number, nil when it does not live on the process.
func (r *Region) Lives(n route.ShardID) *entity.Shard {
	if h := r.shards.Peek(n); h != nil {
		return h.shard
	}
	return nil
}

// Refusals returns how many messages the process has refused or given up for a reason, and how many of its own others
// have reported so.
func Refusals(p *Process, why route.Reason) (own, told uint64) { return p.dropped[why], p.told[why] }

// Mailboxes returns how many bytes lie in mailboxes of the process.
func Mailboxes(p *Process) int { return p.mailbox.Used() }

// EndName returns why a membership has ended, in words.
func EndName(k membership.EndKind) string { return endNames[k] }

// Form lets all processes know the types, starts one at every host, and lets time pass until all agree that all are Up,
// at most a minute. It returns what is missing then, "" when nothing is.
func (w *World) Form(types ...*EntityType) (missing string) {
	for _, t := range types {
		t.Type = t.WithDefaults()
		w.AddType(t)
	}
	var order []int
	for i := range w.Hosts {
		order = append(order, i)
	}
	for i := range w.Hosts {
		w.Start(i, w.Seeds(order))
	}
	w.Until(time.Minute, w.Converged)
	return w.WhyNotConverged()
}

// End ends every process that runs, as if its membership were over.
func (w *World) End() {
	for _, p := range w.Running() {
		p.Die(true)
	}
}

// Weather changes how good the network is from now on.
func (w *World) Weather(n setup.Network) { w.Net.Network = n.WithDefaults() }

// FormAs says how processes are started from now on: JoinCommand's NeverForm and FormNew.
func (w *World) FormAs(never, anew bool) { w.forms.never, w.forms.anew = never, anew }

// Record returns what the host keeps of its processes' membership. Its lists belong to the host.
func (h *Host) Record() membership.Record { return h.record }

// Forget loses what the host keeps of its processes' membership, as when its disk is new.
func (h *Host) Forget() { h.record = membership.Record{} }

// Suspended implements entity.Runtime.
func (r shardRuntime) Suspended() bool { return r.p.Held() }

// Now implements entity.Runtime.
func (r shardRuntime) Now() time.Duration { return r.p.clock() }

// Slewed implements entity.Runtime.
func (r shardRuntime) Slewed() time.Duration { return r.p.slewed.to(r.p.clock()) }

// Shards implements entity.Runtime.
func (r shardRuntime) Shards() int {
	n := 0
	for _, at := range r.r.shards.All {
		h := *at
		if h != nil {
			n++
		}
	}
	return max(n, 1)
}
