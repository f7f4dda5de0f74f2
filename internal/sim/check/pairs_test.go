// Tests of which process is lost for which: what a lost side may do beside those that have lost it, and what not among
// its own.

package check

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// downs makes a process show others as Down.
func downs(w *world.World, by *world.Process, others ...*world.Process) {
	v := *by.View
	v.Members, v.Converged = slices.Clone(v.Members), false
	for i := range v.Members {
		for _, q := range others {
			if m := &v.Members[i]; m.ID == q.ID {
				checks(w).Excuse(q.ID)
				m.Status, m.Cause = membership.Down, membership.CauseResolver
			}
		}
	}
	by.View = &v
	checks(w).View(by, by.View)
}

// TestConfirmedByOneThatLostItLater: c loses a, which sleeps and goes on; b has it for a member then, and confirms it.
// That b loses it later, too, stops nothing that a does. It has to have stopped where b had lost it before it went on.
// Found by storm 22000001005.
func TestConfirmedByOneThatLostItLater(t *testing.T) {
	for _, before := range []bool{false, true} {
		w := watched(t, 3, setup.Config{})
		a, b, c := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
		w.Now += time.Second
		downs(w, c, a)
		if before {
			downs(w, b, a)
		}
		w.Now += time.Second
		a.Overslept = w.Now
		w.Now += time.Second
		downs(w, b, a)
		require.Equal(t, before, checks(w).pairs.overslept(b, a), before)
		require.True(t, checks(w).pairs.overslept(c, a))
	}
}

// TestALostSideIsHeldToItsOwnRules: c has lost a and b, which have not heard of it and hold each other for members.
// That excuses each of them beside c, and neither beside the other (SHD-9, MEM-10).
func TestALostSideIsHeldToItsOwnRules(t *testing.T) {
	typ := &world.EntityType{Type: entity.Type{Name: "t", Shards: 2, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { return nil })
		}}}
	id := route.TypeOf("t")
	key := world.ShardKey{Type: id, Shard: 0}
	fence := func(term, epoch uint32) route.Fence { return route.MakeFence(9, term, epoch) }
	envelope := func(term uint32) *wire.Envelope { return &wire.Envelope{Term: term, Epoch: 1} }
	for name, k := range map[string]struct {
		want []string // rules that are broken
		do   func(w *world.World, a, b, c *world.Process)
	}{
		"an owner beside that of those who have lost it": {nil, func(w *world.World, a, b, c *world.Process) {
			world.FeignSuspended(a, true)
			checks(w).Hosts(a, key, fence(9, 1))
			w.Now += w.Takeover()
			checks(w).Hosts(c, key, fence(10, 1))
			require.True(t, checks(w).Write(c, id, "x", fence(10, 1)))
			require.False(t, checks(w).Write(a, id, "x", fence(9, 1)))
		}},
		"an owner that handles messages beside it": {[]string{"late-handling"}, func(w *world.World, a, b, c *world.Process) {
			world.FeignSuspended(a, true)
			checks(w).Hosts(a, key, fence(9, 1))
			w.Now += w.Takeover()
			checks(w).Delivers(a, key, envelope(9))
			checks(w).Hosts(c, key, fence(10, 1))
			checks(w).Delivers(a, key, envelope(9))
			require.Empty(t, checks(w).Violations, "it is suspended")
			world.FeignAwake(a)
			checks(w).Delivers(a, key, envelope(9))
		}},
		"two owners among the lost": {[]string{"two-owners"}, func(w *world.World, a, b, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Hosts(b, key, fence(9, 2))
		}},
		"one after the other": {nil, func(w *world.World, a, b, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Stopped(a, key, true)
			checks(w).Hosts(b, key, fence(9, 2))
		}},
		"one lost the other first": {nil, func(w *world.World, a, b, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			downs(w, b, a)
			checks(w).Hosts(b, key, fence(9, 2))
		}},
		"a fence again": {[]string{"fence-order"}, func(w *world.World, a, _, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Stopped(a, key, true)
			checks(w).Hosts(a, key, fence(9, 1))
		}},
		"a message under another fence": {[]string{"delivery-fence"}, func(w *world.World, a, _, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Delivers(a, key, envelope(8))
		}},
		"a message where it does not live": {[]string{"delivery-fence"}, func(w *world.World, a, _, _ *world.Process) {
			checks(w).Delivers(a, key, envelope(9))
		}},
		"given out while it lives among the lost": {[]string{"allocation"}, func(w *world.World, a, b, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).allocated(b, &shard.Event{Type: id, Home: b.ID, Fence: fence(9, 2)})
		}},
		"two coordinators among the lost": {[]string{"two-coordinators"}, func(w *world.World, a, b, _ *world.Process) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
		}},
		"a coordinator on each side": {nil, func(w *world.World, a, _, c *world.Process) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).ready(c, &shard.Event{Type: 7, Term: 2})
		}},
		"one coordinator after the other": {nil, func(w *world.World, a, b, _ *world.Process) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).Shard(a, &shard.Event{Kind: shard.CoordinatorStopped, Type: 7})
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
		}},
		"a late write among the lost": {[]string{"late-owner"}, func(w *world.World, a, b, _ *world.Process) {
			checks(w).Write(a, id, "x", fence(9, 2))
			checks(w).Write(b, id, "x", fence(9, 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, setup.Config{}, typ)
			a, b, c := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
			downs(w, c, a, b)
			require.Empty(t, checks(w).Violations)
			k.do(w, a, b, c)
			var rules []string
			for _, v := range checks(w).Violations {
				rules = append(rules, v.Rule)
			}
			require.Equal(t, k.want, rules, "%v", checks(w).Violations)
		})
	}
}

