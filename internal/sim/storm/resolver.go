// Storms with a resolver: which strategy a seed draws, and the supervisor that starts again what ended by itself.

package storm

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
)

// detectionBound is how long a silent member may go unnoticed by its watchers.
const detectionBound = 7 * time.Second

// drawResolver draws a strategy, none in every fourth seed, and with it a takeover time that is long enough: a process
// that is cut off must have decided so before others take over what it owns. One seed of three goes by the defaults,
// which follow from how many members there are.
func (s *storm) drawResolver(cfg *setup.Config) {
	r := node.Resolver{Strategy: node.ResolverOff}
	switch s.rng.IntN(8) {
	case 0, 1:
	case 2, 3:
		r.Strategy = node.ResolverKeepMajority
		if s.rng.IntN(2) == 0 {
			r.Role = "store"
		}
	case 4:
		r.Strategy, r.QuorumSize = node.ResolverStaticQuorum, len(cfg.Roles)/2+1
	case 5:
		r.Strategy, r.KeepAlone = node.ResolverKeepOldest, s.rng.IntN(2) == 0
	case 6:
		r.Strategy = node.ResolverDownAll
	case 7:
		r.Strategy = node.ResolverLeaseMajority
	}
	switch {
	case r.Strategy == node.ResolverOff:
	case s.rng.IntN(3) == 0:
		cfg.Shard.TakeoverTime = 0
	default:
		r.StableAfter = time.Duration(3+s.rng.IntN(5)) * time.Second
		cfg.Shard.TakeoverTime = detectionBound + r.StableAfter*7/4 + 2*time.Second
	}
	if rng, ok := s.draw(OffPatience, 5); ok && r.Strategy != node.ResolverOff { // all times follow from a preset
		cfg.Patience = []cluster.Patience{cluster.PatienceCalm, cluster.PatienceCalm, cluster.PatienceNoisy}[rng.IntN(3)]
		r.StableAfter, cfg.Shard.TakeoverTime = 0, 0
	}
	cfg.Resolver = r
	cfg.Records = r.Strategy != node.ResolverOff // a supervisor restarts first seeds too
}

// resolves reports whether the seed has a resolver; then no operator downs what died.
func (s *storm) resolves() bool { return s.w.Config.Resolver.Strategy != node.ResolverOff }

// stable is how long nothing may change before the hosts decide, when all are members.
func stable(s *storm) time.Duration { return s.w.Config.Resolver.StableFor(len(s.w.Hosts)) }

func (s *storm) resolverText() string {
	r := s.w.Config.Resolver
	if !s.resolves() {
		return "no resolver"
	}
	text := fmt.Sprintf("%s after %v", r.Strategy, stable(s))
	if r.Role != "" {
		text += " of " + r.Role
	}
	return text
}

// ended takes every process with a membership that is over: a supervisor starts it again, unless it left.
func (s *storm) ended(p *world.Process) {
	if !s.resolves() || s.deserted || p.Ended.Kind == membership.EndLeft {
		return
	}
	s.restartIn(p.Index, s.between(500*time.Millisecond, 8*time.Second))
}

// restartIn starts a process at a host after d, also when the faults are over by then.
func (s *storm) restartIn(host int, d time.Duration) {
	s.pending++
	s.w.After(d, func() {
		s.pending--
		s.startHost(host)
	})
}

// repair starts a process at every host that has none: the calm of a storm with a resolver begins with working hosts,
// and nobody else helps. One that may form a cluster is started again as long as there is none.
func (s *storm) repair() {
	s.repairAll()
	s.w.After(repairLook, s.reform)
}

func (s *storm) repairAll() {
	for i, h := range s.w.Hosts {
		if h.Process == nil || !h.Process.Alive {
			s.restartIn(i, s.between(0, time.Second))
		}
	}
}

// repairLook is how often somebody looks whether there is a cluster at all.
const repairLook = 8 * time.Second

// reform starts the first host anew while there is no cluster. Without a resolver nobody else comes back, and an
// operator does that for those that run and may form none: all that were in one may have ended of themselves.
func (s *storm) reform() {
	if lacksMembers(s.w, s.formed()) && s.pending == 0 && !s.leaving() {
		s.repairAll() // one that left in the meantime has a successor, else the others wait for ever
	}
	if !s.formed() && (s.resolves() || len(s.w.Running()) > 0) {
		if p := s.w.Hosts[0].Process; p != nil && p.Alive {
			p.Crash(true)
		}
		s.startHost(0)
	}
	s.w.After(repairLook, s.reform)
}

// lacksMembers reports whether those that run wait for others, and a host has no process: somebody starts one there
// soon. A process that starts opens the paths of its instances, and so defines them again (partitions.md), also in the
// middle of what is demanded of a hand-off (storm 12100002457).
func lacksMembers(w *world.World, formed bool) bool {
	helped := w.Config.Resolver.Strategy != node.ResolverOff || w.Config.TenureVoters > 0
	few := len(w.Running()) > 0 && len(w.Running()) < w.Config.Membership.MinMembers // none is Up, and none will be
	empty := func(h *world.Host) bool { return h.Process == nil || !h.Process.Alive }
	return (helped && tooFew(w, formed) || few) && slices.ContainsFunc(w.Hosts, empty)
}

// tooFew reports whether those that run wait for others: for so many members, or that hold seats, or, to form a
// cluster anew, for more of the remembered ones than may be missing, as for one that left without their knowledge.
// Records of hosts without a process count, too: somebody may have heard of them.
func tooFew(w *world.World, formed bool) bool {
	least := w.Config.Membership.MinMembers
	if w.Config.TenureVoters > 0 {
		least = max(least, w.Node().Tenure.Quorum())
	}
	if len(w.Running()) < least {
		return true
	}
	here := map[peer.Addr]bool{}
	for _, p := range w.Running() {
		here[p.ID.Addr] = true
	}
	waits := func(h *world.Host) bool {
		r := h.Record()
		lacks, all := 0, len(r.Others)-r.Newcomers
		for _, a := range r.Others {
			if !here[a] {
				lacks++
			}
		}
		if r.Counts {
			all++
		}
		return lacks > w.Node().MayMiss(all)
	}
	return !formed && slices.ContainsFunc(w.Hosts, waits)
}
