// Leaves at the end of a storm: a member leaves while another one stands still, for less than anybody takes for a loss.
// Its states must move (SHD-9).

package storm

import (
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/sim/setup"
)

const (
	mostPause  = 4400 * time.Millisecond // how long a process pauses beside a leave at most
	leaveBound = 20 * time.Second        // how long a leave beside such a pause takes at most
)

// bearable is how long a process of a cluster of so many members may pause at most without being taken for lost: what
// its preset bears, and as long as a resolver waits beyond that. With tenures and sessions an end is proven instead, as
// soon as others miss the process (failover.md).
func bearable(cfg *setup.Config, members int) time.Duration {
	d := cfg.Membership.WithDefaults().AcceptablePause
	if cfg.TenureVoters == 0 && cfg.SessionTTL == 0 {
		d += cfg.Resolver.StableFor(members)
	}
	return min(d, mostPause)
}

// planLeaves decides whether the storm ends with leaves.
func planLeaves(s *storm) {
	rng, ok := s.draw(OffPartings, 2)
	cfg := &s.w.Config
	hindered := s.mixed != "" || s.strategies || s.heavy != nil || cfg.Network.Rate != 0 ||
		cfg.Data.OldCredit // a version without moves
	if ok && !hindered {
		s.partings = rng
	}
}

// leaveBesidePauses makes some members leave, one after the other, each beside one that pauses. Everything is well
// before.
func leaveBesidePauses(s *storm) {
	for range 2 {
		up := s.up()
		if s.partings == nil || s.states == nil || len(up) < 3 || s.check.Total > 0 {
			return
		}
		s.partings.Shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
		leaveBeside(s, up[0], up[1])
	}
}

// leaveBeside makes a process leave while another one pauses, and demands that it leaves in time and that no state of
// its entities stays behind for want of a member that could be given the shard.
func leaveBeside(s *storm, p, bystander *world.Process) {
	w, pause := s.w, between(s.partings, 200*time.Millisecond, bearable(&s.w.Config, len(s.up())))
	first := between(s.partings, -20*time.Millisecond, time.Second) // below zero it pauses in the middle of the moves
	s.note("n%d leaves, n%d pauses for %v, %v before", p.Index+1, bystander.Index+1, pause, first)
	before := s.check.Lost(bystander.ID) // for one that downed all, and went itself
	w.After(max(0, -first), func() { bystander.Pause(pause) })
	w.After(max(0, first), func() { w.Leave(p) })
	if !w.Until(leaveBound, func() bool { return !p.Alive }) {
		s.check.Violate(p, "leave", "has not left %v after it was told to, beside a pause of %v", leaveBound, pause)
	}
	if s.check.Lost(bystander.ID) && !before || !vouched(bystander) {
		s.check.Violate(bystander, "leave", "is taken for lost in a pause of %v beside a leave", pause)
	}
	if n := s.states.stayed[p.ID]; n > 0 && successors(s, p) {
		s.check.Violate(p, "state", "%d states stay behind with a node that leaves beside a pause of %v", n, pause)
	}
	w.Until(time.Minute, w.Converged)
}

// vouched reports whether all others that run, and there are some, hold a process for a member: nobody took the order
// to down it while it stood still (storm 1142047665).
func vouched(p *world.Process) (some bool) {
	for _, q := range p.World.Running() {
		if q == p || q.View == nil {
			continue
		}
		if m, ok := q.View.Member(p.ID); !ok || m.Status == membership.Down {
			return false
		}
		some = true
	}
	return some
}

// successors reports whether another process may be given the shards of each type that lives on a process.
func successors(s *storm, p *world.Process) bool {
	for _, r := range p.Regions {
		if r.Refused == nil && !s.hostable(r.ID, s.up()) {
			return false
		}
	}
	return true
}
