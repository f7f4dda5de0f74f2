// Tests of hand-offs on real nodes, under traffic.

package partition

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// moves moves the instance of slot 0 round the nodes under traffic of two senders, and returns what was accepted.
func (o *opened) moves(t *testing.T, times int) int {
	t.Helper()
	end := o.send([]int{0, 1}, func(p *Partition, b []byte) error { return p.TellAt(0, b) })
	for range times {
		at := o.host(o.parts[2], 0)
		require.NoError(t, o.parts[2].Move(within(t), 0, o.nodes[(at+1)%len(o.nodes)].ID()))
	}
	return end()
}

// Every accepted combination of options keeps its promise in planned moves (PRT-4).
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name     string
		handoff  Handoff
		order    bool // kept
		apart    bool // one instance at a time
		nothing  bool // is refused
		stateful bool
	}{
		{"2a 3a 4a", Stateless, false, false, true, false},
		{"2b 3a 4a", Handoff{Old: cluster.OldForwards}, false, false, true, false},
		{"2c 3a 4a", Handoff{Old: cluster.OldDrops}, false, true, false, false},
		{"2a 3a 4b", Handoff{Late: cluster.LateDrops}, false, false, false, false},
		{"2c 3a 4b", Lossy, false, true, false, false},
		{"2b 3b 4a", Ordered, true, true, true, true},
		{"2a 3b 4a", Handoff{New: cluster.NewBuffers}, true, true, true, true},
		{"2c 3b 4a", Handoff{Old: cluster.OldDrops, New: cluster.NewBuffers}, true, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := opensWith(t, nil, 3, Config{Path: "a/b", Instances: Exactly(1), Handoff: c.handoff})
			sent := o.moves(t, 6)
			o.b.same(t, sent)
			o.b.mu.Lock()
			defer o.b.mu.Unlock()
			t.Logf("sent %d, came back %d, out of order %d, instances at a time %d", sent, len(o.b.back), o.b.order, o.b.most)
			require.Greater(t, len(o.b.got), 0)
			if c.order {
				require.Zero(t, o.b.order)
			}
			if c.apart {
				require.Equal(t, 1, o.b.most)
			}
			require.LessOrEqual(t, o.b.most, 2)
			if c.nothing {
				require.Empty(t, o.b.back)
			}
			for _, err := range o.b.back {
				require.True(t, next(err), err)
			}
			if c.stateful {
				require.GreaterOrEqual(t, len(o.b.states), 6)
				require.IsNonDecreasing(t, o.b.states)
			}
			for i := range len(o.b.fences) - 1 {
				require.Negative(t, o.b.fences[i].Compare(o.b.fences[i+1]))
			}
		})
	}
}

// holding is a handler with calls that end when it is let go.
type holding struct{ began, goes chan struct{} }

func (h *holding) Receive(*kith.Context, []byte) error {
	h.began <- struct{}{}
	<-h.goes
	return nil
}

func (h *holding) Stop(*kith.Context) {}

// The old node of 2b asks the new one when the call has ended that its own instance is in: one handles at a time
// (PRT-4).
func TestCallEndsFirst(t *testing.T) {
	h := &holding{make(chan struct{}, 1), make(chan struct{})}
	var made atomic.Int32
	o := opensWith(t, nil, 2, Config{Path: "a/b", Instances: Exactly(1), Handoff: Handoff{Old: cluster.OldForwards},
		New: func(int, kith.Fence) kith.Handler { made.Add(1); return h }})
	from := o.host(o.parts[0], 0)
	old, to := o.parts[from], o.nodes[1-from]
	require.NoError(t, old.TellAt(0, []byte("slow")))
	<-h.began
	moved := make(chan error, 1)
	go func() { moved <- old.Move(within(t), 0, to.ID()) }()
	require.Eventually(t, func() bool {
		old.tasks.mu.Lock()
		defer old.tasks.mu.Unlock()
		return old.tasks.busy[task{asks, 0}]
	}, 2*time.Minute, time.Millisecond)
	stale := appendFrame(nil, &frame{kind: isInit, from: old.hub.self})
	for range 20 { // a request that the task had sent would have come before these
		id, ok := old.hub.ear(to.ID(), 0, old.path)
		require.True(t, ok)
		_, err := old.hub.pool.Ask(context.Background(), stale, id, nil)
		require.ErrorIs(t, err, ErrMoved)
	}
	require.EqualValues(t, 1, made.Load(), "the new node has made its instance while the old one handles")
	close(h.goes)
	require.NoError(t, <-moved)
	require.EqualValues(t, 2, made.Load())
}

