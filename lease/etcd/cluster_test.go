//go:build linux

// Clusters that decide by a lease in a real etcd, which goes away under them (MEM-10, SHD-12).

package etcd

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// nodes starts so many nodes of one cluster, each with a client of its own, and waits until all are Up.
func nodes(t *testing.T, s *etcdserver.Server, n int, prefix string) (list []*kith.Node) {
	var seeds []string
	for range n {
		node, err := kith.Start(within2min(t), kith.Config{Seeds: seeds, Lease: open(t, s, prefix, 0),
			Logger: slog.New(slog.DiscardHandler), Resolver: kith.Resolver{Strategy: kith.LeaseMajority,
				StableAfter: 200 * time.Millisecond, LeaseHold: 100 * time.Millisecond}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Close() }) // it may have ended
		seeds = append(seeds, node.Addr().String())
		list = append(list, node)
	}
	for _, node := range list {
		await(t, func() bool {
			v := node.View()
			return len(v.Members) == n && v.Members[n-1].Status == kith.Up && node.Health().Ready()
		})
	}
	return list
}

// await waits for a condition.
func await(t testing.TB, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 2*time.Minute, 5*time.Millisecond)
}

// TestLeaseMajority: the side that acquires the lease lives, it is held, then given back.
func TestLeaseMajority(t *testing.T) {
	s, at := need(t), prefix()
	list := nodes(t, s, 3, at)
	require.NoError(t, list[2].Close())
	for _, node := range list[:2] {
		await(t, func() bool { return len(node.View().Members) == 2 && len(node.Decisions()) > 0 })
	}
	l := open(t, s, at, 0)
	await(t, func() bool {
		is, err := l.get(within2min(t), "kith-resolver")
		return err == nil && is.rev == 0
	})
}

// TestLeaseMajorityWithoutService: while the service is away no side lives that has lost a member, and a cluster that
// has lost none notices nothing.
func TestLeaseMajorityWithoutService(t *testing.T) {
	s := own(t)
	list := nodes(t, s, 3, "")
	goOn := pause(t, s)
	defer goOn()
	rest := time.After(away(t))
	for range 2 {
		for _, node := range list {
			require.NoError(t, node.Err())
			require.Len(t, node.View().Members, 3)
		}
		if rest != nil {
			<-rest
			rest = nil
		}
	}
	require.NoError(t, list[2].Close())
	refused := 0 // by the member that asks; it downs the other one
	for _, node := range list[:2] {
		select {
		case <-node.Done():
		case <-within2min(t).Done():
			require.FailNow(t, "it lives on")
		}
		for _, d := range node.Decisions() {
			if !d.Lives && d.Cause == kith.CauseLease {
				refused++
			}
		}
	}
	require.Positive(t, refused)
}

// away is how long the service is away: KITH_LEASE_AWAY, or as long as it takes to show.
func away(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("KITH_LEASE_AWAY"))
	if err != nil {
		d = 3 * time.Second
	}
	t.Logf("the service is away for %v", d)
	return d
}

// echo answers.
type echo struct{}

func (echo) Receive(m *kith.Context, _ []byte) error { return m.Reply(nil) }

func (echo) Stop(*kith.Context) {}

// TestSingletonWithoutService: a singleton stops when its lease was not confirmed for its Hold, begins again when the
// service is back, and nothing else of the cluster notices.
func TestSingletonWithoutService(t *testing.T) {
	s := own(t)
	list := nodes(t, s, 2, "")
	var regions []*kith.Region
	for _, node := range list {
		_, err := node.Singleton(kith.Singleton{Name: "one", MinBackoff: 50 * time.Millisecond,
			New: func(kith.Fence) kith.Handler { return echo{} }, Lease: kith.SingletonLease{Service: open(t, s, "", 0), Timeout: 500 * time.Millisecond,
				Renew: 500 * time.Millisecond, Hold: 2 * time.Second}})
		require.NoError(t, err)
		r, err := node.Register(kith.EntityType{Name: "other", New: func(string, kith.Fence) kith.Handler {
			return echo{}
		}})
		require.NoError(t, err)
		regions = append(regions, r)
	}
	held := func() (n int) {
		for _, node := range list {
			for _, typ := range node.Stats().Types {
				if typ.Lease.Held {
					n++
				}
			}
		}
		return n
	}
	await(t, func() bool { return held() == 1 })
	goOn := pause(t, s)
	await(t, func() bool { return held() == 0 && len(list[0].Health().Leases)+len(list[1].Health().Leases) == 1 })
	for end := time.Now().Add(away(t)); time.Now().Before(end); {
		_, err := regions[1].Ask(within2min(t), "x", nil)
		require.NoError(t, err)
		require.Zero(t, held())
		require.Len(t, list[0].View().Members, 2)
	}
	goOn()
	await(t, func() bool { return held() == 1 })
}
