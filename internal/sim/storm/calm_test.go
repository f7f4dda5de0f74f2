// Tests of the calm: what is demanded at the end of a storm, and of which processes.

package storm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// rulesBroken are the rules of which the checkers of a world have noted violations.
func rulesBroken(w *world.World) (rules []string) {
	for _, v := range checks(w).Violations {
		rules = append(rules, v.Rule)
	}
	return rules
}

// alone is a world in which nobody downs what is lost but an operator.
var alone = setup.Config{Resolver: node.Resolver{Strategy: node.ResolverOff}}

// TestHealedCore: the living ones of a healed core have to agree, and have no word to wait for of one that has ended.
// Found by storm 9387, in which a core of one ended of itself in the step in which it was healed.
func TestHealedCore(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ends  int // of the two in the core
		cut   bool
		rules []string
	}{
		{"all live", 0, false, nil}, {"one ends", 1, false, nil}, {"both end", 2, false, nil},
		{"two that do not hear each other", 0, true, []string{"core"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := formed(t, 3, alone)
			s := &storm{w: w, check: checks(w), rng: rand.New(rand.NewPCG(1, 1))}
			w.After(time.Millisecond, func() {
				for _, p := range w.Running() {
					if !p.Doomed && tc.ends > 0 {
						p.Crash(true)
						tc.ends--
					}
				}
				for a := range w.Net.Cuts {
					for b := range w.Net.Cuts[a] {
						w.Net.Cuts[a][b] = w.Net.Cuts[a][b] || tc.cut && a != b
					}
				}
			})
			s.healCore()
			require.Equal(t, tc.rules, rulesBroken(w))
		})
	}
}

// TestCalmWithoutACluster: without a resolver, one that may form no cluster waits for a first seed, and when all that
// were in one have ended somebody has to start that; where nobody runs nothing is missing. Found by storm 6952.
func TestCalmWithoutACluster(t *testing.T) {
	for _, others := range []bool{true, false} {
		w := formed(t, 2, alone)
		s := &storm{w: w, check: checks(w)}
		for _, h := range w.Hosts {
			h.Process.Crash(true)
		}
		if others {
			s.startHost(1)
		}
		s.calm()
		require.Empty(t, rulesBroken(w))
		require.Equal(t, others, s.isUp(0) && s.isUp(1))
		require.Equal(t, others, len(w.Running()) > 0)
	}
}

// TestFatesOfACalmThatFails: what waits for a home when the calm has failed is waited for, and not called lost; what is
// nowhere is. Found by storm 6952, which called lost what was parked.
func TestFatesOfACalmThatFails(t *testing.T) {
	for _, nowhere := range []bool{false, true} {
		typ := &world.EntityType{Type: entity.Type{Name: "far", Shards: 1, Role: "nobody's", Mode: entity.Inline,
			New: func(string, route.Fence) entity.Handler { return nil }}}
		cfg := alone
		cfg.Data.ParkWait = 2 * calmBound
		w := formed(t, 1, cfg, typ)
		s := &storm{w: w, check: checks(w), pending: 1} // one that never comes
		p := w.Hosts[0].Process
		r := p.Region(route.TypeOf("far"))
		payload, _ := w.Book.Write(p, r.ID, "a", 20)
		_, err := r.Send("a", payload, 0)
		require.NoError(t, err)
		want := []string{"calm"}
		if nowhere {
			w.Book.Write(p, r.ID, "a", 20)
			want = append(want, "lost")
		}
		s.calm()
		w.Audit()
		require.Equal(t, want, rulesBroken(w))
	}
}

