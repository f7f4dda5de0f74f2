// Tests of the machine: a few of them, their hosts, and couriers between them (SHD-12).

package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A machine keeps the contract of all machines.
var _ contract.Machine[Command, Effects] = (*Machine)(nil)

func id(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)), Inc: uint64(n)}
}

var errGone = errors.New("it is lost")

// world is a few machines, hosts that know which entities live, and couriers that keep the order and lose nothing.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	now   time.Duration
	nodes map[peer.ID]*node
	order []peer.ID
	home  map[Place]peer.ID
	epoch map[Place]uint32
	old   map[peer.ID]bool
}

// node is one of them, and its runtime.
type node struct {
	w       *world
	id      peer.ID
	m       *Machine
	lost    map[peer.ID]bool
	left    map[peer.ID]bool
	status  map[peer.ID]cluster.Status
	knows   map[Place]peer.ID // where this node believes that shards live
	wanted  map[Place]bool
	lives   map[string]uint64 // by entity, the instance
	last    uint64
	by      map[string][]entity.Watcher
	in      []func()
	told    map[uint64][]entity.Ended
	stopped bool
}

func newWorld(t *testing.T, seed uint64, n int) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), nodes: map[peer.ID]*node{}, home: map[Place]peer.ID{},
		epoch: map[Place]uint32{}, old: map[peer.ID]bool{}}
	for i := 1; i <= n; i++ {
		x := &node{w: w, id: id(i), lost: map[peer.ID]bool{}, left: map[peer.ID]bool{}, knows: map[Place]peer.ID{},
			wanted: map[Place]bool{}, lives: map[string]uint64{}, by: map[string][]entity.Watcher{},
			told: map[uint64][]entity.Ended{}, status: map[peer.ID]cluster.Status{}}
		x.m = New(x.id, Config{Home: x.where, Next: func(route.TypeID, route.ShardID) peer.ID { return peer.ID{} },
			Want:  func(t route.TypeID, s route.ShardID) { x.wanted[Place{t, s}] = true },
			Stale: func(t route.TypeID, s route.ShardID, _ route.Fence) { delete(x.knows, Place{t, s}) },
			Lost:  func(o peer.ID) bool { return x.lost[o] }, Post: x.post})
		w.nodes[x.id] = x
		w.order = append(w.order, x.id)
	}
	return w
}

func (x *node) where(t route.TypeID, s route.ShardID) (peer.ID, route.Fence, bool) {
	at, known := x.knows[Place{t, s}]
	return at, route.MakeFence(1, 1, x.w.epoch[Place{t, s}]), known
}

func (x *node) post(m peer.Mail) error {
	to := x.w.nodes[m.To]
	switch {
	case x.lost[m.To]:
		return errGone
	case x.w.rng.IntN(8) == 0:
		return ErrNoRoom
	}
	body := slices.Clone(m.Body)
	to.in = append(to.in, func() { to.handle(x.id, m.Kind, body) })
	return nil
}

func (x *node) handle(from peer.ID, kind wire.Kind, body []byte) {
	if x.stopped || x.lost[from] {
		return
	}
	require.NoError(x.w.t, x.m.Handle(x.w.now, x.w.now, from, kind, body))
	x.perform()
}

func (x *node) do(c Command) {
	require.NoError(x.w.t, x.m.Do(x.w.now, c))
	x.perform()
}

// perform is what a runtime does.
func (x *node) perform() {
	var e Effects
	contract.Drain(x.w.t, x.m, &e, "out", "drained")
	var c TurnCommand
	for _, l := range e.Looks {
		by := entity.Watcher{Node: l.From, Number: l.Number}
		r := Report{To: by, Place: Place{l.Type, l.Shard}, Fence: route.MakeFence(1, 1, x.w.epoch[Place{l.Type, l.Shard}])}
		switch n := x.lives[l.ID]; {
		case l.Off:
			x.by[l.ID] = slices.DeleteFunc(x.by[l.ID], func(o entity.Watcher) bool { return o == by })
		case x.w.home[r.Place] != x.id:
			c.Reports = append(c.Reports, r)
		case n == 0:
			r.Cause = entity.EndedNone
			c.Reports = append(c.Reports, r)
		default:
			x.by[l.ID] = append(x.by[l.ID], by)
		}
	}
	for _, g := range e.Gone {
		for k := range x.by {
			x.by[k] = slices.DeleteFunc(x.by[k], func(o entity.Watcher) bool { return o.Node == g })
		}
	}
	for _, told := range e.Told {
		x.told[told.Number] = append(x.told[told.Number], told.Ended)
	}
	for _, m := range e.Mail {
		to, body := x.w.nodes[m.To], slices.Clone(m.Body)
		if x.w.old[m.To] {
			x.in = append(x.in, func() { x.do(OlderCommand{m.To}) })
		} else if x.w.rng.IntN(4) > 0 {
			to.in = append(to.in, func() { to.handle(x.id, m.Kind, body) })
		}
	}
	if len(c.Reports) > 0 {
		x.in = append(x.in, func() { x.do(c) })
	}
}

// ends ends an instance.
func (x *node) ends(p Place, id string, why entity.EndCause) {
	var c TurnCommand
	for _, by := range x.by[id] {
		c.Reports = append(c.Reports, Report{To: by, Place: p, Cause: why, Instance: x.lives[id],
			Fence: route.MakeFence(1, 1, x.w.epoch[p])})
	}
	delete(x.by, id)
	delete(x.lives, id)
	x.in = append(x.in, func() { x.do(c) })
}

// lose has all others hold a node for lost.
func (w *world) lose(who peer.ID) {
	w.nodes[who].stopped = true
	for _, o := range w.order {
		x := w.nodes[o]
		x.lost[who] = true
		for p, at := range x.knows {
			if at == who {
				delete(x.knows, p)
			}
		}
		x.view()
	}
}

