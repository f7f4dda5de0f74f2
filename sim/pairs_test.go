// Tests of who is lost for whom: what a lost side may do beside those who have lost it, and what not among its own.

package sim

import (
	"slices"
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

// downs has a process show others as Down.
func downs(w *world, by *proc, others ...*proc) {
	v := *by.view
	v.Members, v.Converged = slices.Clone(v.Members), false
	for i := range v.Members {
		for _, q := range others {
			if m := &v.Members[i]; m.ID == q.id {
				checks(w).excuse(q.id)
				m.Status, m.Cause = membership.Down, membership.CauseResolver
			}
		}
	}
	by.view = &v
	checks(w).view(by, by.view)
}

// TestALostSideIsHeldToItsOwnRules: c has lost a and b, which have not heard of it and hold each other for members.
// That excuses each of them beside c, and neither beside the other (SHD-9, MEM-10).
func TestALostSideIsHeldToItsOwnRules(t *testing.T) {
	typ := &entityType{Type: entity.Type{Name: "t", Shards: 2, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { return nil })
		}}}
	id := route.TypeOf("t")
	key := shardKey{id, 0}
	fence := func(term, epoch uint32) route.Fence { return route.MakeFence(9, term, epoch) }
	envelope := func(term uint32) *wire.Envelope { return &wire.Envelope{Term: term, Epoch: 1} }
	for name, k := range map[string]struct {
		want []string // rules that are broken
		do   func(w *world, a, b, c *proc)
	}{
		"an owner beside that of those who have lost it": {nil, func(w *world, a, b, c *proc) {
			feignSuspended(a, true)
			checks(w).hosts(a, key, fence(9, 1))
			w.now += w.takeover()
			checks(w).hosts(c, key, fence(10, 1))
			require.True(t, checks(w).write(c, id, "x", fence(10, 1)))
			require.False(t, checks(w).write(a, id, "x", fence(9, 1)))
		}},
		"an owner that handles messages beside it": {[]string{"late-handling"}, func(w *world, a, b, c *proc) {
			feignSuspended(a, true)
			checks(w).hosts(a, key, fence(9, 1))
			w.now += w.takeover()
			checks(w).delivers(a, key, envelope(9))
			checks(w).hosts(c, key, fence(10, 1))
			checks(w).delivers(a, key, envelope(9))
		}},
		"two owners among the lost": {[]string{"two-owners"}, func(w *world, a, b, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).hosts(b, key, fence(9, 2))
		}},
		"one after the other": {nil, func(w *world, a, b, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).stopped(a, key, true)
			checks(w).hosts(b, key, fence(9, 2))
		}},
		"one lost the other first": {nil, func(w *world, a, b, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			downs(w, b, a)
			checks(w).hosts(b, key, fence(9, 2))
		}},
		"a fence again": {[]string{"fence-order"}, func(w *world, a, _, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).stopped(a, key, true)
			checks(w).hosts(a, key, fence(9, 1))
		}},
		"a message under another fence": {[]string{"delivery-fence"}, func(w *world, a, _, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).delivers(a, key, envelope(8))
		}},
		"a message where it does not live": {[]string{"delivery-fence"}, func(w *world, a, _, _ *proc) {
			checks(w).delivers(a, key, envelope(9))
		}},
		"given out while it lives among the lost": {[]string{"allocation"}, func(w *world, a, b, _ *proc) {
			checks(w).hosts(a, key, fence(9, 1))
			checks(w).allocated(b, &shard.Event{Type: id, Home: b.id, Fence: fence(9, 2)})
		}},
		"two coordinators among the lost": {[]string{"two-coordinators"}, func(w *world, a, b, _ *proc) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
		}},
		"a coordinator on each side": {nil, func(w *world, a, _, c *proc) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).ready(c, &shard.Event{Type: 7, Term: 2})
		}},
		"one coordinator after the other": {nil, func(w *world, a, b, _ *proc) {
			checks(w).ready(a, &shard.Event{Type: 7, Term: 1})
			checks(w).shard(a, &shard.Event{Kind: shard.CoordinatorStopped, Type: 7})
			checks(w).ready(b, &shard.Event{Type: 7, Term: 2})
		}},
		"a late write among the lost": {[]string{"late-owner"}, func(w *world, a, b, _ *proc) {
			checks(w).write(a, id, "x", fence(9, 2))
			checks(w).write(b, id, "x", fence(9, 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, Config{}, typ)
			a, b, c := w.hosts[0].proc, w.hosts[1].proc, w.hosts[2].proc
			downs(w, c, a, b)
			require.Empty(t, checks(w).violations)
			k.do(w, a, b, c)
			var rules []string
			for _, v := range checks(w).violations {
				rules = append(rules, v.Rule)
			}
			require.Equal(t, k.want, rules, "%v", checks(w).violations)
		})
	}
}

