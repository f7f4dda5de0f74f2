// Checkers that must cry out: each is fed the breach that it is there for.

package check

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// TestCheckersCryOut feeds each checker with the breach that it is there for: a net that cannot catch is worthless.
// Every storm goes by them, so no message is handled twice (SHD-10).
func TestCheckersCryOut(t *testing.T) {
	typ := &world.EntityType{Type: entity.Type{Name: "t", Shards: 2, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { return nil })
		}}}
	id := route.TypeOf("t")
	key := world.ShardKey{Type: id, Shard: 0}
	fence := func(term, epoch uint32) route.Fence { return route.MakeFence(9, term, epoch) }
	view := func(p *world.Process, edit func(v *membership.View)) *membership.View {
		v := *p.View
		v.Members = append([]membership.Member(nil), v.Members...)
		edit(&v)
		return &v
	}
	for _, c := range []struct {
		rule string
		do   func(w *world.World, a, b *world.Process)
	}{
		{"two-owners", func(w *world.World, a, b *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Hosts(b, key, fence(9, 2))
		}},
		{"hosted-twice", func(w *world.World, a, _ *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Hosts(a, key, fence(9, 2))
		}},
		{"fence-order", func(w *world.World, a, b *world.Process) {
			checks(w).Hosts(a, key, fence(9, 2))
			checks(w).Stopped(a, key, true)
			checks(w).Hosts(b, key, fence(9, 1))
		}},
		{"takeover", func(w *world.World, a, b *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			a.Crash(true)
			checks(w).gone[a.ID] = w.Now
			checks(w).Stopped(a, key, false)
			checks(w).Hosts(b, key, fence(9, 2))
		}},
		{"two-owners", func(w *world.World, a, b *world.Process) { // that a lost one has downed everybody is no excuse
			downed := func(p *world.Process, others ...*world.Process) *membership.View {
				return view(p, func(v *membership.View) {
					for i := range v.Members {
						for _, q := range others {
							if m := &v.Members[i]; m.ID == q.ID {
								m.Status, m.Cause = membership.Down, membership.CauseResolver
							}
						}
					}
				})
			}
			sleeper := w.Hosts[2].Process
			for _, p := range []*world.Process{a, b, sleeper} {
				checks(w).Excuse(p.ID)
			}
			for _, p := range []*world.Process{a, b} {
				p.View = downed(p, sleeper)
				checks(w).View(p, p.View)
			}
			sleeper.View = downed(sleeper, a, b)
			checks(w).View(sleeper, sleeper.View)
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).Hosts(b, key, fence(9, 2))
		}},
		{"allocation", func(w *world.World, a, b *world.Process) {
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).allocated(b, &shard.Event{Type: id, Home: b.ID, Fence: fence(9, 2)})
		}},
		{"two-coordinators", func(w *world.World, a, b *world.Process) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
		}},
		{"reports", func(w *world.World, a, _ *world.Process) {
			checks(w).Shard(a, &shard.Event{Kind: shard.CoordinatorStarted, Type: 7})
			checks(w).Shard(a, &shard.Event{Kind: shard.CoordinatorReady, Type: 7})
		}},
		{"reports", func(w *world.World, a, b *world.Process) { // that another node holds b for down is no excuse
			checks(w).gone[b.ID] = w.Now
			checks(w).Shard(a, &shard.Event{Kind: shard.CoordinatorStarted, Type: 7})
			for i := range a.View.Members {
				if m := &a.View.Members[i]; m.ID != b.ID {
					checks(w).Frame(a, m.ID, wire.KindRegister)
				}
			}
			checks(w).Shard(a, &shard.Event{Kind: shard.CoordinatorReady, Type: 7})
		}},
		{"knows-its-end", func(w *world.World, a, _ *world.Process) {
			checks(w).gone[a.ID] = w.Now
			a.View = view(a, func(v *membership.View) {
				for i := range v.Members {
					if v.Members[i].ID == a.ID {
						v.Members[i].Status = membership.Down
					}
				}
			})
			checks(w).Hosts(a, key, fence(9, 1))
		}},
		{"fence-shared", func(w *world.World, a, b *world.Process) { // one that does not know that it is down
			checks(w).Hosts(a, key, fence(9, 1))
			checks(w).gone[b.ID] = w.Now
			checks(w).Hosts(b, key, fence(9, 1))
		}},
		{"fence-shared", func(w *world.World, a, b *world.Process) {
			checks(w).Write(a, id, "x", fence(9, 1))
			checks(w).Write(b, id, "x", fence(9, 1))
		}},
		{"late-owner", func(w *world.World, a, b *world.Process) {
			checks(w).Write(a, id, "x", fence(9, 2))
			checks(w).Write(b, id, "x", fence(9, 1))
		}},
		{"up-number", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) { v.Members[0].UpNumber = 77 }))
		}},
		{"up-number", func(w *world.World, a, _ *world.Process) { // the view of one that is down elsewhere
			checks(w).gone[a.ID] = w.Now
			checks(w).distinct(a, view(a, func(v *membership.View) { v.Members[0].UpNumber = v.Members[1].UpNumber }))
		}},
		{"status-back", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) { v.Members[1].Status = membership.Joining }))
		}},
		{"view-order", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) { v.Members[0], v.Members[1] = v.Members[1], v.Members[0] }))
		}},
		{"removed-without-cause", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) { v.Members = v.Members[:2] }))
		}},
		{"removed-returns", func(w *world.World, a, _ *world.Process) {
			all := a.View
			checks(w).View(a, view(a, func(v *membership.View) { v.Members = v.Members[:2] }))
			checks(w).View(a, all)
		}},
		{"downed-without-cause", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) { v.Members[1].Status = membership.Down }))
		}},
		{"convergence", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) {
				v.Members = append(v.Members, membership.Member{ID: peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 1},
					Status: membership.Up, UpNumber: 50})
			}))
		}},
		{"agreement", func(w *world.World, a, _ *world.Process) {
			checks(w).View(a, view(a, func(v *membership.View) { v.Leader = a.ID; v.Members[2].Roles = []string{"x"} }))
			checks(w).View(a, view(a, func(v *membership.View) { v.Leader = peer.ID{} }))
		}},
		{"replay", func(w *world.World, a, _ *world.Process) {
			checks(w).Replay(a, a.View, view(a, func(v *membership.View) { v.Members[1].Status = membership.Leaving }), nil)
		}},
		{"replay", func(w *world.World, a, b *world.Process) {
			m, _ := a.View.Member(b.ID)
			checks(w).Replay(a, a.View, nil, []membership.Event{{Kind: membership.UnreachableMember, Member: m}})
		}},
		{"replay", func(w *world.World, a, _ *world.Process) {
			checks(w).Replay(a, a.View, view(a, func(v *membership.View) { v.Leader = peer.ID{} }), nil)
		}},
		{"two-survivors", func(w *world.World, a, b *world.Process) {
			down := func(p, q *world.Process) *membership.View {
				return view(p, func(v *membership.View) {
					for i := range v.Members {
						if m := &v.Members[i]; m.ID == q.ID {
							m.Status, m.Cause = membership.Down, membership.CauseResolver
						}
					}
				})
			}
			checks(w).sides(a, down(a, b))
			checks(w).sides(b, down(b, a))
			w.Advance(w.Takeover())
		}},
		{"birth", func(w *world.World, a, _ *world.Process) {
			checks(w).birth(a, view(a, func(v *membership.View) { v.Birth++ }))
		}},
		{"birth", func(w *world.World, a, _ *world.Process) {
			checks(w).birth(a, view(a, func(v *membership.View) { v.ClusterID++ }))
		}},
		{"laws", func(w *world.World, a, _ *world.Process) { checks(w).lawful(a, membership.ErrLaw) }},
		{"duplicate", func(w *world.World, a, b *world.Process) {
			payload, _ := w.Book.Write(a, id, "x", 0)
			w.Delivered(b, id, "x", payload)
			w.Delivered(b, id, "x", payload)
		}},
		{"order", func(w *world.World, a, b *world.Process) {
			first, _ := w.Book.Write(a, id, "x", 0)
			second, _ := w.Book.Write(a, id, "x", 0)
			w.Delivered(b, id, "x", second)
			w.Delivered(b, id, "x", first)
		}},
		{"fate", func(w *world.World, a, b *world.Process) {
			payload, _ := w.Book.Write(a, id, "x", 0)
			w.Fate(payload, world.FateRefused, route.OK, "")
			w.Delivered(b, id, "x", payload)
		}},
		{"lost", func(w *world.World, a, _ *world.Process) {
			_, _ = w.Book.Write(a, id, "x", 0)
			w.Audit()
		}},
		{"frame", func(w *world.World, a, b *world.Process) {
			world.FeignFrame(a, b, []byte{9, 0, 0, 0, byte(wire.KindEnvelope), 0, 0, 0, 1})
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := formed(t, 3, setup.Config{}, typ)
			require.Empty(t, checks(w).Violations)
			c.do(w, w.Hosts[0].Process, w.Hosts[1].Process)
			var rules []string
			for _, v := range checks(w).Violations {
				rules = append(rules, v.Rule)
			}
			require.Contains(t, rules, c.rule)
		})
	}
}

