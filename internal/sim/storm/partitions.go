// Partitions of a storm: members define, move and delete them; instances run in its processes where it draws some.

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
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// Paths are those of a storm's partitions; Handoffs all that mean something.
var (
	Paths    = []string{"a", "a/b", "market/prices", "z/y/x"}
	Handoffs = []cluster.Handoff{cluster.Stateless, {Old: cluster.OldForwards}, {Old: cluster.OldDrops},
		{Late: cluster.LateDrops}, cluster.Lossy, cluster.Ordered, {New: cluster.NewBuffers},
		{Old: cluster.OldDrops, New: cluster.NewBuffers}}
)

// Instances are the instances of a storm's partitions, which run in its processes: code of packages above this one.
type Instances interface {
	// Allows reports whether members may give a command that was drawn.
	Allows(cmd membership.Command) bool
	// Demand is called when faults are over and the table has come to rest: what has to hold then.
	Demand()
}

// Stage is what instances get of their storm.
type Stage struct {
	World *world.World
	Rand  *rand.Rand // for what they draw
	// Topics is for what is drawn of topics; nil: this storm has none.
	Topics *rand.Rand
	s      *storm
}

// Quiet reports whether the load is over, or about to be.
func (g *Stage) Quiet() bool { return g.s.quiet() }

// Violate notes a rule that is broken, at a process or, with nil, in the whole cluster.
func (g *Stage) Violate(p *world.Process, rule, format string, args ...any) {
	g.s.check.Violate(p, rule, format, args...)
}

// MovedByHand notes that a shard is about to be moved by hand.
func (g *Stage) MovedByHand(typ string, n route.ShardID, to peer.ID) {
	check.MovedByHand(g.s.check, world.ShardKey{Type: route.TypeOf(typ), Shard: n}, to)
}

// Drains has a process drain, or not any more, and returns what it says.
func (g *Stage) Drains(p *world.Process, on bool) (err error) {
	carryOut := func() error {
		err = p.Command(shard.DrainCommand{On: on})
		return err
	}
	if on {
		check.Drains(g.s.check, p, carryOut)
		return err
	}
	return carryOut()
}

// Lost reports whether a process is down for another one, whether it knows it or not.
func (g *Stage) Lost(p *world.Process) bool { return g.World.Watcher.Lost(p.ID) }

// DrawsInstances reports whether a storm of a seed has instances, when it may.
func DrawsInstances(seed uint64, without []string) bool {
	s := &storm{seed: seed, draws: draws{without: without}}
	_, tables := s.draw(OffPartitions, 3)
	_, is := s.draw(OffInstances, 2)
	return tables && is && !oldCredit(seed) // an earlier version has no headers
}

// planPartitions has members define, move and delete partitions, and hand instances over, some of them never before the
// calm.
func planPartitions(rng *rand.Rand, s *storm) {
	if s.instances == nil {
		handOver(rng, s)
	}
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
			if s.instances != nil && !s.instances.Allows(cmd) {
				return
			}
			p.Live(func() { p.Do(cmd) }) // refused when it makes no sense (any more)
		}
	})
}

// drawTable draws what one says of partitions.
func drawTable(rng *rand.Rand, up []*world.Process) membership.Command {
	path := Paths[rng.IntN(len(Paths))]
	switch rng.IntN(8) {
	case 0:
		return membership.UndefineCommand{Path: path}
	case 1, 2, 3:
		return membership.MoveInstanceCommand{Path: path, Slot: rng.IntN(3), To: up[rng.IntN(len(up))].ID}
	}
	d := membership.DefineCommand{Definition: cluster.PartitionDefinition{Path: path,
		Handoff: Handoffs[rng.IntN(len(Handoffs))], Hint: rng.IntN(500)}}
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
				what := ""
				for _, c := range is.Changes {
					what += fmt.Sprintf(", slot %d from %s to %s", c.Slot, w.Name(c.From), w.Name(c.To))
				}
				return fmt.Sprintf("%q has %d instances of %d at %s, and %d changes%s, %v", is.Path, is.Has(), is.Wanted,
					w.Name(p.ID), len(is.Changes), what, is.InForce)
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