func (x *node) view() {
	v := &cluster.View{}
	for _, o := range x.w.order {
		if !x.lost[o] {
			v.Members = append(v.Members, cluster.Member{ID: o, Status: x.status[o]})
		}
	}
	x.do(FollowCommand{View: v})
}

// step does one thing that is due anywhere.
func (w *world) step() {
	w.now += 10 * time.Millisecond
	x := w.nodes[w.order[w.rng.IntN(len(w.order))]]
	switch at, ok := x.m.Next(); {
	case x.stopped:
	case len(x.in) > 0:
		next := x.in[0]
		x.in = x.in[1:]
		next()
	case ok && at <= w.now:
		x.m.Tick(w.now)
		x.perform()
	}
	for p := range x.wanted {
		if home := w.home[p]; !home.IsZero() && !w.nodes[home].stopped && w.rng.IntN(3) == 0 {
			delete(x.wanted, p)
			x.knows[p] = home
			x.do(KnownCommand{[]Place{p}})
		}
	}
}

// Whatever is lost, moves, has no room or is believed of homes: each watch is reported exactly once in the end, unless
// it was taken back or its entity lives, and what is reported is true.
func TestEachWatchIsToldOnce(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed, 4)
		watcher := w.nodes[id(1)]
		names := []string{"a", "b", "c"}
		place := func(i int) Place { return Place{1, route.ShardID(i)} }
		for i := range names {
			w.home[place(i)] = id(2 + i)
		}
		begun, back, number := map[uint64]int{}, map[uint64]bool{}, uint64(0)
		for range 300 {
			i := w.rng.IntN(len(names))
			home := w.nodes[w.home[place(i)]]
			switch w.rng.IntN(12) {
			case 0, 1, 2:
				number++
				begun[number] = i
				watcher.do(TurnCommand{Begin: []Wanted{{number, 1, route.ShardID(i), names[i]}}})
			case 3:
				if n := uint64(w.rng.IntN(int(number + 1))); begun[n] == i && n > 0 && len(watcher.told[n]) == 0 {
					back[n] = true
					watcher.do(TurnCommand{End: []Wanted{{n, 1, route.ShardID(i), names[i]}}})
				}
			case 4, 5, 6:
				if !home.stopped && home.lives[names[i]] == 0 {
					home.last++
					home.lives[names[i]] = home.last
				}
			case 7:
				if !home.stopped {
					home.ends(place(i), names[i], entity.EndedPassivated)
				}
			case 8: // its shard moves, and nobody hears of it
				if to := w.nodes[id(2+w.rng.IntN(3))]; !to.stopped && !home.stopped && to != home {
					home.ends(place(i), names[i], entity.EndedMoved)
					w.home[place(i)] = to.id
					w.epoch[place(i)]++
				}
			case 9:
				if w.rng.IntN(30) == 0 && !home.stopped && home != watcher {
					w.lose(home.id)
					for k, p := range w.home { // to the next that lives
						if p == home.id {
							w.home[k] = id(1)
							w.epoch[k]++
						}
					}
				}
			}
			for range w.rng.IntN(6) {
				w.step()
			}
		}
		for range 6000 {
			w.step()
		}
		for n, i := range begun {
			told := watcher.told[n]
			lives := w.nodes[w.home[place(i)]].lives[names[i]] != 0
			switch {
			case back[n]:
				require.Empty(t, told, "seed %d: watch %d was taken back", seed, n)
			case lives && len(told) == 0:
			default:
				require.Len(t, told, 1, "seed %d: watch %d of %s, which lives: %t", seed, n, names[i], lives)
			}
		}
		require.Empty(t, watcher.m.seeking)
	}
}

// A node that has left in order shows that by its last status; one that is Down is lost. One of an earlier version is
// reported as such, and asked no more.
func TestGoneAndOld(t *testing.T) {
	for _, c := range []struct {
		status cluster.Status
		why    entity.EndCause
	}{{cluster.Exiting, entity.EndedLeft}, {cluster.Up, entity.EndedLost}} {
		w := newWorld(t, 1, 2)
		x, y := w.nodes[id(1)], w.nodes[id(2)]
		p := Place{1, 0}
		w.home[p], y.lives["a"], w.epoch[p] = y.id, 1, 7
		x.do(TurnCommand{Begin: []Wanted{{1, 1, 0, "a"}}})
		for range 500 {
			w.step()
		}
		require.Len(t, y.by["a"], 1)
		x.status[y.id] = c.status
		x.view()
		require.Empty(t, x.told)
		w.lose(y.id)
		require.Equal(t, []entity.Ended{{Cause: c.why, Fence: route.MakeFence(1, 1, 7)}}, x.told[1])
		require.Zero(t, x.m.Stats().Standing)
		require.Empty(t, x.m.desks)
	}
	w := newWorld(t, 1, 2)
	x := w.nodes[id(1)]
	w.home[Place{1, 0}], w.old[id(2)] = id(2), true
	for n := range uint64(2) {
		x.do(TurnCommand{Begin: []Wanted{{1 + n, 1, 0, "a"}}})
		for range 500 {
			w.step()
		}
		require.Len(t, x.told[1+n], 1)
		require.Equal(t, entity.EndedOld, x.told[1+n][0].Cause)
	}
	require.ErrorIs(t, x.m.Do(0, nil), ErrBadCommand)
	require.ErrorIs(t, x.m.Handle(0, 0, id(2), wire.KindHomes, nil), ErrBadKind)
	require.Error(t, x.m.Handle(0, 0, id(2), wire.KindWatchHello, []byte{2}))
	require.Error(t, x.m.Handle(0, 0, id(2), wire.KindWatches, []byte{9}))
}
