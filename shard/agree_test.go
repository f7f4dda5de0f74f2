// Settings that differ between nodes, the role among them: one side is refused, and a shard has one owner (SHD-1,
// SHD-9).

package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The same type for all members, and for those of a role.
var (
	everywhere = Settings{Name: "order", Shards: 4}
	inStore    = Settings{Name: "order", Shards: 4, Role: "store"}
)

// roled is a world of nodes that are Up, one for each list of roles.
func roled(t tester, roles ...string) *world {
	w := newWorld(t)
	for _, r := range roles {
		w.admitAs(r)
	}
	return w
}

// admitAs adds a member of a role, or of none, and makes it Up.
func (w *world) admitAs(role string) *testNode {
	var roles []string
	if role != "" {
		roles = []string{role}
	}
	n := w.join(roles...)
	w.publish()
	w.promote()
	w.publish()
	return n
}

// register registers a type and returns the error.
func (n *testNode) register(s Settings) error {
	err := n.m.Do(n.w.now, RegisterCommand{Settings: s})
	n.collect()
	return err
}

// refusedBoth demands that an error names both settings.
func refusedBoth(t *testing.T, err error) {
	require.ErrorIs(t, err, ErrSettingsDiffer)
	require.ErrorContains(t, err, `role ""`)
	require.ErrorContains(t, err, `role "store"`)
}

// TestRoleThatDiffersIsRefusedAtOnce: every member has heard the settings with the question, whatever its role, and
// also one that joined after the coordinator term began.
func TestRoleThatDiffersIsRefusedAtOnce(t *testing.T) {
	for _, s := range [][2]Settings{{everywhere, inStore}, {inStore, everywhere}} {
		w := roled(t, "", "store")
		require.NoError(t, w.nodes[0].register(s[0]))
		w.pass(time.Second)
		refusedBoth(t, w.nodes[1].register(s[1]))
		w.nodes[0].want(s[0], all(s[0])...)
		w.pass(time.Second)
		late := w.admitAs("store")
		w.pass(time.Second)
		refusedBoth(t, late.register(s[1]))
		require.NoError(t, late.register(s[0]), "the cluster's are taken")
	}
}

// A type with a shard function, with another one, and without, which is what a build registers that knows of none: the
// later node is refused, and both are named (SHD-1).
func TestShardFunctionThatDiffersIsRefused(t *testing.T) {
	customer, region := everywhere, everywhere
	customer.ShardBy, region.ShardBy = "customer", "region"
	for _, s := range [][2]Settings{{customer, everywhere}, {everywhere, customer}, {customer, region}} {
		w := roled(t, "", "")
		require.NoError(t, w.nodes[0].register(s[0]))
		w.pass(time.Second)
		w.nodes[0].want(s[0], all(s[0])...)
		w.pass(time.Second)
		late := w.admitAs("")
		w.pass(time.Second)
		for _, n := range []*testNode{w.nodes[1], late} {
			err := n.register(s[1])
			require.ErrorIs(t, err, ErrSettingsDiffer)
			require.ErrorContains(t, err, s[0].function()+" in the cluster")
			require.ErrorContains(t, err, s[1].function()+" here")
		}
		require.NoError(t, late.register(s[0]), "the cluster's are taken")
	}
}

// TestRoleThatDiffersBesideAnOlderCoordinator: the later one registers before it has heard of the cluster's settings.
// It would be the coordinator of its role under a higher term; nobody promises to it.
func TestRoleThatDiffersBesideAnOlderCoordinator(t *testing.T) {
	for _, owned := range []bool{true, false} {
		w := roled(t, "", "")
		for _, n := range w.nodes {
			require.NoError(t, n.register(everywhere))
		}
		w.pass(time.Second)
		if owned {
			w.nodes[0].want(everywhere, all(everywhere)...)
			w.pass(time.Second)
		}
		late := w.join("store")
		require.NoError(t, late.register(inStore))
		w.publish()
		w.promote()
		late.see() // it is Up and begins before it is asked
		require.NotNil(t, late.stats(inStore).Leading)
		w.publish()
		late.want(inStore, all(inStore)...)
		w.pass(3 * time.Second)
		require.Len(t, late.refused, 1)
		refusedBoth(t, late.refused[0].Err)
		require.Nil(t, late.stats(inStore).Leading)
		require.Empty(t, late.hosted)
		for _, n := range w.nodes[:2] {
			require.Empty(t, n.refused)
			require.Equal(t, uint32(1), n.m.types[everywhere.ID()].promise.term, "nobody promised to it")
		}
		for _, n := range w.nodes[:2] {
			n.want(everywhere, all(everywhere)...)
		}
		w.pass(time.Second)
		require.Len(t, w.nodes[0].hosted, 2)
		require.Len(t, w.nodes[1].hosted, 2)
		require.NoError(t, late.register(everywhere), "what was refused may be registered again")
		late.want(everywhere, all(everywhere)...)
		w.pass(time.Second)
		w.agree(everywhere, all(everywhere)...)
	}
}

