// Tests of the rules about clusters that follow one another.

package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// A coordinator that stands still since before a new cluster was formed without it is no rival of the new one's, in
// whichever order they say that they are ready; one that handles messages is (JOIN-1, SHD-9).
func TestCoordinatorOfAClusterThatIsNoMore(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, first := range []int{0, 1} {
			w := formed(t, 2, setup.Config{})
			older, younger := w.Hosts[0].Process, w.Hosts[1].Process
			v := *younger.View
			v.Birth++
			younger.View = &v
			world.FeignSuspended(older, held)
			list := []*world.Process{older, younger}
			checks(w).seat(list[first], &shard.Event{Type: 7, Term: 2})
			checks(w).seat(list[1-first], &shard.Event{Type: 7, Term: 1})
			if held {
				require.Empty(t, checks(w).Violations)
				require.Equal(t, younger, checks(w).leads[7].p)
			} else {
				require.Equal(t, "two-coordinators", checks(w).Violations[0].Rule)
			}
		}
	}
}

// TestOwnersOfAnEarlierCluster: a cluster that is formed anew has lost nobody, so no takeover time counts for it, and
// it may take over from an owner of the cluster before that has stopped. Such an owner handles nothing when it goes on
// (SHD-9, JOIN-1).
func TestOwnersOfAnEarlierCluster(t *testing.T) {
	key := world.ShardKey{Type: route.TypeOf("t"), Shard: 0}
	for held, want := range map[bool][]string{
		true: {"delivery-fence"}, false: {"two-owners", "takeover", "delivery-fence"},
	} {
		w := formed(t, 2, setup.Config{Records: true})
		a, b := w.Hosts[0].Process, w.Hosts[1].Process
		checks(w).Hosts(a, key, route.MakeFence(9, 9, 1))
		if held {
			a.Suspend(&node.Suspend{On: true, Why: "it has stopped"})
		}
		checks(w).Hosts(b, key, route.MakeFence(10, 9, 1))
		a.Suspend(&node.Suspend{Why: "it goes on"})
		checks(w).Delivers(a, key, &wire.Envelope{Term: 9, Epoch: 1})
		var rules []string
		for _, v := range checks(w).Violations {
			rules = append(rules, v.Rule)
		}
		require.Equal(t, want, rules, "%v", checks(w).Violations)
	}
}

// TestForgottenOwners: with sessions an owner that was lost has no successor before its end is proven, while somebody
// who runs on that side had it for a member. When all of these are gone nobody knows whose session to end, and the
// takeover time counts (SHD-9). Found by storm seed 7142080123.
func TestForgottenOwners(t *testing.T) {
	key := world.ShardKey{Type: route.TypeOf("t"), Shard: 0}
	for name, k := range map[string]struct {
		witness, early, broken bool
	}{
		"nobody remembers, and the takeover time is over": {},
		"nobody remembers, and it is not":                 {early: true, broken: true},
		"one that runs has had it for a member":           {witness: true, broken: true},
	} {
		w := formed(t, 3, setup.Config{SessionTTL: 3 * time.Second, SessionEnds: time.Minute})
		a, witness := w.Hosts[0].Process, w.Hosts[2].Process
		checks(w).Hosts(a, key, route.MakeFence(9, 1, 1))
		a.Die(true)
		w.Hosts[1].Process.Die(true)
		b := w.Start(1, nil) // which knows of nobody
		b.View = &membership.View{Self: b.ID, Members: []membership.Member{{ID: b.ID}, {ID: witness.ID}}}
		if !k.witness {
			witness.Die(true)
		}
		checks(w).pairs.loses(b, a.ID, w.Now)
		checks(w).gone[a.ID] = w.Now
		if !k.early {
			w.Now += w.Node().Takeover(1)
		}
		checks(w).Hosts(b, key, route.MakeFence(9, 1, 2))
		rules := map[string]bool{}
		for _, v := range checks(w).Violations {
			rules[v.Rule] = true
		}
		require.Equal(t, k.broken, rules["takeover"], "%s: %v", name, checks(w).Violations)
	}
}

// TestLossIsDatedByItsOwnSide: the takeover time of a shard runs from when the side that takes it over saw its owner
// Down, also where that side is lost for the owner's, which noticed the end later (SHD-9). Found by storm seed 5070.
func TestLossIsDatedByItsOwnSide(t *testing.T) {
	key := world.ShardKey{Type: route.TypeOf("t"), Shard: 0}
	for _, early := range []bool{false, true} {
		w := formed(t, 2, setup.Config{})
		a, b := w.Hosts[0].Process, w.Hosts[1].Process
		checks(w).Hosts(a, key, route.MakeFence(9, 1, 1))
		a.Die(true)
		least := w.Node().Takeover(1)
		checks(w).pairs.loses(b, a.ID, w.Now)
		w.Now += least
		if early {
			w.Now -= time.Second
		}
		checks(w).gone[a.ID] = w.Now - time.Second // by the word of somebody else
		checks(w).Hosts(b, key, route.MakeFence(9, 1, 2))
		rules := map[string]bool{}
		for _, v := range checks(w).Violations {
			rules[v.Rule] = true
		}
		require.Equal(t, early, rules["takeover"])
	}
}
