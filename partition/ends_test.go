// Tests of instances of a partition that is no more, or has gone over to another kind of hand-off, and of beginnings.

package partition

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
)

// none waits until no instance lives on any node.
func (o *opened) none(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		o.b.mu.Lock()
		defer o.b.mu.Unlock()
		for _, n := range o.b.alive {
			if n > 0 {
				return false
			}
		}
		return true
	}, 20*time.Second, time.Millisecond)
}

// What was on the way when a partition was taken back makes no instance of it (PRT-2).
func TestLateMessagesMakeNoInstance(t *testing.T) {
	for _, h := range []Handoff{Stateless, Ordered} {
		o := opens(t, 1, Config{Path: "a", Instances: Exactly(1), Handoff: h})
		p := o.parts[0]
		_, err := p.AskAt(within(t), 0, numbered(1, 1))
		require.NoError(t, err)
		before := p.row.Load()
		require.NoError(t, p.Undefine(within(t)))
		require.Eventually(t, func() bool { return !p.row.Load().ok }, time.Minute, time.Millisecond)
		o.none(t)
		lane, headers, id, err := p.way(before, 0)
		require.NoError(t, err)
		_, err = lane.Ask(within(t), headers, id, numbered(1, 2))
		require.ErrorIs(t, err, ErrNoInstance)
		o.none(t)
	}
}

// A partition goes over to another kind of hand-off: the instances of the old kind end, and what is sent by an older
// table comes to those of the new kind (PRT-2, PRT-4).
func TestAnotherKindOfHandoff(t *testing.T) {
	for from, to := range map[Handoff]Handoff{Ordered: Stateless, Stateless: Ordered} {
		t.Run(from.String(), func(t *testing.T) {
			t.Parallel()
			o := opens(t, 2, Config{Path: "a", Instances: Exactly(1), Handoff: from})
			p := o.parts[0]
			_, err := p.AskAt(within(t), 0, numbered(1, 1))
			require.NoError(t, err)
			before := p.row.Load()
			require.NoError(t, o.w.doors[0].Define(within(t), Definition{Path: "a", Count: Exactly(1), Handoff: to}))
			require.Eventually(t, func() bool {
				for _, p := range o.parts {
					if r := p.row.Load(); r.InForce != to || to == Ordered && p.room.Load() == nil {
						return false
					}
				}
				o.b.mu.Lock()
				defer o.b.mu.Unlock()
				return o.b.alive[0] == 1 && len(o.b.fences) == 2
			}, 20*time.Second, time.Millisecond)
			require.Eventually(t, func() bool {
				_, err := p.AskAt(within(t), 0, numbered(1, 1))
				return err == nil
			}, 20*time.Second, time.Millisecond)
			lane, headers, id, err := p.way(before, 0)
			require.NoError(t, err)
			a, err := lane.Ask(within(t), headers, id, numbered(1, 2))
			require.NoError(t, err)
			require.Equal(t, "0", string(a))
			o.b.mu.Lock()
			defer o.b.mu.Unlock()
			require.Len(t, o.b.fences, 2, "no other instance was made")
			require.Equal(t, to == Ordered, o.b.fences[0].Compare(o.b.fences[1]) < 0)
			require.Equal(t, 1, o.b.alive[0])
		})
	}
}

// Two partitions may be opened at a time, also the first of a node (PRT-1).
func TestOpenedAtATime(t *testing.T) {
	n := begin(t, kith.Config{})
	o, w := newBook(), &world{}
	t.Cleanup(func() { w.mu.Lock(); w.over = true; w.mu.Unlock() })
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, errs[i] = open(n, Config{Path: strconv.Itoa(i), Instances: Exactly(1), New: o.made}, w.door())
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, w.doors, 1)
}

// Known of a partition without rules waits for those of one above, and says at its end what it waited for (PRT-1).
func TestKnownWaitsForRules(t *testing.T) {
	o := opens(t, 1, Config{Path: "z", Instances: Exactly(1)})
	below, err := Open(o.nodes[0], Config{Path: "a/b", New: o.b.made})
	require.NoError(t, err)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.Eventually(t, func() bool { return below.Err() != nil }, time.Minute, time.Millisecond)
	err = below.Known(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrNoRules)
	known := make(chan error, 1)
	go func() { known <- below.Known(within(t)) }()
	_, err = Open(o.nodes[0], Config{Path: "a", Instances: Exactly(1), New: o.b.made})
	require.NoError(t, err)
	require.NoError(t, <-known)
}

// A node that leaves or drains hands nothing to one that has opened no partition, or drains: that one would never be
// ready, and the hand-off would wait for ever (PRT-4).
func TestNothingIsHandedToStrangers(t *testing.T) {
	o := opens(t, 1, Config{Path: "a", Instances: Exactly(1)})
	stranger := begin(t, kith.Config{}, o.nodes...)
	p := o.parts[0]
	require.Eventually(t, func() bool {
		m, ok := o.nodes[0].View().Member(stranger.ID())
		return ok && m.Status == kith.Up
	}, time.Minute, time.Millisecond)
	to := func() kith.ID {
		rows := p.hub.door.Table()
		return p.hub.fewest(rows, &rows[0])
	}
	require.Zero(t, to())
	_, err := open(stranger, Config{Path: "a", Instances: Exactly(1), New: o.b.made}, o.w.door())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return to() == stranger.ID() }, time.Minute, time.Millisecond)
}

// Where the old node forwards, it handles by itself as long as it knows no way to the new one: nothing comes back
// meanwhile. In storm 2469 messages went round on the old node until they were refused as astray (PRT-4).
func TestOldNodeHandlesUntilItKnowsAWay(t *testing.T) {
	way := Handoff{Old: cluster.OldForwards, New: cluster.NewOpen, Late: cluster.LateForwards}
	o := opens(t, 1, Config{Path: "a", Instances: Exactly(1), Handoff: way})
	stranger := begin(t, kith.Config{}, o.nodes...)
	p := o.parts[0]
	require.Eventually(t, func() bool {
		m, ok := o.nodes[0].View().Member(stranger.ID())
		return ok && m.Status == kith.Up
	}, time.Minute, time.Millisecond)
	require.NoError(t, o.w.doors[0].Move(within(t), "a", 0, stranger.ID()))
	require.Eventually(t, func() bool { return len(p.row.Load().Changes) == 1 }, time.Minute, time.Millisecond)
	for n := range 10 {
		_, err := p.AskAt(within(t), 0, numbered(1, uint32(n+1)))
		require.NoError(t, err)
	}
	require.Zero(t, p.Stats().Forwarded)
	at := func() kith.ID { return p.row.Load().Instances[0] }
	require.Equal(t, p.hub.self, at())
	cfg := Config{Path: "a", Instances: Exactly(1), Handoff: way, New: o.b.made}
	_, err := open(stranger, cfg, o.w.door())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return at() == stranger.ID() }, time.Minute, time.Millisecond)
}