// TestBeginIsTriedAgain: an instance that could not begin, since its slot is being begun or its room has not ended, is
// forgotten: it is begun anew, and does not wait for a message (PRT-4).
func TestBeginIsTriedAgain(t *testing.T) {
	o := opensWith(t, nil, 1, Config{Path: "a/b", Instances: Exactly(1), Handoff: Stateless})
	p := o.parts[0]
	require.Eventually(t, func() bool { return p.held.lives(0) != nil }, 2*time.Minute, time.Millisecond)
	i, r := p.held.lives(0), p.row.Load()
	goes := make(chan struct{})
	require.Eventually(t, func() bool { // the one that began it may not be through
		return p.tasks.start(task{begins, 0}, func() { <-goes })
	}, 2*time.Minute, time.Millisecond)
	i.stop(&kith.Context{}, true)
	require.True(t, p.held.drop(i))
	p.carryOut(context.Background(), r, duty{act: begins})
	close(goes)
	require.Eventually(t, func() bool {
		o.b.mu.Lock()
		defer o.b.mu.Unlock()
		return o.b.alive[0] == 1
	}, 2*time.Minute, time.Millisecond)
}

// patient is a node on which waiting takes no time.
type patient struct{ clock }

func (p *patient) Begin(f func()) { f() }
func (p *patient) Err() error     { return nil }

func (p *patient) Wait(_ context.Context, d time.Duration, _ <-chan struct{}) bool {
	p.now = p.now.Add(d)
	return true
}

// crowded is a lane that is full until a time.
type crowded struct {
	heard
	n     *patient
	until time.Time
}

func (l *crowded) ShardAt(kith.ID) (route.ShardID, bool) { return 0, true }

func (l *crowded) Tell(headers []byte, id string, payload []byte) error {
	if l.n.now.Before(l.until) {
		return fmt.Errorf("to a node: %w", route.ErrLinkFull)
	}
	return l.heard.Tell(headers, id, payload)
}

// An old node sends on what all senders send to it, and the link to the new one may be full: it waits, ten seconds at
// most, for a planned move refuses nothing. Found by storm 2014 (PRT-4).
func TestSendingOnWaitsForRoom(t *testing.T) {
	for _, c := range []struct {
		full    time.Duration
		refused int
	}{{time.Second, 0}, {9 * time.Second, 0}, {11 * time.Second, 1}} {
		n := &patient{clock{now: time.Unix(0, 0)}}
		l := &crowded{n: n, until: n.now.Add(c.full)}
		b := newBook()
		p := &Partition{path: "a", hub: &hub{node: n, self: node(1), began: n.now, pool: l}, cfg: Config{Refused: b.refused}}
		p.hub.open = map[string]*Partition{"a": p}
		p.held.known.asked = map[int]stamp{}
		s := placed(Handoff{Old: cluster.OldForwards}, node(2), false)
		p.row.Store(&row{*s, true})
		require.NoError(t, p.receive(&kith.Context{}, 0, &frame{kind: isMessage, at: stampOf(s), from: node(1)}, []byte("m")))
		require.Len(t, b.back, c.refused, "%v", c.full)
		require.Len(t, l.said, 1-c.refused)
		require.Equal(t, uint64(1-c.refused), p.count.forwarded.Load())
		require.Zero(t, p.waiting.Load())
	}
}

// apart is a node in a cluster that does not converge.
type apart struct {
	patient
	v kith.View
}

func (a *apart) View() *kith.View                      { return &a.v }
func (*apart) Converged(context.Context) (bool, error) { return false, nil }

// A node that leaves waits longer for all to have heard of it where all can be reached, and does not wait for those who
// cannot (PRT-4).
func TestLeaverWaitsUntilAllHaveSeen(t *testing.T) {
	for _, c := range []struct {
		away peer.Set
		want time.Duration
	}{{nil, seenInTheEnd}, {peer.SetOf(node(2)), seenByAll}} {
		n := &apart{patient: patient{clock{now: time.Unix(0, 0)}}, v: kith.View{Unreachable: c.away}}
		h := &hub{node: n, began: n.now}
		h.settle(t.Context(), seenInTheEnd)
		require.Equal(t, c.want, h.uptime())
	}
}
