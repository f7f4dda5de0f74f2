// Tests of backlogs in front of moves.

package storm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// besides returns a storm of a few hosts that has backlogs, up to its calm.
func besides(t *testing.T) *storm {
	for seed := uint64(1); seed < 1000; seed++ {
		s := newStorm(seed, []string{OffTrials, OffRoles, OffLinks}, false)
		if s.backlogs != nil && len(s.w.Hosts) == 5 && s.w.Config.Shard.MarkTime == 0 && s.w.Config.Shard.MaxHandOver == 0 {
			return s
		}
	}
	require.FailNow(t, "no seed has backlogs")
	return nil
}

// TestMovesBesideBacklogs: shards of each mode move behind more than their handlers take (SHD-9).
func TestMovesBesideBacklogs(t *testing.T) {
	s := besides(t)
	require.Empty(t, s.run().violations)
	require.Positive(t, s.backlogs.moved)
}

// TestMoveThatWaitsIsFound: a move that is given up because a marker does not come, though all have room to send
// theirs, and one that never ends, are violations. Nothing is lost by either.
func TestMoveThatWaitsIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		hinder func(w *world.World, m *backlog)
		says   string
	}{
		"all is well": {func(*world.World, *backlog) {}, ""},
		"no marker comes": {func(w *world.World, m *backlog) {
			for _, h := range w.Hosts[1:] { // not the coordinator
				if p := h.Process; p != m.owner && p != m.to {
					p.Stick(4 * time.Second)
				}
			}
		}, "for want of a marker"},
		"one that is to send a marker is suspended": {func(w *world.World, m *backlog) {
			others := slices.DeleteFunc(w.Running()[1:], func(p *world.Process) bool { return p == m.owner || p == m.to })
			others[0].Stick(4 * time.Second)
			w.After(3*time.Second, func() { world.FeignSuspended(others[1], true) })
		}, ""},
		"it never ends, and another is suspended": {func(w *world.World, m *backlog) {
			m.owner.Stick(time.Hour)
			w.After(markSoon+backlogBound+shard.DefaultMarkTime+shard.DefaultDrainTime, func() {
				world.FeignSuspended(m.to, true)
			})
		}, ""},
		"it never ends": {func(_ *world.World, m *backlog) { m.owner.Stick(time.Hour) }, "has not moved"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storm{}
			typ := &world.EntityType{Type: entity.Type{Name: entity.Worker.String(), Shards: 16, Mode: entity.Worker}}
			typ.New = func(id string, _ route.Fence) entity.Handler { return taker{s, id} }
			s.w = formed(t, 5, setup.Config{Data: setup.DataConfig{Window: 1 << 10}}, typ)
			s.check, s.types, s.ending = checks(s.w), []*world.EntityType{typ}, true
			s.backlogs = &backlogs{s: s, rng: rand.New(rand.NewPCG(1, 1)), deep: 100, most: 100}
			s.demandHomes(s.w.Running(), time.Minute)
			m := s.backlogs.pick(typ)
			for m == nil || m.owner == s.w.Hosts[0].Process {
				m = s.backlogs.pick(typ)
			}
			tc.hinder(s.w, m)
			s.backlogs.move(m)
			late := slices.DeleteFunc(slices.Clone(s.check.Violations), func(v check.Violation) bool {
				return v.Rule != "liveness" // one that is feigned to be suspended does not know it
			})
			if tc.says == "" {
				require.Empty(t, late)
				return
			}
			require.Len(t, late, 1)
			require.Contains(t, late[0].String(), tc.says)
		})
	}
}

// TestMovesWaitForStuckLoops: a control loop that stood still when the faults ended goes on before a move is held to
// its time: its node sends no marker until then. Found by storm 1127600178.
func TestMovesWaitForStuckLoops(t *testing.T) {
	s := &storm{}
	typ := &world.EntityType{Type: entity.Type{Name: entity.Worker.String(), Shards: 16, Mode: entity.Worker}}
	typ.New = func(id string, _ route.Fence) entity.Handler { return taker{s, id} }
	s.w = formed(t, 5, setup.Config{}, typ)
	s.check, s.types, s.ending = checks(s.w), []*world.EntityType{typ}, true
	s.demandHomes(s.w.Running(), time.Minute)
	var m *backlog
	for seed := uint64(1); m == nil || m.owner == s.w.Hosts[0].Process; seed++ { // the same is drawn again below
		s.backlogs = &backlogs{s: s, rng: rand.New(rand.NewPCG(seed, 1)), deep: 100, most: 100}
		m = s.backlogs.pick(typ)
		s.backlogs.rng = rand.New(rand.NewPCG(seed, 1))
	}
	for _, h := range s.w.Hosts[1:] { // not the coordinator
		if p := h.Process; p != m.owner && p != m.to {
			p.Stick(4 * time.Second)
		}
	}
	moveBesideBacklogs(s)
	require.Empty(t, s.check.Violations)
	require.Positive(t, s.backlogs.moved)
}

// taker is an entity of a backlog.
type taker struct {
	s  *storm
	id string
}

func (h taker) Receive(c *entity.Context, b []byte) error {
	if b[0] == probeMark {
		return c.Reply(b)
	}
	w := h.s.w
	w.Delivered(w.Acting, route.TypeOf(c.Type()), h.id, b)
	h.s.backlogs.take(w.Acting, c, b)
	return nil
}

func (taker) Stop(*entity.Context) {}
