// The simulator's own parts: order of events, pipes, faults, coroutines, the ledger, and checkers that must cry out.

package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

func TestQueueRunsByTimeThenByPlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q queue
	type ran struct {
		at  time.Duration
		nth int
	}
	var got []ran
	for i := range 2000 {
		at := time.Duration(rng.IntN(50))
		q.push(at, func() { got = append(got, ran{at, i}) })
	}
	for len(q.heap) > 0 {
		q.pop().run()
	}
	require.Len(t, got, 2000)
	for i := 1; i < len(got); i++ {
		a, b := got[i-1], got[i]
		require.True(t, a.at < b.at || a.at == b.at && a.nth < b.nth, "%v before %v", a, b)
	}
}

// checks are the checkers of a world.
func checks(w *world) *checker { return w.check.(*checker) }

// formed returns a world of n nodes that are Up, with these types.
func formed(t *testing.T, n int, cfg Config, types ...*entityType) *world {
	t.Helper()
	w, _ := newChecked(n, 1, cfg)
	for _, typ := range types {
		typ.Type = typ.WithDefaults()
		w.addType(typ)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := range n {
		w.start(i, w.seeds(order))
	}
	require.True(t, w.until(time.Minute, w.converged), "%s", w.whyNotConverged())
	t.Cleanup(func() {
		for _, p := range w.running() {
			p.die(true)
		}
	})
	return w
}

// TestPipeKeepsOrder: one connection is first in, first out, whatever is lost and however often it stalls.
func TestPipeKeepsOrder(t *testing.T) {
	var got []int
	typ := &entityType{Type: entity.Type{Name: "log", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(_ *entity.Context, b []byte) error { got = append(got, int(b[0])); return nil })
		}}}
	w := formed(t, 2, Config{Network: Network{Loss: 0.3, Jitter: 20 * time.Millisecond}}, typ)
	r := w.hosts[1].proc.region(route.TypeOf("log")) // the shard's home is the coordinator's node, which is the first
	for i := range 200 {
		_, err := r.send("x", []byte{byte(i)}, 0)
		require.NoError(t, err)
		if i == 50 {
			w.net.cuts[1][0] = true
			w.after(3*time.Second, w.net.heal)
		}
		w.advance(5 * time.Millisecond)
	}
	w.advance(time.Minute)
	require.Len(t, got, 200)
	for i, v := range got {
		require.Equal(t, i, v)
	}
	sent := w.hosts[1].proc.link(w.hosts[0].proc.id, 0).flow.Stats().Sent
	require.Positive(t, sent, "the messages went over the network")
	require.Empty(t, checks(w).violations)
}

type handlerFunc func(c *entity.Context, b []byte) error

func (h handlerFunc) Receive(c *entity.Context, b []byte) error { return h(c, b) }
func (h handlerFunc) Stop(*entity.Context)                      {}

// TestPausedProcessDoesNothing: no step, no answer, and everything at once when it goes on.
func TestPausedProcessDoesNothing(t *testing.T) {
	w := formed(t, 3, Config{Resolver: resolverOff})
	p := w.hosts[2].proc
	p.pause(20 * time.Second)
	seq := p.view.Seq
	w.advance(19 * time.Second)
	require.Equal(t, seq, p.view.Seq)
	require.NotEmpty(t, p.deferred)
	require.True(t, w.hosts[0].proc.view.Unreachable.Has(p.id))
	w.advance(2 * time.Second)
	require.Empty(t, p.deferred)
	require.True(t, w.until(time.Minute, w.converged))
}

