// The end of a storm: first a core that is healed alone must make progress, then everything must come right.

package storm

import (
	"slices"
	"strconv"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// calm ends all faults, lets an operator down what is dead, and demands that everything comes right.
func (s *storm) calm() {
	w := s.w
	s.ending = true
	s.w.Leases.Sessions.Away = nil
	w.Net.Heal()
	s.check.Core.Links()
	w.Net.Loss, w.Net.Raw = 0, setup.RawNetwork{}
	if s.core && !s.resolves() {
		s.healCore()
	}
	began := w.Now
	w.Net.Heal()
	w.Fault(0, "calm")
	for _, h := range w.Hosts {
		if h.Process != nil {
			h.Process.Resume()
		}
	}
	if s.resolves() {
		s.repair()
	} else {
		if w.Config.TenureVoters > 0 { // fewer than a quorum of the seats handle nothing
			s.repairAll()
		}
		s.bury(func(q *world.Process) bool { return q.Alive }, func() bool { return w.Converged() })
		w.After(repairLook, s.reform)
	}
	doomed := false
	w.After(doomedBound, func() { s.endDoomed(); doomed = true })
	right := func() bool { return s.pending == 0 && !s.leaving() && w.Converged() }
	if !w.Until(calmBound, right) {
		s.check.Violate(nil, "calm", "not converged %v after the storm: %s", calmBound, w.WhyNotConverged())
		awaitFates(s) // what still waits for a home is not lost
		return
	}
	s.calmTook = w.Now - began
	undrain(s) // again: of two sides of a cut one may have ordered it last
	s.demandHomes(w.Running(), w.Takeover()+homesBound)
	demandKept(s)
	if s.crew != nil {
		s.crew.demand()
	}
	s.replicas.demandAlike()
	demandPartitions(partitionsBound, s)
	if s.instances != nil { // what is demanded of them takes time, in which nothing may end or start a process
		still := func() bool { return doomed && right() && !lacksMembers(w, s.formed()) }
		if !w.Until(doomedBound+calmBound, still) {
			s.check.Violate(nil, "calm", "not converged behind the end of the doomed: %s", w.WhyNotConverged())
		}
		s.instances.Demand()
	}
	s.watches.demand()
	s.demandRoom()
	moveBesideBacklogs(s)
	leaveBesidePauses(s)
	s.demandFates()
}

// healCore heals a majority of the nodes that are up, among themselves alone; an operator that sees only them downs all
// others. Whatever is still wrong outside, the core must agree on itself within coreBound.
func (s *storm) healCore() {
	w := s.w
	list := s.up()
	s.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:min(len(list), len(list)/2+1)]
	inside := make([]bool, len(w.Hosts))
	for _, p := range list {
		inside[p.Index] = true
	}
	s.note("the core %v is healed", inside)
	var core []*world.Process
	for _, h := range w.Hosts {
		switch p := h.Process; {
		case p == nil:
		case inside[p.Index]:
			core = append(core, p)
			p.Resume()
		default:
			p.Doomed, p.Outside = true, true
		}
	}
	for a := range w.Net.Cuts {
		for b := range w.Net.Cuts[a] {
			w.Net.Cuts[a][b] = inside[a] != inside[b]
		}
	}
	began := w.Now
	lacks := func() string { // a process that ends of itself, having heard nobody for too long, has no say any more
		core = slices.DeleteFunc(core, func(p *world.Process) bool { return !p.Alive })
		return world.WhyNotConverged(w, core)
	}
	agreed := func() bool { return lacks() == "" }
	s.bury(func(q *world.Process) bool { return q.Alive && inside[q.Index] }, agreed)
	if !w.Until(coreBound, agreed) {
		s.check.Violate(nil, "core", "the core %v has not converged %v after it was healed: %s", inside, coreBound, lacks())
		return
	}
	s.coreTook = w.Now - began
}

func (s *storm) leaving() bool {
	for _, p := range s.w.Running() {
		if p.Leaving {
			return true
		}
	}
	return false
}

// endDoomed kills processes that were downed while they stood still and that no running process can notify: all that
// knew may be gone. It also kills those that such a one admitted: one without a living member beside it, and any that
// still hold it for a member; and those that were let in, and never came Up, by one that has ended since because its
// tenure was proven over. Only an operator ends them: a mistake made two clusters, or a cut did without a resolver.
func (s *storm) endDoomed() {
	untold := outcasts(s.check, s.w.Running())
	for _, p := range s.w.Running() {
		if vouched(p) { // it was lost for others that all have ended
			untold.Remove(p.ID)
		}
	}
	for _, p := range s.w.Running() {
		if untold.Has(p.ID) {
			s.endUntold(p)
		}
	}
	for _, p := range s.w.Running() {
		ended := func(q *world.Process) bool { return letInByEnded(s.check, q) }
		if s.stranded(p) || holdsAny(p, untold) || apartWith(p, ended) {
			s.endUntold(p)
		}
	}
	endProvenOver(s.w.Running(), s)
}

