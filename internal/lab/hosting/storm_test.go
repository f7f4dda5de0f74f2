// Tests of instances in storms: all hand-offs are judged, no rule is broken, and each is noticed when it is (PRT-4).

package hosting

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/storm"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/partition"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// runs runs storms with instances, from a seed on.
func runs(t *testing.T, seeds int, seed uint64) {
	for ; seeds > 0; seed++ {
		if !storm.DrawsInstances(seed, nil) {
			continue
		}
		seeds--
		res := storm.Run(storm.Config{Seeds: 1, First: seed, TraceDir: t.TempDir(), Instances: Bring})
		for _, f := range res.Failures {
			t.Errorf("seed %d: %v", f.Seed, f.Violations)
		}
	}
}

// TestEveryHandoff: in a storm that tries all hand-offs in the end each keeps what the table of docs/partitions.md
// promises, in planned moves under load (PRT-4).
func TestEveryHandoff(t *testing.T) {
	moved := map[cluster.Handoff]int{}
	tried, judged = len(storm.Handoffs), func(way cluster.Handoff, moves, sent int) { moved[way] += min(moves, sent) }
	defer func() { tried, judged = 2, nil }()
	runs(t, 1, 10)
	for _, way := range storm.Handoffs {
		require.Positive(t, moved[way], "%v", way)
	}
}

// TestLongStorms: no storm with instances breaks a rule (PRT-4).
func TestLongStorms(t *testing.T) {
	long.Test(t)
	runs(t, 60, 1000)
}

// noted is a stage that keeps what it is told.
type noted struct{ rules []string }

func (*noted) Quiet() bool { return true }
func (n *noted) Violate(_ *world.Process, rule, format string, args ...any) {
	n.rules = append(n.rules, rule+": "+fmt.Sprintf(format, args...))
}
func (*noted) MovedByHand(string, route.ShardID, peer.ID) {}
func (*noted) Drains(*world.Process, bool) error          { return nil }

// TestCastCriesOut: each rule is noticed when it is broken.
func TestCastCriesOut(t *testing.T) {
	at, elsewhere := place{"a", 1}, place{"a", 2}
	for rule, breaks := range map[string]func(c *cast, a *actor, get func(nth int)){
		"instance-once":    func(_ *cast, _ *actor, get func(nth int)) { get(0); get(0) },
		"instance-order":   func(_ *cast, _ *actor, get func(nth int)) { get(1); get(0) },
		"instance-message": func(c *cast, _ *actor, get func(nth int)) { c.sent[0].to = elsewhere; get(0) },
		"instance-calls":   func(_ *cast, a *actor, get func(nth int)) { a.busy = true; get(0) },
		"instance-over":    func(_ *cast, a *actor, get func(nth int)) { a.Stop(nil); get(0) },
		"instance-refused": func(c *cast, _ *actor, get func(nth int)) {
			c.returned(partition.Refused{Path: "a", Slot: 1, Err: errors.New("moved"), Payload: payloadOf(0)})
			get(0)
		},
		"instance-twice": func(c *cast, a *actor, _ func(nth int)) { c.begins(a.h, at, route.MakeFence(1, 2, 2)) },
		"instance-fence": func(c *cast, a *actor, _ func(nth int)) {
			c.begins(&host{c: c, p: &world.Process{Alive: true}}, at, a.fence)
		},
		"instance-state": func(c *cast, a *actor, _ func(nth int)) {
			b, _ := (&actor{c: c, h: a.h, at: elsewhere}).HandOver(nil)
			require.NoError(t, a.TakeUp(nil, b))
		},
	} {
		n := &noted{}
		w := &world.World{}
		h := &host{p: &world.Process{Alive: true, World: w}}
		c := &cast{stage: n, w: w, seen: newSeen(), rng: rand.New(rand.NewPCG(1, 1))}
		h.c = c
		for i := range 2 {
			c.sent = append(c.sent, message{by: h, to: at, seq: i + 1, ordered: true, accepted: true})
		}
		a := c.begins(h, at, route.MakeFence(1, 1, 1)).(*actor)
		breaks(c, a, func(nth int) {
			require.NoError(t, a.Receive(&entity.Context{ID: strconv.Itoa(at.slot)}, payloadOf(nth)))
		})
		require.Contains(t, strings.Join(n.rules, "; "), rule+":")
	}
}
