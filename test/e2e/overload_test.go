// A node that has more to do than it can, and is to be relieved.

package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/long"
)

// paced is an entity that books what it gets, at the pace of a ticker if it has one.
type paced struct {
	l    *ledger
	at   func() kith.ID
	tick <-chan time.Time
}

func (p *paced) Receive(c *kith.Context, payload []byte) error {
	if p.tick != nil {
		<-p.tick
	}
	p.l.got(c.ID, payload, p.at())
	return nil
}

func (*paced) Stop(*kith.Context) {}

// A node whose handlers are far slower than what is sent to it drains while the others go on sending: what it has
// accepted goes with its shards, in order, before what waited for the move, and nothing is lost (SHD-7, SHD-9).
func TestDrainOfAnOverloadedNode(t *testing.T) {
	t.Parallel()
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker} {
		t.Run(mode.String(), func(t *testing.T) { drainOverloaded(t, mode) })
	}
}

// The same for Inline entities, where a marker waits for up to a window of each connection: docs/handoff.md.
func TestLongDrainOfAnOverloadedInlineNode(t *testing.T) {
	long.Test(t)
	drainOverloaded(t, kith.Inline)
}

func drainOverloaded(t *testing.T, mode kith.Mode) {
	l := newLedger()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var r *kith.Region
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
		cfg.Window, cfg.LinkBuffer, cfg.Workers = 64<<10, 64<<10, 1
		cfg.Sharding.RebalanceInterval, cfg.Sharding.MarkTime = 50*time.Millisecond, time.Second
		cfg.Sharding.DrainTime = 100 * time.Millisecond
	}, func(i int, n *kith.Node) {
		slow := tick.C
		if i == 0 {
			slow = nil
		}
		region, err := n.Register(kith.EntityType{Name: "x", Mode: mode, Shards: 8, MailboxBytes: 16 << 10,
			New: func(string, kith.Fence) kith.Handler { return &paced{l, n.ID, slow} }})
		require.NoError(t, err)
		if i == 0 {
			r = region
		}
	})
	for e := range 64 {
		require.NoError(t, r.Tell(fmt.Sprint("e", e), numbered(0, 0)))
	}
	l.await(t, 64)
	l.forget()
	eventually(t, func() bool { return hosted(nodes[1]) > 0 }, "its share")
	ctx, end := context.WithCancel(within(t))
	defer end()
	var senders sync.WaitGroup
	sent := make([]int, 4)
	for i := range sent {
		senders.Go(func() {
			for seq := uint64(0); ; seq++ {
				for e := range 64 {
					if r.TellWait(ctx, fmt.Sprint("e", e), numbered(i, seq)) != nil {
						return
					}
					sent[i]++
				}
			}
		})
	}
	eventually(t, func() bool { return nodes[0].Stats().Types[0].Pressure.Waiting > 0 }, "a full link")
	require.NoError(t, nodes[1].Drain(within(t)))
	require.Zero(t, hosted(nodes[1]))
	end()
	senders.Wait()
	total := 0
	for _, n := range sent {
		total += n
	}
	l.await(t, total)
}