// endProvenOver ends those with a tenure that is proven over, and those that they have let in, where a side lives that
// does not know them: it has what they owned, they handle nothing, and neither side hears of the other when those have
// ended that knew both. Processes that begin anew find the side that lives (storm 11700000483).
func endProvenOver(running []*world.Process, s *storm) {
	var over peer.Set
	for _, p := range running {
		apart := func(q *world.Process) bool {
			return q.View != nil && q.View.ClusterID == p.View.ClusterID && strangers(p, q)
		}
		if provenOver(p) && p.View != nil && slices.ContainsFunc(running, apart) {
			over.Add(p.ID)
		}
	}
	side := slices.DeleteFunc(running, func(p *world.Process) bool { return !over.Has(p.ID) && !holdsAny(p, over) })
	if len(side) > 0 {
		beginAnew(side, s)
	}
}

// endUntold kills a process. A supervisor starts it again: it may have been the one that the others joined.
func (s *storm) endUntold(p *world.Process) {
	s.untold++
	p.Crash(true)
	if s.resolves() {
		s.restartIn(p.Index, s.between(500*time.Millisecond, 8*time.Second))
	}
}

// stranded reports whether a process is alone, with members that all are gone, while others run that do not list it.
func (s *storm) stranded(p *world.Process) bool {
	for _, q := range s.w.Running() {
		if q != p && !strangers(p, q) {
			return false
		}
	}
	return p.View != nil && len(p.View.Members) > 1
}

// bury is the operator who looks every two seconds and downs members with a process that does not belong, until all is
// right, or somebody else takes over.
func (s *storm) bury(belongs func(q *world.Process) bool, right func() bool) {
	s.shift++
	s.buryAs(s.shift, belongs, right)
}

func (s *storm) buryAs(shift int, belongs func(q *world.Process) bool, right func() bool) {
	w := s.w
	again := false
	for _, p := range w.Running() {
		if p.View == nil || p.Leaving || p.Doomed && !vouched(p) || astray(s.check, p) || !belongs(p) {
			continue
		}
		if self, ok := p.View.SelfMember(); !ok || self.Status == membership.Down {
			continue
		}
		for _, m := range p.View.Members {
			if q := w.ProcessOf(m.ID); q == nil || !belongs(q) {
				again = true
				if m.Status != membership.Down {
					s.down(p, m.ID)
				}
			}
		}
		break
	}
	if again || !right() {
		w.After(2*time.Second, func() {
			if shift == s.shift {
				s.buryAs(shift, belongs, right)
			}
		})
	}
}

// idIn returns an entity id of a shard. It tries as many ids as a type has shards, for each home that is probed: when
// each of them was allocated, that was a sixth of a storm.
func idIn(r *world.Region, n route.ShardID) string {
	var room [24]byte
	if r.Type.ShardBy.Of != nil {
		n = mirror(n, r.Type.Shards)
	}
	for i := int64(0); ; i++ {
		id := strconv.AppendInt(append(room[:0], 'e'), i, 10)
		if route.ShardOf(string(id), r.Type.Shards) == n {
			return string(id)
		}
	}
}

// awaitFates waits until every message has a fate, for a bounded time. What a process wrote before it died may reach a
// handler long after it, and the handler may send again; so the ledger must have stood still for longer than any ask
// waits.
func awaitFates(s *storm) {
	w := s.w
	seen, since := w.Book.State(), w.Now
	for end := w.Now + fatesBound; w.Now < end; w.Advance(time.Second) {
		if now := w.Book.State(); now != seen {
			seen, since = now, w.Now
		}
		if w.Now-since >= quietTime && w.Quiet() {
			break
		}
	}
}

// demandFates waits until every message has a fate, and then demands that no process holds anything.
func (s *storm) demandFates() {
	w := s.w
	awaitFates(s)
	if !w.Until(quietTime, func() bool { return s.check.Unreported() == "" }) {
		s.check.Violate(nil, "refusals", "%s are not told", s.check.Unreported())
	}
	if !w.Until(quietTime, func() bool { return s.check.Undelivered() == "" }) {
		s.check.Violate(nil, "courier", "%s have not come", s.check.Undelivered())
	}
	if !w.Quiet() {
		return // the audit names what is missing
	}
	// A partition whose count follows the load asks other nodes for it again and again: the audit waits for a moment at
	// which no ask is under way (storm 11300000186).
	w.Until(parkTime(w)+time.Second, func() bool { return !s.parksInVain() && world.Asks(w.Running()) == 0 })
	for _, p := range w.Running() {
		p.Idle()
	}
}

// parkTime is how long a message waits for a home at most.
func parkTime(w *world.World) time.Duration {
	if d := w.Config.Data.ParkWait; d > 0 {
		return d
	}
	return node.ParkTimeFor(w.Takeover())
}

// parksInVain reports whether something waits for a home that no running node may be.
func (s *storm) parksInVain() bool {
	for _, p := range s.w.Running() {
		for _, r := range p.Regions {
			if r.Waiting() > 0 && !s.hostable(r.ID, s.w.Running()) {
				return true
			}
		}
	}
	return false
}
