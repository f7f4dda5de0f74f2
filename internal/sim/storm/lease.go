// Leases in a storm: of the singleton, with messages to it, and of nodes, which hold sessions; a store that is slow,
// silent, forgetful or away. And tenures, which need no store, with an operator for electorates that are lost for good
// (SHD-12, MEM-10).

package storm

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// drawLease makes the singleton need a lease, with a store that is slow, silent or forgetful now and then.
func (k *keeps) drawLease() {
	s, rng := k.s, k.rng
	if rng.IntN(2) > 0 {
		return
	}
	hold := between(rng, 2*time.Second, 6*time.Second)
	use := &world.LeaseUse{Config: leases.Config{Hold: hold, Renew: hold / 5, Timeout: hold / 4,
		Backoff: between(rng, 20*time.Millisecond, hold/5)}}
	use.Keep = hold + leaseSpare
	use.Fate = func() world.LeaseFate {
		f := world.LeaseFate{There: between(rng, 0, 20*time.Millisecond), Back: between(rng, 0, 20*time.Millisecond)}
		if s.ending {
			return f
		}
		switch rng.IntN(12) {
		case 0:
			f.There = between(rng, 0, 3*time.Second)
		case 1:
			f.Back = between(rng, 0, 20*time.Second) // it hangs
		case 2:
			f.Lost = true
		case 3:
			f.Blind = true
		case 4:
			f.There, f.Lost = between(rng, 0, 10*time.Second), true
		}
		return f
	}
	k.lone.Lease = use
}

// leaseSpare is how much longer than the holders the store takes a lease for held: a call that was made goes on so long
// at most.
const leaseSpare = 2 * time.Second

// holds is asked whenever the singleton is called: nobody else may have its lease.
func (k *keeps) holds(c *entity.Context, p *world.Process) {
	if k == nil || k.lone.Lease == nil || c.ID != loneID {
		return
	}
	k.called++
	if id := route.TypeOf(loneID); !k.s.w.Leases.Holds(k.s.w.Now, id, p, c.Fence) {
		k.s.check.Violate(p, "lease", "the singleton is called under %s, and its lease is another's or nobody's",
			world.FenceName(c.Fence))
	}
}

// send sends to the singleton now and then.
func (k *keeps) send(p *world.Process) {
	if k == nil || k.rng.IntN(3) > 0 {
		return
	}
	if r := p.Region(route.TypeOf(loneID)); r != nil {
		for range 1 + k.rng.IntN(3) {
			_ = k.s.send(r, loneID, 2, 60)
		}
	}
}

// drawSessions draws storms in which nodes hold session leases. The store keeps the end of a lease for so short a time
// that outages end nodes too.
func drawSessions(cfg *setup.Config, s *storm) {
	if rng, ok := s.draw(OffSessions, 4); ok {
		cfg.SessionTTL = between(rng, 2*time.Second, 6*time.Second)
		cfg.SessionEnds = cfg.SessionTTL * time.Duration(10+rng.IntN(15))
	}
}

// sessionTrouble is what befalls the store of sessions until the calm.
type sessionTrouble struct {
	s   *storm
	rng *rand.Rand
}

// plan begins it, where nodes hold sessions.
func (x sessionTrouble) plan() {
	if x.s.w.Config.SessionTTL > 0 {
		x.s.w.Leases.Sessions.Fate = x.fate
		x.away()
		x.touch()
	}
}

// fate draws what becomes of a call.
func (x sessionTrouble) fate() world.SessionFate {
	rng := x.rng
	f := world.SessionFate{There: between(rng, 0, 20*time.Millisecond), Back: between(rng, 0, 20*time.Millisecond)}
	if x.s.quiet() {
		return f
	}
	switch rng.IntN(20) {
	case 0:
		f.There = between(rng, 0, 10*time.Second)
	case 1:
		f.Back, f.Patient = between(rng, 0, 10*time.Second), true
	case 2:
		f.Lost = true
	case 3:
		f.Blind = true
	}
	return f
}

// touch: while the store misbehaves it touches every node, so nobody is obliged to live by what else touches it.
func (x sessionTrouble) touch() {
	if !x.s.quiet() {
		x.s.check.Core.Spoil()
		x.s.w.After(time.Second, x.touch)
	}
}