// TestWhoIsGoneForWhom: for oneself, and for those whom somebody holds who has lost it; not for the others on its side;
// newcomers take over since when from those who admit them.
func TestWhoIsGoneForWhom(t *testing.T) {
	w := formed(t, 4, Config{})
	var p [4]*proc
	for i := range p {
		p[i] = w.hosts[i].proc
	}
	r := &checks(w).pairs
	_, gone := r.goneFor(p[0].id, p[1].id)
	require.False(t, gone)
	at := w.now + time.Second
	r.loses(p[2], p[0].id, at)
	r.loses(p[2], p[1].id, at)
	since, gone := r.goneFor(p[2].id, p[0].id)
	require.True(t, gone)
	require.Equal(t, at, since)
	_, gone = r.goneFor(p[3].id, p[0].id)
	require.True(t, gone, "the one that has lost it holds the fourth")
	_, gone = r.goneFor(p[1].id, p[0].id)
	require.False(t, gone, "they went together")
	require.False(t, r.apart(p[0].id, p[1].id))
	require.True(t, r.apart(p[0].id, p[3].id))
	r.loses(p[2], p[3].id, at+time.Second)
	_, gone = r.goneFor(p[3].id, p[0].id)
	require.True(t, gone, "it has held it a while")
	r.loses(p[3], p[1].id, at+time.Minute)
	require.Equal(t, at, r.lost[reportKey{p[3].id, p[1].id}])
	early := &proc{id: peer.ID{Addr: p[0].id.Addr, Inc: 77}}
	r.loses(early, p[1].id, at-time.Minute)
	m, _ := p[3].view.Member(p[3].id)
	r.shows(early, &m, at)
	require.Equal(t, at-time.Minute, r.lost[reportKey{p[3].id, p[1].id}], "it hears of it")
	m, _ = p[0].view.Member(p[1].id)
	newcomer := &proc{id: p[0].id}
	newcomer.id.Inc++
	r.loses(newcomer, p[1].id, at)
	require.True(t, r.apart(newcomer.id, p[1].id))
	r.shows(newcomer, &m, at)
	require.False(t, r.apart(newcomer.id, p[1].id), "it had not come yet")
}

// TestASuspendedCoordinatorOfAnOldCluster: who formed a cluster anew has seen nothing of one that overslept the end of
// the old one. It may be a coordinator there, as long as it has stopped; one that goes on is a second one (JOIN-1).
func TestASuspendedCoordinatorOfAnOldCluster(t *testing.T) {
	for name, k := range map[string]struct {
		held bool
		born uint64 // of the newcomer's cluster beside that of the other one
		want int
	}{
		"it has stopped":          {true, 1, 0},
		"it goes on":              {false, 1, 2},
		"it stopped in this one":  {true, 0, 2},
		"it goes on in this one":  {false, 0, 2},
		"it stopped in a new one": {true, ^uint64(0), 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 2, Config{})
			old, fresh := w.hosts[0].proc, w.hosts[1].proc
			v := *fresh.view
			v.Birth += k.born
			fresh.view = &v
			feignSuspended(old, k.held)
			checks(w).seat(old, &shard.Event{Type: 7, Term: 4})
			checks(w).seat(fresh, &shard.Event{Type: 7, Term: 1})
			checks(w).seat(old, &shard.Event{Type: 7, Term: 4})
			require.Len(t, checks(w).violations, k.want, "%v", checks(w).violations)
		})
	}
}
