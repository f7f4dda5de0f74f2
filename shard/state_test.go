// State that moves with a shard, in the small world: how many messages its entities have handled, as each instance
// knows it from the one before; and what a transfer of states asks of the next owner.

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// stateMark stands behind the letters that an owner hands over, before the number of its state, which is two bytes.
const stateMark = 255

// stateBook knows what every instance should.
type stateBook struct {
	on      bool
	all     []handedState
	has     map[*testNode]map[string]int // what the instance of a shard at a node has counted
	handled map[string]int               // what the next instance of a shard has to begin with
	broken  map[string]bool              // shards of a state that died, or was lost for a named reason: may begin anew
	taken   int
	anew    int
}

type handedState struct {
	to    string // key of the shard
	count int
	taken bool
}

func newStateBook() stateBook {
	return stateBook{has: map[*testNode]map[string]int{}, handled: map[string]int{}, broken: map[string]bool{}}
}

// letters returns the messages in what was handed over.
func (x *traffic) letters(left []byte) (list []letter) {
	for _, b := range left {
		if b == stateMark {
			break
		}
		list = append(list, x.left[b])
	}
	return list
}

// state returns the state in it, nil if there is none.
func (x *traffic) state(left []byte) *handedState {
	if n := len(left); n >= 3 && left[n-3] == stateMark {
		return &x.states.all[int(left[n-2])<<8|int(left[n-1])]
	}
	return nil
}

// gives appends the state of a shard that stops at a node.
func (x *traffic) gives(n *testNode, k string, left []byte) []byte {
	b := &x.states
	if !b.on {
		return left
	}
	at := len(b.all)
	b.all = append(b.all, handedState{to: k, count: at2(b.has, n)[k]})
	return append(left, stateMark, byte(at>>8), byte(at))
}

// begins is the next instance of a shard: it has the state of the last one, once, or that was lost with a node.
func (x *traffic) begins(n *testNode, k string, left []byte) {
	b, t := &x.states, x.w.t
	st := x.state(left)
	switch {
	case !b.on:
		return
	case st == nil:
		if !x.faulty && !b.broken[k] {
			require.Zero(t, b.handled[k], "%s begins with %s without its state", n.id, k)
		}
		b.handled[k] = 0
		b.anew++
	default:
		require.Equal(t, k, st.to)
		require.False(t, st.taken, "a state of %s is taken up twice", k)
		require.Equal(t, b.handled[k], st.count, "%s begins with another state of %s than the last", n.id, k)
		st.taken = true
		b.taken++
	}
	b.broken[k] = false
	at2(b.has, n)[k] = b.handled[k]
}

// loseRest takes what was handed over off the account.
func (x *traffic) loseRest(left []byte) {
	x.lose(x.letters(left))
	if st := x.state(left); st != nil {
		x.states.broken[st.to] = true
	}
}

// A next owner that is known to know nothing of states is given none: its order has no room for any. With an owner of
// unknown version it is tried, and when that turns out not to know them the shard comes back with all that was left,
// states included.
func TestNextOwnerWithoutStates(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	var room []int
	w.ordered = func(h HostOrder) {
		if h.Moves {
			room = append(room, h.Room)
		}
	}
	older := true
	owner.m.cfg.NoStates = func(id peer.ID) bool { return older && id == next.id }
	s := of(owner)
	require.NoError(t, boss.move(s, next))
	w.flow()
	require.Equal(t, []int{0}, room)
	require.NotZero(t, next.hosted[key(orders.ID(), s)])

	older, w.slowStop = false, true
	s = of(owner)
	f := owner.hosted[key(orders.ID(), s)]
	require.NoError(t, boss.move(s, next))
	w.flow()
	require.Equal(t, []int{0, DefaultMaxHandOver}, room)
	c := rest(s, f, []byte("state"))
	c.States = true
	owner.answer(c)
	require.True(t, w.drop(wire.KindTransferStates), "it travels by a kind of its own")
	older = true
	w.pass(5 * time.Second)
	require.Equal(t, "state", owner.rests[key(orders.ID(), s)])
	require.Zero(t, w.mails[wire.KindTransfer])
	w.agree(orders, s)
}

// drop loses the mail of a kind that is on its way, and reports whether there was any.
func (w *world) drop(k wire.Kind) (some bool) {
	for i := len(w.queue) - 1; i >= 0; i-- {
		if w.queue[i].kind == k {
			w.queue, some = append(w.queue[:i], w.queue[i+1:]...), true
		}
	}
	return some
}
