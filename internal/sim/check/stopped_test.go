// Tests of which process has to have stopped when a shard of its lives elsewhere, though nobody could tell it.

package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
)

// sleeper is the last of four nodes.
type sleeper struct {
	w *world.World
	p *world.Process
}

func newSleeper(t *testing.T, cfg setup.Config) *sleeper {
	typ := &world.EntityType{Type: entity.Type{Name: "owned", Shards: 16, Mode: entity.Inline, New: silent}}
	w := formed(t, 4, cfg, typ)
	s := &sleeper{w, w.Hosts[3].Process}
	s.demand(w.Hosts[0].Process)
	w.Advance(5 * time.Second)
	return s
}

// demand sends messages to all shards.
func (s *sleeper) demand(from *world.Process) {
	for i := range 100 {
		_, _ = from.Regions[0].Send(fmt.Sprint("e", i), nil, 0) // what has no home waits
	}
}

// downed cuts the node off, has it stand still for nap, and an operator down it.
func (s *sleeper) downed(nap time.Duration) {
	severs(s.w, s.p.Index)
	s.p.Pause(nap)
	checks(s.w).Excuse(s.p.ID)
	s.w.Hosts[0].Process.Do(membership.DownCommand{ID: s.p.ID})
	s.w.Advance(s.w.Takeover() - time.Second)
}

// TestNothingStopsWhoNapped: without a resolver, a process that an operator downs while it is cut off, and that stands
// still for less than half the takeover time, goes on beside the next owner. One that stood still for longer has
// suspended itself, and one that goes on all the same breaks a rule (MEM-10). Found by storm 1127951328.
func TestNothingStopsWhoNapped(t *testing.T) {
	const nap, sleep = 3500 * time.Millisecond, 6 * time.Second
	for name, k := range map[string]struct {
		before time.Duration // it stands still, all others confirm it, and it is cut off
		during time.Duration
		wakes  bool // against the rules
		held   bool
		want   []string
	}{
		"a nap":                      {0, nap, false, false, nil},
		"a nap after a sleep":        {sleep, nap, false, false, nil},
		"a sleep":                    {0, sleep, false, true, nil},
		"it sleeps still":            {0, time.Minute, false, true, nil},
		"a sleep that goes unheeded": {0, sleep, true, false, []string{"late-handling", "suspended-before"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := setup.Config{Resolver: world.ResolverOff}
			cfg.Shard.TakeoverTime = 11 * time.Second
			s := newSleeper(t, cfg)
			w, p := s.w, s.p
			p.Pause(k.before)
			require.True(t, w.Until(time.Minute, func() bool { return !p.Asleep && !p.Held() }))
			s.downed(k.during)
			require.Zero(t, checks(w).NotTold)
			if k.wakes {
				world.FeignSuspended(p, false)
			}
			s.demand(w.Hosts[0].Process)
			w.Advance(2 * time.Second)
			require.Equal(t, k.held, p.Held())
			require.Equal(t, k.held || k.wakes, checks(w).pairs.overslept(w.Hosts[0].Process, p))
			require.Positive(t, checks(w).NotTold, "its shards live elsewhere")
			s.demand(p)
			w.Advance(time.Second)
			require.Equal(t, k.want, rulesOf(w), "%v", checks(w).Violations)
		})
	}
}

// TestASleeperThatGetsTheLease: one that is cut off and sleeps until those that downed it have given the lease back
// gets it, and ends all the same. One that goes on beside the next owner breaks rules, as it does by a lease that the
// store gave it too early (MEM-10). Found by storms 1128301021 and 11700003053.
func TestASleeperThatGetsTheLease(t *testing.T) {
	for name, k := range map[string]struct {
		sleep time.Duration
		early bool // the store gives it to others too early
	}{
		"it was given back":           {42 * time.Second, false},
		"it was taken away too early": {20 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSleeper(t, setup.Config{Resolver: node.Resolver{Strategy: node.ResolverLeaseMajority}})
			w, p, other := s.w, s.p, s.w.Hosts[0].Process
			severs(w, p.Index)
			p.Pause(k.sleep)
			require.True(t, w.Until(k.sleep, func() bool { return !hasMember(other, p) }), "it is downed")
			if k.early {
				w.Lease.Owner = peer.ID{}
			}
			w.Advance(w.Takeover())
			s.demand(other)
			taken := w.Lease.Taken
			if !k.early {
				require.True(t, w.Until(2*time.Minute, func() bool { return !p.Alive }), "it ends")
				require.Equal(t, taken+1, w.Lease.Taken, "it got the lease")
				require.Empty(t, rulesOf(w))
				return
			}
			require.True(t, w.Until(2*time.Minute, func() bool { return !p.Asleep && !p.Held() }), "it gets the lease")
			require.Equal(t, p.ID, w.Lease.Owner)
			require.Positive(t, checks(w).NotTold, "its shards live elsewhere")
			w.Advance(w.Takeover() + time.Second)
			s.demand(p)
			w.Advance(time.Second)
			require.Equal(t, []string{"late-handling", "two-survivors"}, rulesOf(w))
		})
	}
}

// rulesOf returns which rules were broken, but that of health, which a test may feign.
func rulesOf(w *world.World) []string {
	var rules []string
	for _, v := range checks(w).Violations {
		if v.Rule != "health" {
			rules = append(rules, v.Rule)
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