// away has the store answer one host, some or all of them no more, for a while, and plans the next time.
func (x sessionTrouble) away() {
	s, rng := x.s, x.rng
	s.w.After(between(rng, 3*time.Second, 25*time.Second), func() {
		if s.quiet() {
			return
		}
		defer x.away()
		hosts := rng.Perm(len(s.w.Hosts))
		switch rng.IntN(3) {
		case 0:
			hosts = hosts[:1]
		case 1:
			hosts = hosts[:1+rng.IntN(len(hosts))]
		}
		d := between(rng, s.w.Config.SessionTTL/4, 3*s.w.Config.SessionTTL)
		if rng.IntN(6) == 0 {
			d = between(rng, 0, s.w.Config.SessionEnds)
		}
		s.note("the store of sessions answers hosts %v no more, for %v", hosts, d)
		s.w.Leases.Sessions.Away = hosts
		s.w.After(d, func() { s.w.Leases.Sessions.Away = nil })
	})
}

// drawTenures draws storms in which nodes hold tenures. That the lost have ended may be assumed after the takeover time
// only where a resolver stops them: without one an operator downs processes that live.
func drawTenures(cfg *setup.Config, s *storm) {
	rng, ok := s.draw(OffTenures, 5)
	if !ok || cfg.SessionTTL > 0 {
		return
	}
	cfg.TenureVoters, cfg.TenureGrant = 3+2*rng.IntN(2), between(rng, 1500*time.Millisecond, 5*time.Second)
	switch {
	case cfg.Resolver.Strategy != node.ResolverOff && rng.IntN(2) == 0:
		cfg.TenureRefound = cluster.RefoundByTakeover
	case cfg.Resolver.Strategy == node.ResolverOff:
		// Two sides may live, and an operator speaks for all members that are Down or have tombstones: a side that forgets
		// knows less of those that the other one has removed (tenure.md). So here none is forgotten (storm 11300000267).
		cfg.Membership.TombstoneRetention = 0
	}
}

// refoundEvery is how often an operator looks whether an electorate is lost for good.
const refoundEvery = 2 * time.Second

// refound is the operator of tenures: where a quorum of the seats is lost for a member, all have ended that are Down or
// were removed there, and no other process lives in the cluster that it does not know, the operator says so. But where
// the lost have lived on behind a cut, and proven over a member that is there, all nodes start anew (failover.md).
// Where nobody starts anything nobody helps here either.
func refound(every time.Duration, s *storm) {
	if cfg := &s.w.Config; cfg.TenureVoters == 0 || cfg.TenureRefound != cluster.RefoundByOperator {
		return
	}
	s.w.After(every, func() { refound(every, s) })
	if s.deserted {
		return
	}
	for _, p := range s.w.Running() {
		if p.Doomed || p.Leaving || p.Paused() || p.Stuck() || astray(s.check, p) {
			continue
		}
		waits, _, _ := node.Refounding(p.Node.Node)
		if len(waits) > 0 && !slices.ContainsFunc(s.w.Running(), func(q *world.Process) bool { return strays(q, p.View) }) {
			if side := beside(p); slices.ContainsFunc(side, provenOver) {
				beginAnew(side, s)
				return
			}
			s.note("an operator at n%d says that all %d that were lost have ended", p.Index+1, len(waits))
			p.Do(node.RefoundCommand{})
			return
		}
	}
}

// beside returns the running processes that hold one another for members with p, itself too.
func beside(p *world.Process) []*world.Process {
	holds := func(a, b *world.Process) bool {
		m, ok := a.View.Member(b.ID)
		return ok && m.Status != membership.Down
	}
	return slices.DeleteFunc(slices.Clone(p.World.Running()), func(q *world.Process) bool {
		return q.View == nil || !holds(p, q) || !holds(q, p)
	})
}

// provenOver reports whether a member has proven that the tenure of a process is over.
func provenOver(p *world.Process) bool { return p.World.Leases.Tenures.Over(p.ID) }

// beginAnew has an operator end processes, and start others at their hosts.
func beginAnew(side []*world.Process, s *storm) {
	s.note("an operator starts all %d nodes anew: others have owned what they own, under higher fences", len(side))
	for _, p := range side {
		p.Crash(true)
		s.restartIn(p.Index, s.between(0, time.Second))
	}
}

// strays reports whether a process is in the cluster of a view, and no member there, or Down.
func strays(q *world.Process, v *membership.View) bool {
	if q.View == nil || q.View.ClusterID != v.ClusterID {
		return false
	}
	m, in := v.Member(q.ID)
	return !in || m.Status == membership.Down
}
