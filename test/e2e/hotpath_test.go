// The promise of the hot path: no allocation for a message once its home is known, at the sender and, up to the
// handler, at the receiver.

package e2e_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// counter is an entity that counts tells and answers asks with a constant.
type counter struct{ n *atomic.Int64 }

var fixed = []byte("reply")

func (c *counter) Receive(x *kith.Context, _ []byte) error {
	if x.Asked() {
		return x.Reply(fixed)
	}
	c.n.Add(1)
	return nil
}

func (c *counter) Stop(*kith.Context) {}

// counterPair is a cluster of two in which the second node alone hosts counters of a mode; it returns both nodes'
// regions.
func counterPair(t testing.TB, mode kith.Mode, change ...func(*kith.Config)) (remote, local *kith.Region,
	n *atomic.Int64) {
	n = &atomic.Int64{}
	nodes := make([]*kith.Node, 2)
	regions := make([]*kith.Region, 2)
	for i := range nodes {
		// Nobody is lost here: a machine that stands still for a while suspends nobody.
		cfg := kith.Config{Name: "test", Membership: quick(), MailboxBudget: 4 << 30,
			Sharding: kith.Sharding{TakeoverTime: 20 * time.Minute}}
		if i == 1 {
			cfg.Roles, cfg.Seeds = []string{"host"}, []string{nodes[0].Addr().String()}
		}
		for _, f := range change {
			f(&cfg)
		}
		node, err := kith.Start(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Close() })
		nodes[i] = node
		regions[i], err = node.Register(kith.EntityType{Name: "counter", Shards: 8, Role: "host", Mode: mode,
			MailboxBytes: 1 << 30,
			New:          func(string, kith.Fence) kith.Handler { return &counter{n} }})
		require.NoError(t, err)
	}
	for _, node := range nodes {
		require.NoError(t, node.Ready(t.Context()))
	}
	for _, r := range regions {
		_, err := r.Ask(t.Context(), "a", nil)
		require.NoError(t, err)
	}
	return regions[0], regions[1], n
}

// mallocs counts what the whole process allocates during f: both nodes, all goroutines.
func mallocs(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// quietest is the least of n counts: what nodes do beside is counted too, and more of it the longer f takes.
func quietest(n int, f func()) uint64 {
	least := mallocs(f)
	for range n - 1 {
		least = min(least, mallocs(f))
	}
	return least
}

func tellAll(t testing.TB, r *kith.Region, n int, payload []byte) {
	for range n {
		for {
			err := r.Tell("a", payload)
			if err == nil {
				break
			}
			if !errors.Is(err, kith.ErrLinkFull) && !errors.Is(err, kith.ErrMailboxFull) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
}

func tellWaitAll(t testing.TB, r *kith.Region, n int, payload []byte) {
	for range n {
		if err := r.TellWait(context.Background(), "a", payload); err != nil {
			t.Fatal(err)
		}
	}
}

// Both nodes together, heartbeats and gossip included, allocate next to nothing while 100,000 messages pass.
// Pins CARD-3 (SHD-5).
func TestTellAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	payload := make([]byte, 64)
	const messages = 100_000
	for _, mode := range []kith.Mode{kith.Worker, kith.Inline, kith.Blocking} {
		for _, where := range []string{"remote", "local", "waiting"} {
			t.Run(mode.String()+"/"+where, func(t *testing.T) {
				remote, local, n := counterPair(t, mode)
				r := remote
				if where == "local" {
					r = local
				}
				send := tellAll
				if where == "waiting" {
					send = tellWaitAll
				}
				run := func() {
					from := n.Load()
					for sent := int64(0); sent < messages; sent += 1000 {
						send(t, r, 1000, payload)
						spin(t, func() bool { return n.Load()-from >= sent })
					}
					spin(t, func() bool { return n.Load()-from == messages })
				}
				run()
				require.Less(t, float64(quietest(3, run))/messages, 0.02, "allocations per message")
			})
		}
	}
}

// spin spins politely: a ticker would allocate. What it waits for is much work, hence its patience.
func spin(t testing.TB, ok func() bool) {
	for until := time.Now().Add(4 * patience); !ok(); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("never")
		}
	}
}

func TestAskWithinAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	payload := make([]byte, 64)
	const asks, askers = 16_000, 16 // many at once: on a busy machine one alone mostly waits for its turn
	for _, mode := range []kith.Mode{kith.Worker, kith.Inline, kith.Blocking} {
		t.Run(mode.String(), func(t *testing.T) {
			r, _, _ := counterPair(t, mode)
			run := func() {
				var group sync.WaitGroup
				for range askers {
					group.Go(func() {
						into := make([]byte, 0, 64)
						for range asks / askers {
							if _, err := r.AskWithin(patience, "a", payload, into); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
			}
			run()
			require.Less(t, float64(quietest(5, run))/asks, 0.05, "allocations per ask, both nodes together")
		})
	}
}

func BenchmarkTell(b *testing.B) {
	for _, mode := range []kith.Mode{kith.Inline, kith.Worker, kith.Blocking} {
		b.Run(mode.String(), func(b *testing.B) {
			r, _, n := counterPair(b, mode)
			payload := make([]byte, 64)
			b.ReportAllocs()
			b.SetBytes(80)
			b.ResetTimer()
			from := n.Load()
			for range b.N {
				if err := r.TellWait(context.Background(), "a", payload); err != nil {
					b.Fatal(err)
				}
			}
			spin(b, func() bool { return n.Load()-from >= int64(b.N) })
		})
	}
}

func BenchmarkAskWithin(b *testing.B) {
	for _, mode := range []kith.Mode{kith.Inline, kith.Worker, kith.Blocking} {
		b.Run(mode.String(), func(b *testing.B) {
			r, _, _ := counterPair(b, mode)
			payload, into := make([]byte, 64), make([]byte, 0, 64)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := r.AskWithin(patience, "a", payload, into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