// TestStaleFenceIsRefused: an envelope under another fence than the one under which the shard lives is not delivered;
// an ask is told, and the sender's route is asked for again (SHD-9).
func TestStaleFenceIsRefused(t *testing.T) {
	got := 0
	typ := &entityType{Type: entity.Type{Name: "t", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { got++; return nil })
		}}}
	w := formed(t, 2, Config{}, typ)
	a, b := w.hosts[0].proc, w.hosts[1].proc
	_, err := b.region(route.TypeOf("t")).send("x", nil, 0)
	require.NoError(t, err)
	w.advance(5 * time.Second)
	require.Equal(t, 1, got)
	f := a.region(route.TypeOf("t")).shards[0].shard.Fence()
	for _, e := range []wire.Envelope{
		{Term: f.Term(), Epoch: f.Epoch() - 1}, {Term: f.Term(), Epoch: f.Epoch() + 1},
		{Term: f.Term() + 1, Epoch: f.Epoch()}, {},
	} {
		e.Type, e.ID = uint32(route.TypeOf("t")), []byte("x")
		before := a.dropped[route.NotOwner]
		a.accept(b.id, wire.AppendEnvelope(nil, &e), &e)
		require.Equal(t, before+1, a.dropped[route.NotOwner], "under %d.%d", e.Term, e.Epoch)
	}
	require.Equal(t, 1, got)
	require.Empty(t, checks(w).violations)
}

// TestBlockingHandlersAsk: a handler that waits for another entity is put aside, also when that one lives in its own
// shard and asks back in turn.
func TestBlockingHandlersAsk(t *testing.T) {
	typ := &entityType{Type: entity.Type{Name: "chain", Shards: 2}}
	typ.New = func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, b []byte) error {
			if id == "e0" {
				return c.Reply([]byte("end"))
			}
			next := "e" + string(id[1]-1)
			got, err := c.Ask(time.Second, "", next, b)
			if err != nil {
				return err
			}
			return c.Reply(append(got, id...))
		})
	}
	w := formed(t, 2, Config{}, typ)
	var reply []byte
	var failed error
	done := false
	err := w.hosts[1].proc.ask(10*time.Second, "chain", "e9", nil, func(b []byte, err error) {
		reply, failed, done = b, err, true
	})
	require.NoError(t, err)
	require.True(t, w.until(10*time.Second, func() bool { return done }))
	require.NoError(t, failed)
	require.Equal(t, "ende1e2e3e4e5e6e7e8e9", string(reply))
	require.Empty(t, w.hosts[0].proc.tasks)
	require.Empty(t, w.hosts[1].proc.tasks)
}

// TestCrashUnwindsWaitingHandlers: a handler that waits when its process dies is unwound, its defers run, and it never
// goes on.
func TestCrashUnwindsWaitingHandlers(t *testing.T) {
	wentOn, unwound := false, false
	typ := &entityType{Type: entity.Type{Name: "stuck", Shards: 4}}
	typ.New = func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, b []byte) error {
			if id == "mute" {
				c.Detach()
				return nil
			}
			defer func() { unwound = true }()
			_, _ = c.Ask(time.Hour, "", "mute", b)
			wentOn = true
			return nil
		})
	}
	w := formed(t, 1, Config{}, typ)
	p := w.hosts[0].proc
	_, err := p.region(route.TypeOf("stuck")).send("waiter", nil, 0)
	require.NoError(t, err)
	w.advance(time.Second)
	require.Len(t, p.tasks, 1)
	p.crash(true)
	require.True(t, unwound)
	require.False(t, wentOn)
}

// TestSameSeedSameTrace: two runs of one seed are equal, two seeds are not.
func TestSameSeedSameTrace(t *testing.T) {
	a, b, c := newStorm(5, nil, false).run(), newStorm(5, nil, true).run(), newStorm(6, nil, false).run()
	require.Equal(t, a.hash, b.hash, "text must not change a run")
	require.Equal(t, a.records, b.records)
	require.NotEqual(t, a.hash, c.hash)
}

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
			a.data(&conn{w: w, from: b, back: &pipe{closed: true}}, []byte{9, 0, 0, 0, byte(wire.KindEnvelope), 0, 0, 0, 1})
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