// TestWhoIsGoneForWhom: for oneself, and for members in the view of one that has lost it; not for the others on its
// side; newcomers take over since when from those that admit them.
func TestWhoIsGoneForWhom(t *testing.T) {
	w := formed(t, 4, setup.Config{})
	var p [4]*world.Process
	for i := range p {
		p[i] = w.Hosts[i].Process
	}
	r := &checks(w).pairs
	_, gone := r.goneFor(p[0].ID, p[1].ID)
	require.False(t, gone)
	at := w.Now + time.Second
	r.loses(p[2], p[0].ID, at)
	r.loses(p[2], p[1].ID, at)
	since, gone := r.goneFor(p[2].ID, p[0].ID)
	require.True(t, gone)
	require.Equal(t, at, since)
	_, gone = r.goneFor(p[3].ID, p[0].ID)
	require.True(t, gone, "the one that has lost it holds the fourth")
	_, gone = r.goneFor(p[1].ID, p[0].ID)
	require.False(t, gone, "they went together")
	require.False(t, r.apart(p[0].ID, p[1].ID))
	require.True(t, r.apart(p[0].ID, p[3].ID))
	r.loses(p[2], p[3].ID, at+time.Second)
	_, gone = r.goneFor(p[3].ID, p[0].ID)
	require.True(t, gone, "it has held it a while")
	r.loses(p[3], p[1].ID, at+time.Minute)
	require.Equal(t, at, r.lost[reportKey{p[3].ID, p[1].ID}])
	early := &world.Process{ID: peer.ID{Addr: p[0].ID.Addr, Inc: 77}}
	r.loses(early, p[1].ID, at-time.Minute)
	m, _ := p[3].View.Member(p[3].ID)
	r.shows(early, &m, at)
	require.Equal(t, at-time.Minute, r.lost[reportKey{p[3].ID, p[1].ID}], "it hears of it")
	m, _ = p[0].View.Member(p[1].ID)
	newcomer := &world.Process{ID: p[0].ID}
	newcomer.ID.Inc++
	r.loses(newcomer, p[1].ID, at)
	require.True(t, r.apart(newcomer.ID, p[1].ID))
	r.shows(newcomer, &m, at)
	require.False(t, r.apart(newcomer.ID, p[1].ID), "it had not come yet")
}

// TestASuspendedCoordinatorOfAnOldCluster: the node that formed a cluster anew has seen nothing of one that overslept
// the end of the old one. It may be a coordinator there, as long as it has stopped; one that goes on is a second one
// (JOIN-1).
func TestASuspendedCoordinatorOfAnOldCluster(t *testing.T) {
	for name, k := range map[string]struct {
		held   bool
		born   uint64 // of the newcomer's cluster beside that of the other one
		voters int
		want   int
	}{
		"it has stopped":          {true, 1, 0, 0},
		"it goes on":              {false, 1, 0, 2},
		"it stopped in this one":  {true, 0, 0, 2},
		"it goes on in this one":  {false, 0, 0, 2},
		"it stopped in a new one": {true, ^uint64(0), 0, 2},
		"it has no seat there":    {true, ^uint64(0), 3, 0},
		"nor here":                {true, 0, 3, 2},
		"it has one there":        {false, ^uint64(0), 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 2, setup.Config{})
			old, fresh := w.Hosts[0].Process, w.Hosts[1].Process
			v := *fresh.View
			v.Birth += k.born
			fresh.View = &v
			world.FeignSuspended(old, k.held)
			w.Config.TenureVoters = k.voters
			checks(w).seat(old, &shard.Event{Type: 7, Term: 4})
			checks(w).seat(fresh, &shard.Event{Type: 7, Term: 1})
			checks(w).seat(old, &shard.Event{Type: 7, Term: 4})
			require.Len(t, checks(w).Violations, k.want, "%v", checks(w).Violations)
		})
	}
}

// TestASuspendedCoordinatorOfAnotherSide: where both sides of a cut live one that has joined a side since is nobody's
// loss. It may coordinate there beside a coordinator of the other side that is suspended, and beside no other one
// (MEM-10).
func TestASuspendedCoordinatorOfAnotherSide(t *testing.T) {
	for name, k := range map[string]struct {
		strategy  sbr.Strategy
		held, cut bool
		want      int
	}{
		"it has stopped":       {node.ResolverUnsafeAutoDown, true, true, 0},
		"it goes on":           {node.ResolverUnsafeAutoDown, false, true, 2},
		"of the same side":     {node.ResolverUnsafeAutoDown, true, false, 2},
		"only one side may go": {node.ResolverKeepMajority, true, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := setup.Config{}
			c.Resolver.Strategy = k.strategy
			w := formed(t, 3, c)
			first, giver, newcomer := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
			if k.cut {
				checks(w).pairs.loses(giver, first.ID, w.Now)
			}
			world.FeignSuspended(first, k.held)
			checks(w).seat(first, &shard.Event{Type: 7, Term: 1})
			checks(w).seat(newcomer, &shard.Event{Type: 7, Term: 3})
			checks(w).seat(first, &shard.Event{Type: 7, Term: 1})
			require.Len(t, checks(w).Violations, k.want, "%v", checks(w).Violations)
		})
	}
}