// TestTwoRolesAtOnce: both register in the same moment, in either order of their ages, and mail comes in any order. One
// is refused, the other serves.
func TestTwoRolesAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.SampledFrom([][]string{{"", "store"}, {"store", ""}, {"", "", "store", "store"},
			{"other", "store", "", "store"}}).Draw(t, "roles")
		w := roled(t, roles...)
		for i, n := range w.nodes {
			s := everywhere
			if roles[i] == "store" {
				s = inStore
			}
			if roles[i] != "other" {
				_ = n.register(s)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(w.queue) > 0 {
				w.deliver(rapid.IntRange(0, len(w.queue)-1).Draw(t, "mail"))
			}
		}
		w.pass(10 * time.Second)
		var alive []Settings
		for _, n := range w.nodes {
			if typ := n.m.types[everywhere.ID()]; typ.region != nil && typ.region.refused == nil {
				alive = append(alive, typ.region.settings)
				n.want(everywhere, all(everywhere)...)
			}
		}
		w.pass(10 * time.Second)
		require.NotEmpty(t, alive)
		for _, s := range alive {
			require.Equal(t, alive[0], s)
		}
		w.agree(everywhere, all(everywhere)...)
	})
}

// TestReignWaitsForMembersOfOtherRoles: one without the role may own under other settings, so its report is missed.
func TestReignWaitsForMembersOfOtherRoles(t *testing.T) {
	w := roled(t, "", "", "store")
	silent, store := w.nodes[1], w.nodes[2]
	silent.cut[store.id] = true
	require.NoError(t, store.register(inStore))
	store.want(inStore, all(inStore)...)
	w.pass(time.Minute)
	require.Equal(t, peer.SetOf(silent.id, store.id), store.stats(inStore).Leading.Missing)
	require.Empty(t, store.hosted)
	silent.cut[store.id] = false
	w.pass(DefaultRetryMax + time.Second)
	require.True(t, store.stats(inStore).Leading.Ready)
	require.Len(t, store.hosted, 4)
}

