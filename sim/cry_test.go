// Checkers that must cry out: each is fed the breach that it is there for.

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// TestCheckersCryOut feeds each checker with the breach that it is there for: a net that cannot catch is worthless.
func TestCheckersCryOut(t *testing.T) {
	typ := &entityType{Type: entity.Type{Name: "t", Shards: 2, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { return nil })
		}}}
	id := route.TypeOf("t")
	key := shardKey{id, 0}
	fence := func(term, epoch uint32) route.Fence { return route.MakeFence(9, term, epoch) }
	view := func(p *proc, edit func(v *membership.View)) *membership.View {
		v := *p.view
		v.Members = append([]membership.Member(nil), v.Members...)
		edit(&v)
		return &v
	}
	for _, c := range []struct {
		rule string
		do   func(w *world, a, b *proc)
	}{
		{"two-owners", func(w *world, a, b *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).hosts(b, key, fence(9, 2))
		}},
		{"hosted-twice", func(w *world, a, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).hosts(a, key, fence(9, 2))
		}},
		{"fence-order", func(w *world, a, b *proc) {
			checks(w).hosts(a, key, fence(9, 2))
			checks(w).stopped(a, key, true)
			checks(w).hosts(b, key, fence(9, 1))
		}},
		{"takeover", func(w *world, a, b *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			a.crash(true)
			checks(w).gone[a.id] = w.now
			checks(w).stopped(a, key, false)
			checks(w).hosts(b, key, fence(9, 2))
		}},
		{"two-owners", func(w *world, a, b *proc) { // that one who is lost has downed everybody is no excuse
			downed := func(p *proc, others ...*proc) *membership.View {
				return view(p, func(v *membership.View) {
					for i := range v.Members {
						for _, q := range others {
							if m := &v.Members[i]; m.ID == q.id {
								m.Status, m.Cause = membership.Down, membership.CauseResolver
							}
						}
					}
				})
			}
			sleeper := w.hosts[2].proc
			for _, p := range []*proc{a, b, sleeper} {
				checks(w).excuse(p.id)
			}
			for _, p := range []*proc{a, b} {
				p.view = downed(p, sleeper)
				checks(w).view(p, p.view)
			}
			sleeper.view = downed(sleeper, a, b)
			checks(w).view(sleeper, sleeper.view)
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).hosts(b, key, fence(9, 2))
		}},
		{"allocation", func(w *world, a, b *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).allocated(b, &shard.Event{Type: id, Home: b.id, Fence: fence(9, 2)})
		}},
		{"two-coordinators", func(w *world, a, b *proc) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
		}},
		{"reports", func(w *world, a, _ *proc) {
			checks(w).shard(a, &shard.Event{Kind: shard.CoordinatorStarted, Type: 7})
			checks(w).shard(a, &shard.Event{Kind: shard.CoordinatorReady, Type: 7})
		}},
		{"reports", func(w *world, a, b *proc) { // that another node holds b for down is no excuse
			checks(w).gone[b.id] = w.now
			checks(w).shard(a, &shard.Event{Kind: shard.CoordinatorStarted, Type: 7})
			for i := range a.view.Members {
				if m := &a.view.Members[i]; m.ID != b.id {
					checks(w).frame(a, m.ID, wire.KindRegister)
				}
			}
			checks(w).shard(a, &shard.Event{Kind: shard.CoordinatorReady, Type: 7})
		}},
		{"knows-its-end", func(w *world, a, _ *proc) {
			checks(w).gone[a.id] = w.now
			a.view = view(a, func(v *membership.View) {
				for i := range v.Members {
					if v.Members[i].ID == a.id {
						v.Members[i].Status = membership.Down
					}
				}
			})
			checks(w).hosts(a, key, fence(9, 1))
		}},
		{"fence-shared", func(w *world, a, b *proc) { // one who does not know that it is down
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).gone[b.id] = w.now
			checks(w).hosts(b, key, fence(9, 1))
		}},
		{"fence-shared", func(w *world, a, b *proc) {
			checks(w).write(a, id, "x", fence(9, 1))
			checks(w).write(b, id, "x", fence(9, 1))
		}},
		{"late-owner", func(w *world, a, b *proc) {
			checks(w).write(a, id, "x", fence(9, 2))
			checks(w).write(b, id, "x", fence(9, 1))
		}},
		{"up-number", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) { v.Members[0].UpNumber = 77 }))
		}},
		{"up-number", func(w *world, a, _ *proc) { // the view of one who is down elsewhere
			checks(w).gone[a.id] = w.now
			checks(w).distinct(a, view(a, func(v *membership.View) { v.Members[0].UpNumber = v.Members[1].UpNumber }))
		}},
		{"status-back", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) { v.Members[1].Status = membership.Joining }))
		}},
		{"view-order", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) { v.Members[0], v.Members[1] = v.Members[1], v.Members[0] }))
		}},
		{"removed-without-cause", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) { v.Members = v.Members[:2] }))
		}},
		{"removed-returns", func(w *world, a, _ *proc) {
			all := a.view
			checks(w).view(a, view(a, func(v *membership.View) { v.Members = v.Members[:2] }))
			checks(w).view(a, all)
		}},
		{"downed-without-cause", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) { v.Members[1].Status = membership.Down }))
		}},
		{"convergence", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) {
				v.Members = append(v.Members, membership.Member{ID: peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 1},
					Status: membership.Up, UpNumber: 50})
			}))
		}},
		{"agreement", func(w *world, a, _ *proc) {
			checks(w).view(a, view(a, func(v *membership.View) { v.Leader = a.id; v.Members[2].Roles = []string{"x"} }))
			checks(w).view(a, view(a, func(v *membership.View) { v.Leader = peer.ID{} }))
		}},
		{"replay", func(w *world, a, _ *proc) {
			checks(w).replay(a, a.view, view(a, func(v *membership.View) { v.Members[1].Status = membership.Leaving }), nil)
		}},
		{"replay", func(w *world, a, b *proc) {
			m, _ := a.view.Member(b.id)
			checks(w).replay(a, a.view, nil, []membership.Event{{Kind: membership.UnreachableMember, Member: m}})
		}},
		{"replay", func(w *world, a, _ *proc) {
			checks(w).replay(a, a.view, view(a, func(v *membership.View) { v.Leader = peer.ID{} }), nil)
		}},
		{"two-survivors", func(w *world, a, b *proc) {
			down := func(p, q *proc) *membership.View {
				return view(p, func(v *membership.View) {
					for i := range v.Members {
						if m := &v.Members[i]; m.ID == q.id {
							m.Status, m.Cause = membership.Down, membership.CauseResolver
						}
					}
				})
			}
			checks(w).sides(a, down(a, b))
			checks(w).sides(b, down(b, a))
			w.advance(w.takeover())
		}},
		{"birth", func(w *world, a, _ *proc) { checks(w).birth(a, view(a, func(v *membership.View) { v.Birth++ })) }},
		{"birth", func(w *world, a, _ *proc) { checks(w).birth(a, view(a, func(v *membership.View) { v.ClusterID++ })) }},
		{"laws", func(w *world, a, _ *proc) { checks(w).lawful(a, membership.ErrLaw) }},
		{"duplicate", func(w *world, a, b *proc) {
			payload, _ := w.book.write(a, id, "x", 0)
			w.delivered(b, id, "x", payload)
			w.delivered(b, id, "x", payload)
		}},
		{"order", func(w *world, a, b *proc) {
			first, _ := w.book.write(a, id, "x", 0)
			second, _ := w.book.write(a, id, "x", 0)
			w.delivered(b, id, "x", second)
			w.delivered(b, id, "x", first)
		}},
		{"fate", func(w *world, a, b *proc) {
			payload, _ := w.book.write(a, id, "x", 0)
			w.fate(payload, fateRefused, "")
			w.delivered(b, id, "x", payload)
		}},
		{"lost", func(w *world, a, _ *proc) {
			_, _ = w.book.write(a, id, "x", 0)
			w.audit()
		}},
		{"frame", func(w *world, a, b *proc) {
			feignFrame(a, b, []byte{9, 0, 0, 0, byte(wire.KindEnvelope), 0, 0, 0, 1})
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := formed(t, 3, Config{}, typ)
			require.Empty(t, checks(w).violations)
			c.do(w, w.hosts[0].proc, w.hosts[1].proc)
			var rules []string
			for _, v := range checks(w).violations {
				rules = append(rules, v.Rule)
			}
			require.Contains(t, rules, c.rule)
		})
	}
}

// TestAWordOfFarewellEndsAReign: a leaver whose farewell is known may become ready in a lower term than a coordinator
// that it has not heard of, and takes no seat; in a higher term, or without its farewell, it may not.
func TestAWordOfFarewellEndsAReign(t *testing.T) {
	for name, c := range map[string]struct {
		farewell bool
		term     uint32
		breach   bool
	}{"late": {true, 1, false}, "no farewell": {false, 1, true}, "higher": {true, 3, true}} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, Config{})
			a, b := w.hosts[0].proc, w.hosts[1].proc
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
			checks(w).farewells[a.id] = c.farewell
			checks(w).ready(a, &shard.Event{Type: 7, Term: c.term})
			require.Equal(t, c.breach, len(checks(w).violations) > 0, "%v", checks(w).violations)
			if !c.breach {
				require.Equal(t, b, checks(w).leads[7].p)
			}
		})
	}
}
