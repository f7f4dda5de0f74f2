// Tenures of a few nodes: they begin, an owner that is lost is proven ended, and it handles nothing by then (MEM-10).

package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

var fewSeats = TenureConfig{Voters: 3, Grant: 2500 * time.Millisecond}

// electorate returns so many nodes with tenures, which all hold theirs.
func electorate(t *testing.T, nodes int, change ...func(*Config)) *wires {
	w := &wires{t: t}
	for i := range nodes {
		self := id(fmt.Sprintf("10.0.0.%d", i+1))
		c := Config{Self: self, Seed: uint64(i), Tenure: fewSeats}
		for _, f := range change {
			f(&c)
		}
		w.nodes = append(w.nodes, &end{id: self, n: New(c)})
	}
	for _, e := range w.nodes {
		_, until := Tenure(e.n)
		require.Equal(t, NoLease, until, "nothing lives here yet")
		require.NoError(t, e.n.Do(0, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
		w.drain(e)
	}
	w.run(time.Minute, func() bool { return w.hold(w.nodes...) })
	require.True(t, w.hold(w.nodes...))
	return w
}

// hold reports whether these nodes are Up and handle messages.
func (w *wires) hold(nodes ...*end) bool {
	for _, e := range nodes {
		s, until := Tenure(e.n)
		if !s.Held || until <= w.now || e.n.Suspended() {
			return false
		}
	}
	return true
}

func (w *wires) without(e *end) (rest []*end) {
	for _, o := range w.nodes {
		if o != e {
			rest = append(rest, o)
		}
	}
	return rest
}

// TestTenureBegins: nodes handle nothing before a quorum of seats vouches for them; that is nothing to report while the
// cluster forms.
func TestTenureBegins(t *testing.T) {
	w := electorate(t, 3)
	for _, e := range w.nodes {
		require.Empty(t, e.told)
		s, _ := Tenure(e.n)
		require.GreaterOrEqual(t, s.Seat, 0, "three members, three seats")
	}
	w.run(20*time.Second, func() bool { return !w.hold(w.nodes...) })
	require.True(t, w.hold(w.nodes...), "and it is renewed in time")
}

// TestLonelyNodeHasNoTenure: one alone is no quorum of three seats, and says so.
func TestLonelyNodeHasNoTenure(t *testing.T) {
	w := &wires{t: t}
	e := &end{id: id("10.0.0.1"), n: New(Config{Self: id("10.0.0.1"), Seed: 1, Tenure: fewSeats})}
	w.nodes = []*end{e}
	require.NoError(t, e.n.Do(0, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
	w.run(time.Minute, func() bool { return len(e.told) > 0 })
	require.Equal(t, membership.NodeSuspended, e.told[0].Kind)
	require.Contains(t, e.told[0].Detail, "it has no tenure yet: no seat has a holder yet: that takes 2 members")
	require.True(t, e.n.Suspended())
}

// TestSleepersEndIsProven: a member that stands still is proven ended by the words of the seats, and by then it handles
// nothing; nor does it when it wakes (AVL-5).
func TestSleepersEndIsProven(t *testing.T) {
	for victim := range 5 {
		w := electorate(t, 5)
		e := w.nodes[victim]
		e.asleep = true
		slept := w.now
		_, until := Tenure(e.n)
		proven := func(o *end) bool {
			m, in := o.view.Member(e.id)
			return in && m.Cause == cluster.CauseProvenDead || !in
		}
		w.run(time.Minute, func() bool { return proven(w.without(e)[0]) })
		require.Greater(t, w.now, until, "its last grants have run out")
		require.Less(t, w.now-slept, 8*time.Second)
		w.run(time.Minute, func() bool {
			for _, o := range w.without(e) {
				if !proven(o) {
					return false
				}
			}
			return w.hold(w.without(e)...)
		})
		require.True(t, w.hold(w.without(e)...), "the others go on")
		e.asleep = false
		w.run(10*time.Second, func() bool {
			_, until := Tenure(e.n)
			require.LessOrEqual(t, until, w.now)
			return e.n.health.ended != nil
		})
		require.NotNil(t, e.n.health.ended, "it learns of its end")
	}
}

// TestTenureFrames: a node without tenures knows none of their frames, and nonsense is refused.
func TestTenureFrames(t *testing.T) {
	n := New(Config{Self: id("10.0.0.1"), Seed: 1})
	require.ErrorIs(t, n.Handle(0, 0, id("10.0.0.2"), wire.KindTenure, []byte{1, 1}), ErrNotMine)
	n = New(Config{Self: id("10.0.0.1"), Seed: 1, Tenure: fewSeats})
	require.Error(t, n.Handle(0, 0, id("10.0.0.2"), wire.KindTenure, []byte{77}))
}

// TestTenureSettings: all nodes must have the same, and earlier builds are refused by a line that they compare too.
func TestTenureSettings(t *testing.T) {
	value := func(c Config) string {
		for _, s := range (&Terms{Config: c}).Joins() {
			if s.Key == "kith.takeover-time" {
				return s.Value
			}
		}
		return ""
	}
	require.Equal(t, "derived", value(Config{}))
	require.Equal(t, `derived with tenure voters=3 grant=2.5s role=""`, value(Config{Tenure: fewSeats}))
	require.True(t, Config{Tenure: fewSeats}.sharding().ProofOnly)
	require.Negative(t, Config{Tenure: fewSeats}.forming().WeaklyUpAfter)
}

// TestSeatsDecideACut: of a cut the side with a quorum of the seats lives, though it has fewer members (MEM-10).
func TestSeatsDecideACut(t *testing.T) {
	w := electorate(t, 5)
	var holders, rest []*end
	for _, e := range w.nodes {
		if s, _ := Tenure(e.n); s.Seat >= 0 && len(holders) < 2 {
			holders = append(holders, e)
		} else {
			rest = append(rest, e)
		}
	}
	require.Len(t, holders, 2)
	for _, e := range rest {
		e.asleep = true
	}
	w.run(2*time.Minute, func() bool { return len(holders[0].view.Members) == 2 && w.hold(holders...) })
	require.True(t, w.hold(holders...), "two of five live on")
	for _, e := range holders {
		e.asleep = true
	}
	w = electorate(t, 5)
	rest = nil
	for _, e := range w.nodes {
		if s, _ := Tenure(e.n); s.Seat >= 0 && len(rest) < 2 {
			e.asleep = true
			rest = append(rest, e)
		}
	}
	var others []*end
	for _, e := range w.nodes {
		if !e.asleep {
			others = append(others, e)
		}
	}
	w.run(2*time.Minute, func() bool {
		for _, e := range others {
			if e.n.health.ended == nil {
				return false
			}
		}
		return true
	})
	for _, e := range others {
		require.NotNil(t, e.n.health.ended, "three of five without a quorum of the seats go")
	}
}

// TestFewWithTheSeatsProveEnds: members that hold a quorum of the seats prove the ends of all others as soon as they
// miss them, however few they are: no resolver has a part in it (SHD-4, storm 14200000375).
func TestFewWithTheSeatsProveEnds(t *testing.T) {
	w := electorate(t, 5)
	var few, many []*end
	for _, e := range w.nodes {
		if s, _ := Tenure(e.n); s.Seat >= 0 && len(few) < 2 {
			few = append(few, e)
		} else {
			many = append(many, e)
			e.asleep = true
		}
	}
	cut := w.now
	w.run(time.Minute, func() bool {
		return !slices.ContainsFunc(many, func(e *end) bool {
			m, in := few[0].view.Member(e.id)
			return in && m.Cause != cluster.CauseProvenDead
		})
	})
	require.Less(t, w.now-cut, 8*time.Second)
	w.run(time.Minute, func() bool { return len(few[0].view.Members) == 2 && w.hold(few...) })
	require.True(t, w.hold(few...), "they go on")
}

// TestWhoProvesEnds: of those that do not answer the larger side looks for proof, and the one with a quorum of the
// seats. While others may have no list yet it does not: they may found an electorate of their own (MEM-10).
func TestWhoProvesEnds(t *testing.T) {
	for _, c := range []struct {
		name            string
		self            int
		silent          []int
		founded, proves bool
	}{
		{name: "the larger side", self: 3, silent: []int{1, 2}, proves: true},
		{name: "few with the seats", self: 1, silent: []int{3, 4, 5}, founded: true, proves: true},
		{name: "few with the seats of a first list", self: 1, silent: []int{3, 4, 5}},
		{name: "few without the seats", self: 1, silent: []int{2, 3, 5}, founded: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &membership.View{Self: id(fmt.Sprintf("10.0.0.%d", c.self))}
			for i := range 5 {
				m := membership.Member{ID: id(fmt.Sprintf("10.0.0.%d", i+1)), Status: membership.Up}
				v.Members = append(v.Members, m)
			}
			list := tenure.Seats{Number: 1, Holders: []peer.ID{v.Members[0].ID, v.Members[1].ID, v.Members[2].ID}}
			for _, i := range c.silent {
				v.Unreachable = append(v.Unreachable, v.Members[i-1].ID)
			}
			n := New(Config{Self: v.Self, Seed: 1, Tenure: fewSeats})
			require.NoError(t, n.tenures.m.Do(0, tenure.ViewCommand{Seats: list}))
			n.tenures.founded, n.fed, n.suspension.member = c.founded, v, true
			ids, _ := n.tenures.lost.gather(n)
			require.Equal(t, c.proves, len(ids) == len(c.silent), "%v", ids)
		})
	}
}

// withoutResolver returns five nodes with tenures of which the leader lists two holders as Down that died: no quorum of
// the three seats is left.
func withoutResolver(t *testing.T, word cluster.Refound) (w *wires, left []*end) {
	w = electorate(t, 5, func(c *Config) { c.Resolver.Strategy, c.Tenure.Refound = ResolverOff, word })
	var dead []*end
	for _, e := range w.nodes {
		if s, _ := Tenure(e.n); s.Seat > 0 {
			e.asleep = true
			dead = append(dead, e)
			continue
		}
		left = append(left, e)
	}
	require.Len(t, dead, 2)
	require.ErrorIs(t, left[0].n.Do(w.now, RefoundCommand{}), membership.ErrNoRefound, "two of three seats are held")
	w.drain(left[0])
	for _, e := range dead {
		require.NoError(t, left[0].n.Do(w.now, membership.DownCommand{ID: e.id}))
		w.drain(left[0])
	}
	return w, left
}

// TestRefoundByOperator: when a quorum of the seats is lost for good nothing is handled until an operator says that all
// that are Down have ended; then others get the seats (ended-before-refounding, MEM-10).
func TestRefoundByOperator(t *testing.T) {
	w, left := withoutResolver(t, cluster.RefoundByOperator)
	w.run(time.Minute, func() bool { return len(left[0].view.Members) == 3 })
	require.Len(t, left[0].view.Members, 3, "both are removed")
	was := Electorate(left[0].n)
	w.run(time.Minute, func() bool { return w.hold(left[0]) })
	require.False(t, w.hold(left[0]))
	require.Equal(t, was, Electorate(left[0].n))
	waits, _, assumed := Refounding(left[0].n)
	require.Len(t, waits, 2)
	require.False(t, assumed)
	require.NoError(t, left[2].n.Do(w.now, RefoundCommand{}), "at any member")
	w.drain(left[2])
	w.run(time.Minute, func() bool { return w.hold(left...) })
	require.True(t, w.hold(left...))
	require.Equal(t, was.Number+1, Electorate(left[0].n).Number)
	require.ErrorIs(t, left[2].n.Do(w.now, RefoundCommand{}), membership.ErrNoRefound)
	w.drain(left[2])
	without := New(Config{Self: id("10.0.0.1"), Seed: 1})
	require.Error(t, without.Do(0, RefoundCommand{}))
}

// TestRefoundByTakeover: it may be assumed a takeover time after the last of them was seen Down, and not before.
func TestRefoundByTakeover(t *testing.T) {
	w, left := withoutResolver(t, cluster.RefoundByTakeover)
	begin := w.now
	waits, at, assumed := Refounding(left[0].n)
	require.Len(t, waits, 2)
	require.True(t, assumed)
	require.Equal(t, begin+left[0].n.Takeover(), at)
	w.run(time.Minute, func() bool { return !w.hold(left...) })
	w.run(2*time.Minute, func() bool { return w.hold(left...) })
	require.True(t, w.hold(left...))
	require.GreaterOrEqual(t, w.now, at)
	require.Less(t, w.now, at+15*time.Second)
}

// TestSleeperRefounds: a leader that has slept assumes it as soon as members have said that it is one of them. It does
// not wait for a coordinator to confirm what lives there: that one waits for the electorate (MEM-10).
func TestSleeperRefounds(t *testing.T) {
	w, left := withoutResolver(t, cluster.RefoundByTakeover)
	lead := left[0].n
	require.Equal(t, lead.fed.Self, lead.fed.Leader)
	w.run(time.Second, func() bool { return false })
	for _, c := range []struct {
		name                string
		on, resolver, known bool
		assumes             bool
	}{
		{"awake", false, false, false, true},
		{"asleep until now", true, false, false, false},
		{"a member", true, false, true, true},
		{"stopped by the resolver", true, true, true, false},
	} {
		s := &lead.suspension
		s.on, s.resolver, s.known = c.on, c.resolver, c.known
		_, ok := lead.tenures.found.next(lead)
		require.Equal(t, c.assumes, ok, c.name)
	}
	lead.suspension.on, lead.suspension.resolver, lead.suspension.known = false, false, false
	lead.suspend("a test")
	require.True(t, lead.suspension.outdated())
	w.drain(left[0])
	w.run(5*time.Second, func() bool { return !lead.suspension.outdated() })
	require.False(t, lead.suspension.outdated(), "members have answered")
}

// TestSleeperAssumes: a leader that has slept waits for the word of the coordinator about what lives there, which is
// ready when the lost have ended. That they have the leader assumes as soon as others say that it is a member yet, and
// not before: each would wait for the other for ever. Found by storm 11700003327 (MEM-10).
func TestSleeperAssumes(t *testing.T) {
	alone := func(c *Config) { c.Resolver.Strategy, c.Tenure.Refound = ResolverOff, cluster.RefoundByTakeover }
	w := electorate(t, 4, alone)
	c := Config{Self: id("9.0.0.1"), Seed: 9, Tenure: fewSeats}
	alone(&c)
	e := &end{id: c.Self, n: New(c)}
	w.nodes = append(w.nodes, e)
	require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
	w.drain(e)
	w.run(time.Minute, func() bool { return w.hold(w.nodes...) && e.view.Leader == e.id })
	for _, o := range w.nodes {
		require.NoError(t, o.n.Do(w.now, shard.RegisterCommand{Settings: books}))
		require.NoError(t, o.n.Do(w.now, shard.WantCommand{Type: books.ID(), Shards: []route.ShardID{0, 1, 2, 3}}))
		w.drain(o)
	}
	w.run(5*time.Second, func() bool { return false })
	for _, dead := range w.nodes[:2] {
		dead.asleep = true
		require.NoError(t, e.n.Do(w.now, membership.DownCommand{ID: dead.id}))
		w.drain(e)
	}
	w.run(time.Second, func() bool { return false })
	e.asleep = true
	w.run(e.n.Takeover()*3/4, func() bool { return false }) // the others do not assume it meanwhile
	mute := true
	w.tap = func(m peer.Mail) bool { return !mute || m.Kind != wire.KindConfirmAck }
	w.refused = func(*end, peer.ID) {}
	e.asleep = false
	left, was := w.nodes[2:], Electorate(e.n)
	w.run(time.Minute, func() bool { return w.hold(left...) })
	require.Len(t, e.view.Members, 3)
	require.Equal(t, was, Electorate(e.n), "nobody has said that it is a member")
	mute = false
	w.run(time.Minute, func() bool { return w.hold(left...) })
	require.True(t, w.hold(left...))
}

// TestOutagesWithoutAQuorum: when a quorum of the seats is lost nobody proves an end, so nobody knows when the shards
// of lost members are served again, or a takeover time after the last was seen Down (AVL-5).
func TestOutagesWithoutAQuorum(t *testing.T) {
	for _, word := range []cluster.Refound{cluster.RefoundByOperator, cluster.RefoundByTakeover} {
		w, left := withoutResolver(t, word)
		var o Outages
		cfg := Config{Tenure: fewSeats}
		o.Follow(w.now, left[0].n, cfg, left[0].view, func(peer.ID) int { return 5 })
		later := o.At(w.now + 10*time.Second)
		require.Len(t, later, 2)
		_, at, assumed := Refounding(left[0].n)
		for _, x := range later {
			require.True(t, x.Decided)
			require.Equal(t, 5, x.Shards)
			if assumed {
				require.Equal(t, at, x.Until)
			} else {
				require.Zero(t, x.Until)
				require.Len(t, o.At(w.now+time.Hour), 2, "they wait")
			}
		}
		require.NoError(t, left[0].n.Do(w.now, RefoundCommand{}))
		w.drain(left[0])
		o.Follow(w.now, left[0].n, cfg, left[0].view, func(peer.ID) int { return 5 })
		require.Empty(t, o.At(w.now), "proven: nothing is waited for")
	}
}

// TestSeekerMarks: a node that hears of a quorum of the seats that somebody's tenure is over writes that into its own
// state before the shards are free, though nobody else has brought it that the owner is Down. The holders that said so
// die then: it is known to those that are left, and they can grant to the owner no more (seeker-marks, MEM-10).
func TestSeekerMarks(t *testing.T) {
	w := electorate(t, 5)
	var holders, others []*end
	for _, e := range w.nodes {
		if s, _ := Tenure(e.n); s.Seat >= 0 {
			holders = append(holders, e)
		} else {
			others = append(others, e)
		}
	}
	owner, seeker, left := holders[2], others[0], others[1]
	owner.asleep = true
	w.tap, w.refused = func(m peer.Mail) bool { return m.Kind != wire.KindTenure }, func(*end, peer.ID) {}
	w.run(time.Minute, func() bool { return seeker.n.tenures.m.Seeks() })
	down := func(e *end) bool {
		m, in := e.view.Member(owner.id)
		return !in || m.Status == membership.Down
	}
	require.False(t, down(seeker), "it is missed, and for nobody Down")
	for _, h := range holders[:2] { // they have taken it for Down, and die before anybody else hears of that
		h.asleep = true
		list := Electorate(seeker.n)
		word := peer.AppendID(wire.AppendUvarint([]byte{6}, uint64(list.Number)), list.Writer)
		require.NoError(t, seeker.n.Handle(w.now, w.now, h.id, wire.KindTenure, peer.AppendID(word, owner.id)))
		w.drain(seeker)
	}
	for _, l := range seeker.n.shards.Losses(nil) {
		require.True(t, l.Proven, "its shards are free")
	}
	m, in := seeker.view.Member(owner.id)
	require.True(t, in)
	require.Equal(t, membership.Down, m.Status)
	require.Equal(t, cluster.CauseProvenDead, m.Cause)
	require.False(t, down(left))
	w.run(10*time.Second, func() bool { return down(left) })
	require.True(t, down(left))
}

// TestOrdersCarryTheirProofs: a coordinator sends the proofs that it knows before the first order to each member, in
// the same stream (orders-carry).
func TestOrdersCarryTheirProofs(t *testing.T) {
	w := electorate(t, 3)
	coordinator := w.nodes[0]
	for _, e := range w.nodes {
		e.n.tenures.ends.learns([]peer.ID{id("10.0.0.9")})
	}
	kinds := map[peer.ID][]wire.Kind{}
	w.tap = func(m peer.Mail) bool {
		if m.Kind == wire.KindSegment {
			kinds[m.To] = append(kinds[m.To], wire.Kind(m.Body[33]))
		}
		return true
	}
	for _, e := range w.nodes {
		require.NoError(t, e.n.Do(w.now, shard.RegisterCommand{Settings: books}))
		require.NoError(t, e.n.Do(w.now, shard.WantCommand{Type: books.ID(), Shards: []route.ShardID{0, 1, 2, 3}}))
		w.drain(e)
	}
	ordered := func(e *end) int { return slices.Index(kinds[e.id], wire.KindHostShards) }
	w.run(time.Minute, func() bool { return ordered(w.nodes[1]) >= 0 && ordered(w.nodes[2]) >= 0 })
	for _, e := range w.without(coordinator) {
		at := slices.Index(kinds[e.id], wire.KindTenure)
		require.GreaterOrEqual(t, at, 0)
		require.Less(t, at, ordered(e))
		require.Equal(t, 1, coordinator.n.tenures.ends.sent[e.id], "once")
	}
}
