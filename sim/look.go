// Look: what checkers, storms and tests may ask of a world beyond its fields.

package sim

import (
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// note enters words into the trace, at a host by its index.
func (w *world) note(host int, words string) { w.trace.note(w.now, host, opNote, words) }

// fault enters into the trace what is done to a host, by its index, or to the cluster (0).
func (w *world) fault(host int, words string) { w.trace.note(w.now, host, opFault, words) }

// traced returns the hash of everything that has happened so far, and of how many records.
func (w *world) traced() (hash, records uint64) { return w.trace.sum(), w.trace.records }

// text returns the trace as lines that people can read, "" unless Config.Text asks for it.
func (w *world) text() string {
	if !w.trace.text {
		return ""
	}
	return w.trace.String()
}

// traceLines returns the newest lines of the trace, none unless Config.Text asks for them. They belong to the world.
func (w *world) traceLines() []string { return w.trace.lines }

// tally counts messages by their fates.
type tally = [len(fateNames)]int

// written returns how many messages have an entry.
func (l *ledger) written() int { return len(l.entries) }

// reject settles a message that its sender's node did not accept, by the number that write returned.
func (l *ledger) reject(nth int) {
	l.entries[nth].fate = fateRejected
	l.fates[fateRejected]++
}

// waiting returns how many messages of the type wait on the process for a home.
func (r *region) waiting() (n int) {
	for i := range r.slots {
		k, _ := r.slots[i].Parked()
		n += k
	}
	return n
}

// role returns the role under which the process has registered the type.
func (r *region) role() string { return r.decl.role(r.p) }

// homeless returns how many shards of the type have no home that the process knows and has open.
func (r *region) homeless() (n int) {
	for i := range r.slots {
		if !r.slots[i].State().Open() {
			n++
		}
	}
	return n
}

// lives returns the shard with that number, nil when it does not live on the process.
func (r *region) lives(n route.ShardID) *entity.Shard {
	if h := r.shards[n]; h != nil {
		return h.shard
	}
	return nil
}

// refusals returns how many messages the process has refused or given up for a reason, and of how many of its own
// others have told it that.
func refusals(p *proc, why route.Reason) (own, told uint64) { return p.dropped[why], p.told[why] }

// mailboxes returns how many bytes lie in mailboxes of the process.
func mailboxes(p *proc) int { return p.mailbox.Used() }

// endName returns why a membership has ended, in words.
func endName(k membership.EndKind) string { return endNames[k] }

// form lets all processes know the types, starts one at every host, and lets time pass until all agree that all are Up,
// at most a minute. It returns what is missing then, "" when nothing is.
func (w *world) form(types ...*entityType) (missing string) {
	for _, t := range types {
		t.Type = t.WithDefaults()
		w.addType(t)
	}
	var order []int
	for i := range w.hosts {
		order = append(order, i)
	}
	for i := range w.hosts {
		w.start(i, w.seeds(order))
	}
	w.until(time.Minute, w.converged)
	return w.whyNotConverged()
}

// end ends every process that runs, as if its membership were over.
func (w *world) end() {
	for _, p := range w.running() {
		p.die(true)
	}
}

// weather changes how good the network is from now on.
func (w *world) weather(n Network) { w.net.Network = n.withDefaults() }

// formAs says how processes are started from now on: JoinCommand's NeverForm and FormNew.
func (w *world) formAs(never, anew bool) { w.forms.never, w.forms.anew = never, anew }

// forget loses what the host keeps of its processes' membership, as when its disk is new.
func (h *host) forget() { h.record = membership.Record{} }