// TestALeaveNoticeEndsAReign: a leaver with a known leave notice may become ready in a lower term than a coordinator
// that it has not heard of, and takes no seat; in a higher term, or without its leave notice, it may not.
func TestALeaveNoticeEndsAReign(t *testing.T) {
	for name, c := range map[string]struct {
		leaveNotice bool
		term        uint32
		breach      bool
	}{"late": {true, 1, false}, "no leave notice": {false, 1, true}, "higher": {true, 3, true}} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, setup.Config{})
			a, b := w.Hosts[0].Process, w.Hosts[1].Process
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
			checks(w).leaveNotices[a.ID] = c.leaveNotice
			checks(w).ready(a, &shard.Event{Type: 7, Term: c.term})
			require.Equal(t, c.breach, len(checks(w).Violations) > 0, "%v", checks(w).Violations)
			if !c.breach {
				require.Equal(t, b, checks(w).leads[7].p)
			}
		})
	}
}

// TestALeadersStepWaitsForNobodyWhoIsDoneLeaving: a leader removes a member beside one that is unreachable and that it
// still holds for Up, if that one has reported to it to be done leaving; but not by the word of one that no leader has
// let go, nor by a word that another node got (GOS-3).
func TestALeadersStepWaitsForNobodyWhoIsDoneLeaving(t *testing.T) {
	for name, c := range map[string]struct{ told, another, exiting, breach bool }{
		"done leaving":     {told: true, exiting: true},
		"tells another":    {another: true, exiting: true, breach: true},
		"no leader let go": {told: true, breach: true},
		"silent":           {breach: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, setup.Config{})
			a, b, lost := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
			checks(w).Excuse(lost.ID)
			down := *a.View
			down.Accusations = []membership.Accusation{{Observer: a.ID, Subject: b.ID}}
			down.Members = slices.Clone(down.Members)
			down.Members[slices.IndexFunc(down.Members, func(m membership.Member) bool { return m.ID == lost.ID })].Status =
				membership.Down
			checks(w).View(a, &down)
			if c.exiting {
				checks(w).changed[changeKey{b.ID, membership.Exiting}] = true
			}
			if c.told {
				checks(w).Frame(a, b.ID, wire.KindExitDone)
			}
			if c.another {
				checks(w).Frame(lost, b.ID, wire.KindExitDone)
			}
			b.View = &down // it knows of the loss, so that only the accusation stands in the way
			after := down
			after.Members = slices.DeleteFunc(slices.Clone(down.Members), func(m membership.Member) bool {
				return m.ID == lost.ID
			})
			checks(w).View(a, &after)
			breaches := slices.DeleteFunc(slices.Clone(checks(w).Violations), func(v Violation) bool {
				return v.Rule != "convergence"
			})
			require.Equal(t, c.breach, len(breaches) > 0, "%v", checks(w).Violations)
		})
	}
}
