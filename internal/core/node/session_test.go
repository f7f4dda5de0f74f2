// Session leases of a node: what follows from the answers of the store.

package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

// holder is a node, alone, whose calls of the store are answered at once.
type holder struct {
	t   *testing.T
	n   *Node
	now time.Duration
	out Effects
	on  []bool // orders to suspend, or to go on
}

// newHolder returns one that has formed its cluster, and whose session is held.
func newHolder(t *testing.T) *holder {
	h := &holder{t: t, now: time.Second, n: New(Config{Self: id("10.0.0.1"), Seed: 1,
		Session: SessionConfig{TTL: 5 * time.Second, Ends: 2 * time.Minute}})}
	w := &wires{t: t, nodes: []*end{{id: id("10.0.0.1"), n: h.n}}}
	_, until := Session(h.n)
	require.Equal(t, NoLease, until, "nothing lives here yet")
	require.NoError(t, h.n.Do(h.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
	member := false
	for range 1000 {
		h.drain()
		for _, op := range slices.Clone(h.out.Session.Ops) {
			require.NoError(t, h.n.Do(h.now, SessionResult{ID: op.ID, OK: true}))
		}
		if member = h.n.suspension.member; member {
			h.drain()
			break
		}
		at, ok := h.n.Next()
		require.True(t, ok)
		h.now = max(h.now, at)
		h.n.Tick(h.now)
	}
	require.True(t, member)
	require.False(t, h.n.Suspended())
	h.on = nil // it was a member before the answer came
	return h
}

func (h *holder) drain() {
	h.n.Drain(&h.out)
	if s := h.out.Suspend; s != nil {
		h.on = append(h.on, s.On)
	}
}

// A node whose session was ended handles nothing any more: not in the step in which it hears of that, when it is no
// member any more, nor in any later one (MEM-10).
func TestEndedSessionIsForEver(t *testing.T) {
	h := newHolder(t)
	var op SessionOp
	for op.ID == 0 {
		at, ok := h.n.Next()
		require.True(t, ok)
		h.now = max(h.now, at)
		h.n.Tick(h.now)
		h.drain()
		if ops := h.out.Session.Ops; len(ops) > 0 {
			op = ops[0]
		}
	}
	_, until := Session(h.n)
	require.Greater(t, until, h.now)
	require.NoError(t, h.n.Do(h.now, SessionResult{ID: op.ID}))
	for range 3 {
		h.drain()
		require.NotContains(t, h.on, false, "it goes on")
		require.True(t, h.n.Suspended())
		_, until = Session(h.n)
		require.Negative(t, until)
		h.now += time.Second
		h.n.Tick(h.now)
	}
	require.NotNil(t, h.n.health.ended)
}

// A node that starts handles nothing before its first session, which is nothing to report while the answer may come in
// time: after that it is, and until when (MEM-10).
func TestFirstSessionIsWaitedForInSilence(t *testing.T) {
	for _, answers := range []bool{true, false} {
		now, suspended, orders := time.Second, 0, 0
		n := New(Config{Self: id("10.0.0.1"), Seed: 1, Session: SessionConfig{TTL: 5 * time.Second, Ends: 2 * time.Minute}})
		w := &wires{t: t, nodes: []*end{{id: id("10.0.0.1"), n: n}}}
		require.NoError(t, n.Do(now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
		var e Effects
		var first []SessionOp
		asked := now
		for now < asked+1500*time.Millisecond {
			n.Drain(&e)
			if e.Suspend != nil {
				orders++
			}
			for _, ev := range e.Events {
				if ev.Kind == membership.NodeSuspended {
					suspended++
					require.False(t, answers)
					require.Equal(t, asked+time.Second, now)
					require.Contains(t, ev.Detail, "no session lease yet")
				}
				require.NotEqual(t, membership.NodeResumed, ev.Kind, "of nothing that was reported")
			}
			first = append(first, e.Session.Ops...)
			if n.suspension.member && answers && len(first) > 0 {
				require.True(t, n.Suspended())
				require.NoError(t, n.Do(now, SessionResult{ID: first[0].ID, OK: true}))
				first = nil
				continue
			}
			at, ok := n.Next()
			require.True(t, ok)
			now = max(now, at)
			n.Tick(now)
		}
		require.Equal(t, !answers, n.Suspended())
		require.Equal(t, map[bool]int{true: 0, false: 1}[answers], suspended)
		require.Positive(t, orders)
	}
}

// A sleep that the node's clock does not show counts for its session too, before anything else of that step (MEM-10).
func TestSleepEndsTheLease(t *testing.T) {
	h := newHolder(t)
	require.NoError(t, h.n.Do(h.now, SleptCommand{For: 5 * time.Second}))
	h.drain()
	require.True(t, h.n.Suspended())
	require.Contains(t, h.out.Suspend.Why, "session lease")
	_, until := Session(h.n)
	require.Negative(t, until)
}

// Who ends the session of a member that does not answer: the larger side, with one half that with the lowest address.
// Who slept, or is no member, ends nobody's (MEM-10).
func TestWhoEndsSessions(t *testing.T) {
	all := func(n int) (list []membership.Member) {
		for i := range n {
			list = append(list, membership.Member{ID: id(fmt.Sprintf("10.0.0.%d", i+1)), Status: membership.Up})
		}
		return list
	}
	for _, c := range []struct {
		name              string
		members, self     int
		silent            []int
		down              int // a member that is Down; 0: none
		rank, targets     int
		asleep, downsSelf bool
	}{
		{name: "the larger side", members: 5, self: 3, silent: []int{1, 5}, rank: 1, targets: 2},
		{name: "the smaller side", members: 5, self: 3, silent: []int{1, 2, 5}, rank: 0},
		{name: "half, with the lowest", members: 4, self: 2, silent: []int{3, 4}, rank: 1, targets: 2},
		{name: "half, without the lowest", members: 4, self: 3, silent: []int{1, 2}},
		{name: "half of those that are not Down", members: 5, self: 3, silent: []int{1, 4}, down: 1, rank: 1, targets: 1},
		{name: "who slept", members: 5, self: 3, silent: []int{1, 5}, asleep: true},
		{name: "who is no member any more", members: 5, self: 3, silent: []int{1, 5}, downsSelf: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := New(Config{Self: id(fmt.Sprintf("10.0.0.%d", c.self)), Seed: 1,
				Session: SessionConfig{TTL: 5 * time.Second, Ends: 2 * time.Minute}})
			v := &membership.View{Self: id(fmt.Sprintf("10.0.0.%d", c.self)), Members: all(c.members)}
			for _, i := range c.silent {
				v.Unreachable = append(v.Unreachable, v.Members[i-1].ID)
			}
			if c.down > 0 {
				v.Members[c.down-1].Status = membership.Down
			}
			n.fed, n.suspension.member, n.suspension.on = v, !c.downsSelf, c.asleep
			ids, rank := n.sessions.lost.gather(n)
			require.Len(t, ids, c.targets)
			if c.targets > 0 {
				require.Equal(t, c.rank, rank)
			}
		})
	}
}
