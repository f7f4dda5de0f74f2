// Tests of the rules about clusters that follow one another.

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// A coordinator that stands still since before a new cluster was formed without it is no rival of the new one's, in
// whichever order they say that they are ready; one that handles messages is (JOIN-1, SHD-9).
func TestCoordinatorOfAClusterThatIsNoMore(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, first := range []int{0, 1} {
			w := formed(t, 2, Config{})
			older, younger := w.hosts[0].proc, w.hosts[1].proc
			v := *younger.view
			v.Birth++
			younger.view = &v
			feignSuspended(older, held)
			list := []*proc{older, younger}
			checks(w).seat(list[first], &shard.Event{Type: 7, Term: 2})
			checks(w).seat(list[1-first], &shard.Event{Type: 7, Term: 1})
			if held {
				require.Empty(t, checks(w).violations)
				require.Equal(t, younger, checks(w).leads[7].p)
			} else {
				require.Equal(t, "two-coordinators", checks(w).violations[0].Rule)
			}
		}
	}
}

// TestOwnersOfAnEarlierCluster: a cluster that is formed anew has lost nobody, so no takeover time counts for it, and
// it may take over from an owner of the cluster before that has stopped. Such an owner handles nothing when it goes on
// (SHD-9, JOIN-1).
func TestOwnersOfAnEarlierCluster(t *testing.T) {
	key := shardKey{route.TypeOf("t"), 0}
	for held, want := range map[bool][]string{
		true: {"delivery-fence"}, false: {"two-owners", "takeover", "delivery-fence"},
	} {
		w := formed(t, 2, Config{Records: true})
		a, b := w.hosts[0].proc, w.hosts[1].proc
		checks(w).hosts(a, key, route.MakeFence(9, 9, 1))
		if held {
			a.suspend(&node.Suspend{On: true, Why: "it has stopped"})
		}
		checks(w).hosts(b, key, route.MakeFence(10, 9, 1))
		a.suspend(&node.Suspend{Why: "it goes on"})
		checks(w).delivers(a, key, &wire.Envelope{Term: 9, Epoch: 1})
		var rules []string
		for _, v := range checks(w).violations {
			rules = append(rules, v.Rule)
		}
		require.Equal(t, want, rules, "%v", checks(w).violations)
	}
}

// TestLossIsDatedByItsOwnSide: the takeover time of a shard runs from when the side that takes it over saw its owner
// Down, also where that side is lost for the owner's, which noticed the end later (SHD-9). Found by storm seed 5070.
func TestLossIsDatedByItsOwnSide(t *testing.T) {
	key := shardKey{route.TypeOf("t"), 0}
	for _, early := range []bool{false, true} {
		w := formed(t, 2, Config{})
		a, b := w.hosts[0].proc, w.hosts[1].proc
		checks(w).hosts(a, key, route.MakeFence(9, 1, 1))
		a.die(true)
		least := w.node().Takeover(1)
		checks(w).pairs.loses(b, a.id, w.now)
		w.now += least
		if early {
			w.now -= time.Second
		}
		checks(w).gone[a.id] = w.now - time.Second // by the word of somebody else
		checks(w).hosts(b, key, route.MakeFence(9, 1, 2))
		rules := map[string]bool{}
		for _, v := range checks(w).violations {
			rules[v.Rule] = true
		}
		require.Equal(t, early, rules["takeover"])
	}
}
