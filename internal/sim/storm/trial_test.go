// Tests of trials: what is demanded while a load goes on.

package storm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// loaded is an entity that stands still while a load goes on, or answers no probe, or neither.
type loaded struct {
	s           *storm
	id          string
	still, mute bool
}

func (h *loaded) Receive(c *entity.Context, payload []byte) error {
	w := h.s.w
	if len(payload) == 0 || payload[0] != probeMark {
		w.Delivered(w.Acting, route.TypeOf(c.Type()), h.id, payload)
	}
	for h.still && !h.s.ending {
		w.Acting.Dawdle(100 * time.Millisecond)
	}
	if h.mute {
		return nil
	}
	return c.Reply(payload[:min(len(payload), world.LedgerSize)])
}

func (h *loaded) Stop(*entity.Context) {}

// TestDemandHomesOfNobody: the only process that may host a type ends while its shards are asked; another one of the
// role coordinates it, and has not registered it. Nothing is demanded of the others then; what was asked waits for a
// home as long as a message may, which no bound counts for a leak. Of a host that runs and does not answer all is
// demanded. Found by storm 5142080795.
func TestDemandHomesOfNobody(t *testing.T) {
	for _, ends := range []bool{true, false} {
		cfg := alone
		cfg.Roles, cfg.Data.ParkWait = [][]string{nil, {"store"}, {"store"}}, time.Minute
		s := &storm{load: rand.New(rand.NewPCG(1, 1))}
		made := func(id string, _ route.Fence) entity.Handler { return &loaded{s, id, false, true} }
		w := formed(t, 3, cfg, &world.EntityType{Absent: []int{2}, Type: entity.Type{Name: "far", Shards: 3,
			Role: "store", Mode: entity.Worker, New: made}})
		s.w, s.check = w, checks(w)
		asker, host := w.Hosts[0].Process, w.Hosts[1].Process
		if ends {
			w.After(time.Second, func() {
				host.Crash(true)
				s.down(asker, host.ID)
			})
		}
		s.demandHomes(w.Running(), 20*time.Second)
		if ends {
			w.Advance(time.Second)
			r := asker.Region(route.TypeOf("far"))
			for n := range route.ShardID(r.Type.Shards) {
				(&asked{r: r, shard: n, end: w.Now + time.Second}).probe(s)
			}
			require.Equal(t, 3, r.Waiting())
			s.demandFates()
			require.Empty(t, rulesBroken(w))
		} else {
			require.Equal(t, []string{"homes"}, rulesBroken(w))
		}
	}
}

// TestDemandHomesBesideALoad: large messages to entities that stand still take all the room that their node has for
// any, so that probes of another shard there, behind large ones, are late for as long as that goes on; nobody has
// promised more, and without load all answer. A shard that answers nothing even then has no excuse, and one with a home
// that is gone is not waited for any longer.
func TestDemandHomesBesideALoad(t *testing.T) {
	const bound = 20 * time.Second
	for _, tc := range []struct {
		name       string
		mute, gone bool
		rules      []string
		least      time.Duration // the demand takes longer,
		most       time.Duration // and not so long
	}{
		{"more than is handled", false, false, nil, bound, 2 * bound},
		{"one that does not answer", true, false, []string{"homes"}, 2 * bound, 3 * bound},
		{"one whose home is gone", false, true, []string{"homes"}, bound, bound + 5*time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := setup.Config{Roles: [][]string{{"store"}, nil, nil}, Data: setup.DataConfig{MaxPayload: 60,
				BulkChunk: 64, BulkRoom: 6 << 10, BulkStall: 5 * time.Second, ParkRecords: 8}}
			if tc.gone {
				cfg.Roles[1] = cfg.Roles[0] // another could host it, if anybody downed its home
			}
			s := &storm{load: rand.New(rand.NewPCG(1, 1))}
			typ := func(name string, mode entity.Mode, still, mute bool) *world.EntityType {
				return &world.EntityType{Type: entity.Type{Name: name, Shards: 1, Role: "store", Mode: mode,
					New: func(id string, _ route.Fence) entity.Handler { return &loaded{s, id, still, mute} }}}
			}
			w := formed(t, 3, cfg, typ("slow", entity.Blocking, true, false), typ("quick", entity.Worker, false, tc.mute))
			s.w, s.check, s.large, s.trial = w, checks(w), true, &trial{s: s}
			s.loadTick(1)
			s.loadTick(2)
			w.Advance(40 * time.Second)
			asker := w.Hosts[2].Process
			from := []*world.Process{asker, w.Hosts[0].Process}
			if tc.gone {
				home := w.ProcessOf(asker.Region(route.TypeOf("quick")).Slot(0).Home())
				from[1] = w.Hosts[1-home.Index].Process
				home.Crash(true)
			}
			began := w.Now
			s.trial.demandHomes(from, bound)
			var rules []string
			for _, v := range checks(w).Violations {
				rules = append(rules, v.Rule)
			}
			require.Equal(t, tc.rules, rules, "%v", checks(w).Violations)
			require.Greater(t, w.Now-began, tc.least)
			require.Less(t, w.Now-began, tc.most)
			require.Equal(t, !tc.gone, s.ending, "without load, and only where it may be the cause")
		})
	}
}