// TestLostMemberOfAnotherRole: its role is none of the new coordinator term's, and it may own under the old settings
// all the same.
func TestLostMemberOfAnotherRole(t *testing.T) {
	w := roled(t, "")
	lost := w.nodes[0]
	require.NoError(t, lost.register(everywhere))
	lost.want(everywhere, all(everywhere)...)
	require.Len(t, lost.hosted, 4)
	next := w.admitAs("store")
	w.queue = nil // it has not heard of the type
	lost.silence()
	since := w.now
	w.set(lost.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	require.NoError(t, next.register(inStore))
	next.want(inStore, all(inStore)...)
	w.pass(since + DefaultTakeoverTime - w.now - time.Millisecond)
	require.Empty(t, next.hosted)
	w.pass(time.Second)
	require.Len(t, next.hosted, 4)
}

// TestRollingDeployAddsARole: the settings of a type change when the last member of the old ones has left. Until then
// nodes that come with the new ones are refused, and try again.
func TestRollingDeployAddsARole(t *testing.T) {
	w := roled(t, "", "", "")
	for _, n := range w.nodes {
		require.NoError(t, n.register(everywhere))
	}
	w.nodes[0].want(everywhere, all(everywhere)...)
	w.pass(time.Second)
	var fresh []*testNode
	retry := func() (served int) {
		for _, n := range fresh {
			if err := n.register(inStore); !errors.Is(err, ErrTypeExists) && err != nil {
				refusedBoth(t, err)
			}
			if g := n.m.types[inStore.ID()].region; g != nil && g.refused == nil {
				n.want(inStore, all(inStore)...)
			}
			served += len(n.hosted)
		}
		return served
	}
	for _, old := range w.nodes[:3] {
		fresh = append(fresh, w.admitAs("store"))
		for range 4 {
			require.Zero(t, retry(), "one with the old settings lives")
			w.pass(500 * time.Millisecond)
		}
		old.do(LeaveCommand{Within: time.Minute})
		w.pass(DefaultDrainPatience + DefaultRetryMax + time.Second)
		require.True(t, old.drained, "who has not registered the type by then is not waited for")
		w.remove(old)
		for _, o := range w.nodes {
			if o.well() && len(fresh) < 3 && o != fresh[len(fresh)-1] && isRegistered(o) {
				o.want(everywhere, all(everywhere)...)
			}
		}
		w.pass(time.Second)
	}
	left := w.now
	for retry() < 4 {
		w.pass(500 * time.Millisecond)
		require.Less(t, w.now-left, 2*promiseOutlives, "nobody with the old settings is left")
	}
	w.pass(time.Second)
	w.agree(inStore, all(inStore)...)
}

func isRegistered(n *testNode) bool {
	typ := n.m.types[everywhere.ID()]
	return typ != nil && typ.region != nil && typ.region.refused == nil
}

// TestOwnerRefusesAnotherReign: a member that owns shards refuses the question of a coordinator term under other
// settings, whatever its term, and promises nothing.
func TestOwnerRefusesAnotherReign(t *testing.T) {
	w := roled(t, "", "", "store")
	for _, n := range w.nodes[:2] {
		require.NoError(t, n.register(everywhere))
	}
	w.nodes[0].want(everywhere, all(everywhere)...)
	w.pass(time.Second)
	owner := w.nodes[1]
	require.NoError(t, w.inject(w.nodes[2], owner, reportWanted{head: at(3), Settings: inStore, Floor: 1}))
	require.Equal(t, uint32(1), owner.m.types[everywhere.ID()].promise.term)
	require.Len(t, w.queue, 1)
	require.Equal(t, wire.KindRegisterNak, w.queue[0].kind)
	l, err := readMessage(w.queue[0].kind, w.queue[0].body)
	require.NoError(t, err)
	require.Equal(t, nak{head: at(3), Reason: nakSettings, Have: everywhere, Got: inStore}, l)
}

// TestChaosOfSettings: each node registers what it drew, of two settings, and again when it is refused; members join,
// leave, crash and are cut off meanwhile. No shard gets two owners (the checker sees to that), and in the end all that
// are not refused go by the same settings and find every shard.
func TestChaosOfSettings(t *testing.T) {
	others := []Settings{inStore, {Name: "order", Shards: 6}, {Name: "order", Shards: 4, Role: "r"}}
	rapid.Check(t, func(t *rapid.T) {
		some := []Settings{everywhere, rapid.SampledFrom(others).Draw(t, "other")}
		w := roled(t, rapid.SliceOfN(rapid.SampledFrom([]string{"", "r", "store"}), 2, 4).Draw(t, "roles")...)
		settings := map[*testNode]Settings{}
		register := func() {
			for _, n := range w.nodes {
				if _, drawn := settings[n]; !drawn {
					settings[n] = rapid.SampledFrom(some).Draw(t, "settings")
				}
				if n.well() {
					_ = n.register(settings[n])
				}
			}
		}
		want := func() {
			for _, n := range w.nodes {
				if n.well() && n.m.types[everywhere.ID()] != nil {
					_ = n.m.Do(w.now, WantCommand{everywhere.ID(), all(everywhere)})
					n.collect()
				}
			}
		}
		for range rapid.IntRange(20, 200).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 19).Draw(t, "what"); {
			case k == 0:
				register()
			case k == 1:
				want()
			case k == 2 && len(w.nodes) < 9 && w.steady() > 0:
				w.join("r", "store")
			default:
				w.act(t, Settings{Name: "another", Shards: 4})
			}
		}
		for range 60 {
			w.housekeep()
			w.publish()
			for w.promote() {
				w.publish()
			}
			register()
			want()
			w.pass(time.Second)
		}
		w.pass(3 * DefaultRetryMax) // a node that registered again in vain is refused again
		var agreed []Settings
		for _, n := range w.nodes {
			typ := n.m.types[everywhere.ID()]
			if !n.well() || n.m.leave.begun || typ == nil || !isRegistered(n) {
				continue
			}
			if _, some := n.m.follows(typ, typ.region.settings.Role); some {
				agreed = append(agreed, typ.region.settings)
				require.Equal(t, agreed[0], typ.region.settings)
				require.True(t, typ.region.joined, "%s has no coordinator", n.id)
			}
		}
	})
}

// TestTypesBeyondTheBound: a member without room for a further type answers that nothing of it lives here, so the
// others go on; its own Register says that there are too many (SHD-8).
func TestTypesBeyondTheBound(t *testing.T) {
	w := startWorld(t, 3)
	small := w.nodes[2]
	small.m.cfg.MaxTypes = 2
	types := []Settings{{Name: "a", Shards: 2}, {Name: "b", Shards: 2}, {Name: "c", Shards: 2}}
	for _, s := range types {
		w.nodes[1].do(RegisterCommand{Settings: s})
		w.flow()
		w.nodes[1].want(s, all(s)...)
		w.pass(time.Second)
		require.True(t, w.nodes[0].stats(s).Leading.Ready)
		w.agree(s, all(s)...)
	}
	require.Equal(t, 2, small.m.Counters().Types)
	require.Positive(t, small.m.Counters().Full)
	require.ErrorIs(t, small.register(types[2]), ErrTooManyTypes)
	require.NoError(t, small.register(types[0]), "what it has heard of has room")
	w.remove(w.nodes[0]) // the next term asks it as well
	w.pass(DefaultTakeoverTime + time.Second)
	require.True(t, w.nodes[1].stats(types[2]).Leading.Ready)
}