// TestCalmEndsTheSideOfAMistake: without a resolver an operator may down one that lives and hears nobody. When all that
// it knew have begun anew by the time that it hears again, nobody is left that could tell it, and nodes that joined it
// meanwhile are in a cluster of their own: the operator ends that side. Two clusters for any other reason are a
// violation. Found by the heavy storm 160.
func TestCalmEndsTheSideOfAMistake(t *testing.T) {
	for _, mistake := range []bool{true, false} {
		w := formed(t, 5, alone)
		s := &storm{w: w, check: checks(w)}
		main := func(i int) bool { return i < 2 }
		for a := range w.Net.Cuts {
			for b := range w.Net.Cuts[a] {
				w.Net.Cuts[a][b] = main(a) != main(b)
			}
		}
		begin := func(i, at int) { // the host's process begins anew, and joins the one of another host
			old := w.Hosts[i].Process
			old.Crash(true)
			s.down(w.Hosts[at].Process, old.ID)
			w.Start(i, w.Seeds([]int{at}))
		}
		lost := w.Hosts[2].Process
		lost.Doomed = mistake
		for i := 2; i < 5; i++ {
			s.down(w.Hosts[0].Process, w.Hosts[i].Process.ID)
		}
		require.True(t, w.Until(time.Minute, func() bool { return len(w.Hosts[0].Process.View.Members) == 2 }))
		for i := range 2 {
			begin(1-i, i)
			require.True(t, w.Until(time.Minute, func() bool { return s.isUp(0) && s.isUp(1) }))
		}
		for i := 3; i < 5; i++ {
			w.Hosts[i].Process.Crash(true)
			w.Start(i, w.Seeds([]int{2}))
		}
		joined := func() bool {
			a, b := w.Hosts[3].Process.View, w.Hosts[4].Process.View
			return a != nil && b != nil && len(a.Members) > 2 && len(b.Members) > 2
		}
		require.True(t, w.Until(time.Minute, joined))
		s.calm()
		if !mistake {
			require.Equal(t, []string{"calm"}, rulesBroken(w))
			continue
		}
		require.Empty(t, rulesBroken(w))
		require.Len(t, w.Running(), 2)
		require.True(t, s.isUp(0) && s.isUp(1))
	}
}

// TestCalmEndsTheSideOfOneProvenOver: without a resolver, a node behind a cut lets two others in; its tenure is proven
// over, and all that it knew begin anew. Then it ends, as it does when it hears. Nobody is left that knows of the two,
// and they know of nobody: an operator ends them. Found by storm 9338121639.
func TestCalmEndsTheSideOfOneProvenOver(t *testing.T) {
	cfg := alone
	cfg.TenureVoters, cfg.TenureGrant = 3, 2*time.Second
	w := formed(t, 5, cfg)
	s := &storm{w: w, check: checks(w), rng: rand.New(rand.NewPCG(1, 1))}
	w.Advance(5 * time.Second) // the seats have holders
	lost := w.Hosts[3].Process
	apart := func(from int) { // hosts from there on and the others
		for a := range w.Net.Cuts {
			for b := range w.Net.Cuts[a] {
				w.Net.Cuts[a][b] = (a < from) != (b < from)
			}
		}
	}
	apart(3)
	over := func() bool { return w.Leases.Tenures.Over(lost.ID) && len(w.Hosts[0].Process.View.Members) == 3 }
	require.True(t, w.Until(time.Minute, over))
	begin := func(i, at int) { // the host's process begins anew, and joins the one of another host
		w.Hosts[i].Process.Crash(true)
		s.down(w.Hosts[at].Process, w.Hosts[i].Process.ID)
		w.Start(i, w.Seeds([]int{at}))
	}
	joined := func(i int) func() bool {
		return func() bool { v := w.Hosts[i].Process.View; return v != nil && len(v.Members) > 1 }
	}
	begin(4, 3)
	require.True(t, w.Until(20*time.Second, joined(4)))
	for i := range 3 {
		begin(i, (i+1)%3)
		require.True(t, w.Until(time.Minute, func() bool { return s.isUp(0) && s.isUp(1) && s.isUp(2) }))
	}
	w.Hosts[2].Process.Crash(true)
	s.down(w.Hosts[0].Process, w.Hosts[2].Process.ID)
	require.True(t, w.Until(time.Minute, func() bool { return len(w.Hosts[0].Process.View.Members) == 2 }))
	apart(2)
	w.Start(2, w.Seeds([]int{4}))
	require.True(t, w.Until(20*time.Second, joined(2)))
	lost.Crash(true)
	require.True(t, astray(s.check, w.Hosts[2].Process), "no operator gives an order there")
	require.False(t, astray(s.check, w.Hosts[0].Process))
	s.calm()
	require.Empty(t, checks(w).Violations)
	require.True(t, s.isUp(0) && s.isUp(1))
}

