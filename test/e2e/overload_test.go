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
	"github.com/kith-io/kith/stats"
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

// A node with handlers far slower than what is sent to it drains while the others go on sending: what it has accepted
// goes with its shards, in order, before what waited for the move, and nothing is lost (SHD-7, SHD-9).
func TestDrainOfAnOverloadedNode(t *testing.T) {
	t.Parallel()
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker, kith.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			drainOverloaded(t, mode, func(cfg *kith.Config) {
				cfg.Window, cfg.LinkBuffer, cfg.Workers = 64<<10, 64<<10, 1
				cfg.Sharding.MarkTime = time.Second
			})
		})
	}
}

// So does one that has a whole window before the markers, of many small messages: it is relieved long before its
// handlers could have had them (SHD-9).
func TestDrainBehindAWholeWindow(t *testing.T) {
	t.Parallel()
	for _, mode := range []kith.Mode{kith.Worker, kith.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			handled := drainOverloaded(t, mode, func(cfg *kith.Config) {
				cfg.LinkBuffer, cfg.Sharding.MarkTime = 64<<10, 30*time.Second
			})
			require.Less(t, handled, uint64(4096), "a window has 1 MiB, of messages of some 80 bytes")
		})
	}
}

// inFlight returns how many bytes are on the way over the link of which most are.
func inFlight(st stats.Transport) (most int64) {
	for _, p := range st.Links {
		for _, l := range p.Data {
			most = max(most, l.InFlight)
		}
	}
	return most
}

// drainOverloaded drains a node with handlers that take 5 ms, and returns how many calls there were meanwhile.
func drainOverloaded(t *testing.T, mode kith.Mode, edit func(*kith.Config)) uint64 {
	l := newLedger()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var r *kith.Region
	window := 1 << 20
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
		cfg.Sharding.RebalanceInterval, cfg.Sharding.DrainTime = 50*time.Millisecond, 100*time.Millisecond
		edit(cfg)
		if cfg.Window > 0 {
			window = cfg.Window
		}
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
	eventually(t, func() bool {
		st := nodes[0].Stats()
		return st.Types[0].Pressure.Waiting > 0 && inFlight(st.Transport) > int64(window)/2
	}, "a full link, and most of a window before it")
	before := nodes[1].Stats().Types[0].Handled
	require.NoError(t, nodes[1].Drain(within(t)))
	require.Zero(t, hosted(nodes[1]))
	handled := nodes[1].Stats().Types[0].Handled - before
	end()
	senders.Wait()
	total := 0
	for _, n := range sent {
		total += n
	}
	l.await(t, total)
	return handled
}