// TestForsakenReignGivesWay: the coordinator has not registered the type itself, and the last member that had has left.
// The coordinator term goes on, and gives way to the first registration under other settings, which is taken when it is
// repeated.
func TestForsakenReignGivesWay(t *testing.T) {
	for _, other := range []int{0, 2} { // on the coordinator's own node, and on one that has heard of its settings alone
		w := roled(t, "", "", "store")
		old := w.nodes[1]
		require.NoError(t, old.register(everywhere))
		old.want(everywhere, all(everywhere)...)
		w.pass(time.Second)
		require.NotNil(t, w.nodes[0].stats(everywhere).Leading)
		require.Len(t, old.hosted, 4)
		refusedBoth(t, w.nodes[other].register(inStore))
		old.do(LeaveCommand{Within: time.Minute})
		w.pass(DefaultDrainPatience + DefaultRetryMax + time.Second)
		w.remove(old)
		tries := 0
		for ; w.nodes[other].register(inStore) != nil; tries++ {
			w.pass(500 * time.Millisecond)
			require.Less(t, tries, 3)
		}
		require.Equal(t, other/2, tries, "at once, or when the coordinator has heard of it")
		w.flow()
		if other == 0 {
			require.NoError(t, w.nodes[2].register(inStore))
		}
		w.nodes[2].want(inStore, all(inStore)...)
		w.pass(5 * time.Second)
		require.Len(t, w.nodes[2].hosted, 4)
		require.Empty(t, w.nodes[2].refused)
	}
}

// TestHigherTermOfAnotherRole: a type was coordinated in the role of a young member, which is gone. All members that
// promised to it refuse the lower number of the oldest member of the role that is registered now; the oldest of those
// with a higher number coordinates, whichever member has heard of that promise (SHD-1, SHD-9).
func TestHigherTermOfAnotherRole(t *testing.T) {
	for name, k := range map[string]struct {
		later  bool // the next coordinator joins when the last one has gone, and has promised nothing
		asks   int  // the node that registers the type first
		serves int
		idle   bool // the serving node has no use for the type: nobody answers a registration of its own
	}{
		"all have promised":                    {false, 0, 2, false},
		"the next coordinator asks":            {false, 2, 2, false},
		"the next coordinator has not":         {true, 0, 2, false},
		"one asks that has not promised":       {true, 2, 2, false},
		"one asks that nobody but others told": {true, 3, 2, false},
		"the next coordinator is only told":    {true, 0, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := roled(t, "", "store")
			if !k.later {
				w.admitAs("")
			}
			young := w.nodes[1]
			require.NoError(t, young.register(inStore))
			young.want(inStore, all(inStore)...)
			w.pass(time.Second)
			require.Len(t, young.hosted, 4)
			young.crash()
			w.set(young.id, membership.Down)
			w.publish()
			w.promote()
			w.publish()
			w.pass(promiseOutlives + time.Second)
			for len(w.nodes) < 4 {
				w.admitAs("")
			}
			first := w.nodes[k.asks]
			require.NoError(t, first.register(everywhere))
			first.want(everywhere, all(everywhere)...)
			w.pass(DefaultTakeoverTime)
			for _, n := range w.nodes {
				if n.well() && n != first && !(k.idle && n == w.nodes[k.serves]) {
					require.NoError(t, n.register(everywhere))
					n.want(everywhere, all(everywhere)...)
				}
			}
			w.pass(10 * time.Second)
			w.agree(everywhere, all(everywhere)...)
			require.NotNil(t, w.nodes[k.serves].stats(everywhere).Leading)
			require.Equal(t, uint32(3), w.nodes[k.serves].stats(everywhere).Leading.Term)
			require.Nil(t, w.nodes[0].stats(everywhere).Leading)
		})
	}
}

// TestRegistrantsOfAContradictedReignAreTold: a node runs with settings of a role that no member has any more. It
// contradicts a coordinator term under other settings, and the members registered there are notified: no other
// coordinator would do so (SHD-1).
func TestRegistrantsOfAContradictedReignAreTold(t *testing.T) {
	w := roled(t, "", "store", "", "")
	require.NoError(t, w.nodes[0].register(inStore))
	w.pass(time.Second)
	w.nodes[1].crash()
	w.set(w.nodes[1].id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(promiseOutlives + time.Second)
	late := w.nodes[3]
	require.NoError(t, late.register(everywhere))
	w.pass(time.Second)
	require.Len(t, late.refused, 1)
	refusedBoth(t, late.refused[0].Err)
	require.Empty(t, w.nodes[0].refused)
}