// TestCalmNeedsNoOrderThatNobodyTook: processes that stood still, and that nobody was there to down then, take the
// operator's orders as any member does.
func TestCalmNeedsNoOrderThatNobodyTook(t *testing.T) {
	w := formed(t, 3, alone)
	s := &storm{w: w, check: checks(w)}
	w.Hosts[0].Process.Doomed, w.Hosts[1].Process.Doomed = true, true
	w.Hosts[2].Process.Crash(true)
	w.Advance(20 * time.Second)
	s.calm()
	require.Empty(t, rulesBroken(w))
	require.True(t, s.isUp(0) && s.isUp(1))
}

// TestNoOrderToTheSideOfAMistake: a node that is downed while it hears nobody, and comes back when all that it knew
// have begun anew, is joined by one that begins now. The operator, who downs the dead, orders that at the others and
// not at these two: a side that lists none of the running ones would take over what lives there. Found by storm
// 1127004558.
func TestNoOrderToTheSideOfAMistake(t *testing.T) {
	s := &storm{}
	typ := &world.EntityType{Type: entity.Type{Name: "owned", Shards: 8}}
	typ.New = func(id string, _ route.Fence) entity.Handler { return taker{s, id} }
	cfg := alone
	cfg.Shard.TakeoverTime = 5 * time.Second
	w := formed(t, 4, cfg, typ)
	s.w, s.check = w, checks(w)
	w.Advance(5 * time.Second) // all shards live
	lost := w.Hosts[1].Process
	s.apart([]int{0, 1}, time.Minute)
	lost.Doomed, lost.Outside = true, true
	begin := func(i, at int) {
		w.Hosts[i].Process.Crash(true)
		s.down(w.Hosts[at].Process, w.Hosts[i].Process.ID)
		w.Start(i, w.Seeds([]int{at}))
		require.True(t, w.Until(time.Minute, func() bool { return s.isUp(i) }))
	}
	before := w.Hosts[2].Process
	s.down(before, lost.ID)
	w.Advance(time.Second)
	require.False(t, astray(s.check, w.Hosts[0].Process), "it has not heard of it, and the others know it")
	w.Hosts[0].Process.Crash(true)
	s.down(before, w.Hosts[0].Process.ID)
	require.True(t, w.Until(time.Minute, func() bool { return len(before.View.Members) == 2 }))
	begin(3, 2)
	begin(2, 3)
	w.Advance(w.Takeover() + 5*time.Second)
	w.Start(0, w.Seeds([]int{1}))
	joined := func() bool { v := w.Hosts[0].Process.View; return v != nil && len(v.Members) > 2 }
	require.True(t, w.Until(20*time.Second, joined))
	require.True(t, astray(s.check, w.Hosts[0].Process))
	require.False(t, astray(s.check, w.Hosts[3].Process))
	s.laterDown(before, time.Second)
	w.Advance(2 * time.Second)
	m, _ := w.Hosts[0].Process.View.Member(before.ID)
	require.Equal(t, membership.Up, m.Status, "nobody else knows it, and this one is told nothing")
	s.calm()
	require.Empty(t, checks(w).Violations)
	require.Len(t, w.Running(), 2)
	require.True(t, s.isUp(2) && s.isUp(3))
}

// TestCalmBringsBackWhomTheOthersRemember: all have died but one, which goes for good while the others are in no
// cluster yet. Where they may form one without it, they do; where the records of the few with the role of the resolver
// bear nobody missing, the supervisor starts its host. Found by storm 971126000228, where two of all might be.
func TestCalmBringsBackWhomTheOthersRemember(t *testing.T) {
	for _, role := range []string{"", "store"} {
		store := []string{"store"}
		cfg := setup.Config{Records: true, Roles: [][]string{store, store, nil, nil, nil},
			Resolver: node.Resolver{Strategy: node.ResolverKeepMajority, Role: role}}
		w := formed(t, 5, cfg)
		w.Advance(5 * time.Second) // all records are written
		s := &storm{w: w, check: checks(w), rng: rand.New(rand.NewPCG(1, 1))}
		last := w.Hosts[1].Process
		for _, h := range w.Hosts {
			if h.Process != last {
				h.Process.Crash(true)
			}
		}
		w.After(time.Millisecond, func() { last.Pause(time.Minute) })
		w.After(repairLook-time.Second, func() { last.Crash(true) })
		s.calm()
		require.Empty(t, checks(w).Violations)
		require.Len(t, w.Running(), 4+len(role)/len("store"))
		require.Equal(t, role != "", s.isUp(1))
	}
}

