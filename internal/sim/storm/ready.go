// What people and programs say of where shards and instances may live: members that drain, regions that are not ready,
// pauses of the balance, partitions.

package storm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// drainNodes makes a member drain, or not any more, and plans the next time: several may drain at once, and all of
// them.
func drainNodes(s *storm) {
	s.w.After(between(s.drains, time.Second, 10*time.Second), func() {
		if s.quiet() {
			return
		}
		defer drainNodes(s)
		if up := s.up(); len(up) > 0 {
			drainOne(s, up[s.drains.IntN(len(up))], s.drains.IntN(3) > 0)
		}
	})
}

// drainOne orders a process to drain, or not any more, when it listens.
func drainOne(s *storm, p *world.Process, on bool) {
	switch {
	case p.Paused() || p.Stuck():
		s.w.After(time.Second, func() { drainOne(s, p, on) })
	case p.Alive:
		on = on && !s.quiet()
		carryOut := func() error { return p.Command(shard.DrainCommand{On: on}) } // fails when it leaves, or is alone
		if on {
			check.Drains(s.check, p, carryOut)
		} else {
			_ = carryOut()
		}
	}
}

// declare makes a region declare that it is not ready for shards, or that it is again, and plans the next time: all may
// be not ready at once, and then shards without a home wait.
func declare(s *storm) {
	if s.ready == nil {
		return
	}
	s.w.After(between(s.ready, 500*time.Millisecond, 8*time.Second), func() {
		if s.quiet() {
			return
		}
		defer declare(s)
		if up := s.up(); len(up) > 0 {
			p := up[s.ready.IntN(len(up))]
			if len(p.Regions) == 0 {
				return // it has not come so far
			}
			r := p.Regions[s.ready.IntN(len(p.Regions))]
			declareOne(s, r, s.ready.IntN(3) == 0)
		}
	})
}

// declareOne declares whether a region is ready, when its process listens.
func declareOne(s *storm, r *world.Region, ready bool) {
	switch p := r.Process; {
	case p.Paused() || p.Stuck():
		s.w.After(time.Second, func() { declareOne(s, r, ready) })
	case p.Alive:
		ready = ready || s.quiet()
		check.Declares(s.check, p, r.ID, ready, func() error {
			return p.Command(shard.ReadyCommand{Type: r.ID, Ready: ready})
		})
	}
}

// holdBalance makes a process pause the balance of the whole cluster for a while, and plans the next time.
func holdBalance(s *storm) {
	if s.holds == nil {
		return
	}
	on := false
	var turn func()
	turn = func() {
		on = !on && !s.quiet()
		if up := s.up(); len(up) > 0 {
			c := membership.SetMetadataCommand{Key: shard.PauseKey}
			if on {
				c.Value = []byte("a storm")
			}
			p := up[s.holds.IntN(len(up))]
			p.Live(func() { p.Do(c) })
		}
		if !s.quiet() {
			s.w.After(between(s.holds, time.Second, 20*time.Second), turn)
		}
	}
	s.w.After(between(s.holds, time.Second, 20*time.Second), turn)
}

// undrain takes all drains back, and all words of regions that are not ready: what follows demands that every shard has
// a home.
func undrain(s *storm) {
	for _, p := range s.w.Running() {
		if s.drains != nil {
			drainOne(s, p, false)
		}
		for _, r := range p.Regions {
			if s.ready != nil {
				declareOne(s, r, true)
			}
		}
	}
}

// planPartitions has members define, move and delete partitions, and hand instances over, some of them never before the
// calm.
func planPartitions(rng *rand.Rand, s *storm) {
	handOver(rng, s)
	sayOfPartitions(rng, s)
}

func sayOfPartitions(rng *rand.Rand, s *storm) {
	s.w.After(between(rng, 200*time.Millisecond, 3*time.Second), func() {
		if s.quiet() {
			return
		}
		defer sayOfPartitions(rng, s)
		if up := s.up(); len(up) > 0 {
			p, cmd := up[rng.IntN(len(up))], drawTable(rng, up)
			p.Live(func() { p.Do(cmd) }) // refused when it makes no sense (any more)
		}
	})
}

// drawTable draws what one says of partitions.
func drawTable(rng *rand.Rand, up []*world.Process) membership.Command {
	path := []string{"a", "a/b", "market/prices", "z/y/x"}[rng.IntN(4)]
	switch rng.IntN(8) {
	case 0:
		return membership.UndefineCommand{Path: path}
	case 1, 2, 3:
		return membership.MoveInstanceCommand{Path: path, Slot: rng.IntN(3), To: up[rng.IntN(len(up))].ID}
	}
	d := membership.DefineCommand{Definition: cluster.PartitionDefinition{Path: path,
		Handoff: []cluster.Handoff{cluster.Stateless, cluster.Ordered, cluster.Lossy}[rng.IntN(3)], Hint: rng.IntN(500)}}
	d.Definition.Count = []cluster.Count{partition.Exactly(1 + rng.IntN(4)), partition.Survives(rng.IntN(3)),
		partition.Share(1 + rng.IntN(100)), partition.Scaled(1, 5, 100)}[rng.IntN(4)]
	return d
}

// handOver makes the old node of each pending change complete it by chance, again and again; in the calm all do.
func handOver(rng *rand.Rand, s *storm) {
	for _, p := range s.w.Running() {
		if p.View == nil {
			continue
		}
		for _, is := range p.View.Partitions { // of this view: what is done below makes another one
			for _, c := range is.Changes {
				never := c.Epoch%5 == 0
				if c.From == p.ID && !c.Complete && (s.ending || !never && rng.IntN(3) == 0) {
					p.Live(func() { p.Do(membership.CompleteCommand{Change: c}) })
				}
			}
		}
	}
	s.w.After(between(rng, 100*time.Millisecond, 2*time.Second), func() { handOver(rng, s) })
}

// demandPartitions demands, when all is well, that soon every partition has its instances, on members that may host
// them, and that nothing is pending.
func demandPartitions(within time.Duration, s *storm) {
	if len(s.w.Running()) == 0 {
		return
	}
	if !s.w.Until(within, func() bool { return s.w.Converged() && wrongPartition(s.w) == "" }) {
		s.check.Violate(nil, "partitions", "%v after the calm %s", within, wrongPartition(s.w))
	}
}

// partitionsBound is for what the storm has left: each hand-over takes seconds, and a change of a definition waits.
const partitionsBound = 2 * time.Minute

// wrongPartition says what is not as it should be, empty when all is.
func wrongPartition(w *world.World) string {
	for _, p := range w.Running() {
		for i := range p.View.Partitions {
			is := &p.View.Partitions[i]
			if len(is.Changes) > 0 || is.Has() != min(is.Wanted, p.View.CountUp()) {
				return fmt.Sprintf("%q has %d instances of %d at %s, and %d changes", is.Path, is.Has(), is.Wanted,
					w.Name(p.ID), len(is.Changes))
			}
			for _, id := range is.Instances {
				if m, ok := p.View.Member(id); !id.IsZero() && (!ok || m.Status != membership.Up) {
					return fmt.Sprintf("%q has an instance on %s, which is no member that is up", is.Path, w.Name(id))
				}
			}
		}
	}
	return ""
}