// TestAsksThatNeverEnd: a process that asks again and again, as one that looks how much others have to do, has an ask
// under way at most moments, and that is no fault; an ask that nobody answers is one. Found by storm 11300000186.
func TestAsksThatNeverEnd(t *testing.T) {
	for _, answered := range []bool{true, false} {
		typ := &world.EntityType{Type: entity.Type{Name: "asked", Shards: 1, Role: "asked"}}
		typ.New = func(string, route.Fence) entity.Handler { return replier(answered) }
		cfg := alone
		cfg.Roles = [][]string{{"asked"}, nil}
		cfg.Data.ParkWait = time.Second
		w := formed(t, 2, cfg, typ)
		w.Advance(5 * time.Second)
		s := &storm{w: w, check: checks(w)}
		p := w.Hosts[1].Process
		var again func()
		again = func() {
			_, err := p.Region(route.TypeOf("asked")).AskWith(nil, time.Hour, "a", nil, func([]byte, error) {
				p.Later(time.Millisecond, again)
			})
			require.NoError(t, err)
		}
		p.Live(again)
		s.demandFates()
		require.Equal(t, answered, len(rulesBroken(w)) == 0, "%v", checks(w).Violations)
	}
}

// replier answers what it is asked, or keeps the ask for ever.
type replier bool

func (r replier) Receive(c *entity.Context, _ []byte) error {
	if !r {
		c.Detach()
		return nil
	}
	return c.Reply(nil)
}

func (replier) Stop(*entity.Context) {}

// TestNoPanicsInTheCalm: when all is to come right no handler panics that would make its entity rest.
func TestNoPanicsInTheCalm(t *testing.T) {
	for _, c := range []struct {
		rests, ending, panics bool
	}{{true, true, false}, {true, false, true}, {false, true, true}, {false, false, true}} {
		s := &storm{load: rand.New(rand.NewPCG(1, 1)), ending: c.ending}
		if c.rests {
			s.crashes = &crashes{rng: s.load, oneIn: 8}
		}
		panics := false
		for range 1000 {
			panics = s.crashes.tumbles(s) || panics
		}
		require.Equal(t, c.panics, panics, "%+v", c)
	}
}

// counted are instances of a storm that note how many processes run when something is demanded of them.
type counted struct {
	w       *world.World
	running []int
}

func (*counted) Allows(membership.Command) bool { return true }

func (c *counted) Demand() {
	for range 20 {
		c.running = append(c.running, len(c.w.Running()))
		c.w.Advance(time.Second)
	}
}

// TestNothingStartsWhileInstancesAreTried: two of four leave in the calm, where there have to be three members, so that
// somebody starts successors. A process that starts defines the partitions of its program, so nothing is demanded of
// instances before (PRT-4). Found by storm 12100002457.
func TestNothingStartsWhileInstancesAreTried(t *testing.T) {
	w := formed(t, 4, setup.Config{Resolver: node.Resolver{Strategy: node.ResolverKeepMajority},
		Membership: membership.Config{MinMembers: 3}})
	c := &counted{w: w}
	s := &storm{w: w, check: checks(w), rng: rand.New(rand.NewPCG(1, 1)), draws: draws{instances: c}}
	for _, i := range []int{0, 1} {
		w.After(doomedBound-3*time.Second, func() { w.Leave(w.Hosts[i].Process) })
	}
	s.calm()
	require.Empty(t, rulesBroken(w))
	require.Equal(t, slices.Repeat([]int{4}, 20), c.running)
}
