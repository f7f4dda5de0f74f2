// Tests of the lease of a singleton over real sockets.

package e2e_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sbr/leasetest"
)

// moody is a lease in memory that can be made to hang, err or panic.
type moody struct {
	leasetest.Memory
	mood atomic.Int32
	mu   sync.Mutex
	hung chan struct{} // closed when those that hang are to go on
}

const (
	fine   = 0
	hangs  = 1 // whatever its context says
	errs   = 2
	panics = 3
)

var errAway = errors.New("the store is away")

func (m *moody) be(t *testing.T, mood int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hung != nil {
		close(m.hung)
		m.hung = nil
	}
	if mood == hangs {
		m.hung = make(chan struct{})
		t.Cleanup(func() { m.be(t, fine) })
	}
	m.mood.Store(mood)
}

func (m *moody) call() error {
	switch m.mood.Load() {
	case hangs:
		m.mu.Lock()
		hung := m.hung
		m.mu.Unlock()
		if hung != nil {
			<-hung
		}
	case errs:
		return errAway
	case panics:
		panic("as the store fell")
	}
	return nil
}

func (m *moody) Acquire(ctx context.Context, name, owner string) (bool, error) {
	if err := m.call(); err != nil {
		return false, err
	}
	return m.Memory.Acquire(ctx, name, owner)
}

func (m *moody) Release(ctx context.Context, name, owner string) error {
	if err := m.call(); err != nil {
		return err
	}
	return m.Memory.Release(ctx, name, owner)
}

// TestMoodyIsALease: what these tests ask is a lease.
func TestMoodyIsALease(t *testing.T) {
	m := &moody{}
	leasetest.Run(t, func(*testing.T) leasetest.Lease { return m })
}

const leaseName = "test-singleton-lone"

func leased(s kith.Singleton, m *moody) kith.Singleton {
	s.MinBackoff = 20 * time.Millisecond
	s.Lease = kith.SingletonLease{Service: m, Timeout: 50 * time.Millisecond, Renew: 50 * time.Millisecond,
		Hold: 500 * time.Millisecond}
	return s
}

// shut breaks what goes through a door, for good.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		_ = c.Close()
	}
	d.open = nil
}

// TestSingletonLeaseInASplit: a cluster falls apart, has no resolver, and an operator on either side downs the other
// one. Each side goes on with a singleton of its own, but for the lease: one lives, the other one waits and says so,
// until the first is gone (SHD-12).
func TestSingletonLeaseInASplit(t *testing.T) {
	t.Parallel()
	m, s := &moody{}, &lonely{l: newLedger()}
	var doors []*door
	refs := make([]*kith.SingletonRef, 2)
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		doors = append(doors, newDoor(t, uint64(i)))
		cfg.Listen, cfg.Advertise = doors[i].to, doors[i].ln.Addr().String()
		cfg.Sharding.TakeoverTime = takeover
	}, func(i int, n *kith.Node) {
		var err error
		one := leased(s.on(func() *kith.Node { return n }), m)
		one.Lease.Timeout, one.Lease.Hold = 10*time.Second, time.Minute // nobody loses it because the machine is busy
		refs[i], err = n.Singleton(one)
		require.NoError(t, err)
	})
	eventually(t, func() bool { return s.alive.Load() == 1 }, "it begins")
	held := 0
	if m.Owner(leaseName) != "" && stat(nodes[1]).Held {
		held = 1
	}
	for _, d := range doors {
		d.shut()
	}
	for i, n := range nodes {
		require.NoError(t, n.Down(within(t), nodes[1-i].Addr().String()))
	}
	other := 1 - held
	eventually(t, func() bool {
		at, known := refs[other].Home()
		return known && at == nodes[other].ID() && stat(nodes[other]).Refused > 2
	}, "it lives on both sides, as far as these know")
	require.Equal(t, int32(1), s.alive.Load())
	waits := nodes[other].Health().Leases
	require.Len(t, waits, 1)
	require.Equal(t, "lone", waits[0].Type)
	require.Equal(t, "another has it", waits[0].Why)
	require.NoError(t, refs[other].Tell(numbered(0, 0)), "it waits for the lease too")
	rep, err := refs[other].Region().Report(within(t))
	require.NoError(t, err)
	require.Equal(t, waits, rep.Nodes[0].Leases)
	require.Equal(t, int32(1), s.most.Load())

	require.NoError(t, nodes[held].Leave(within(t)))
	s.l.await(t, 1)
	require.Contains(t, m.Owner(leaseName), nodes[other].ID().String())
	require.Equal(t, int32(1), s.alive.Load())
	require.Equal(t, int32(1), s.most.Load())
}

// stat is what a node counts of the singleton's lease.
func stat(n *kith.Node) kith.LeaseStats {
	for _, t := range n.Stats().Types {
		if t.Name == "lone" {
			return t.Lease
		}
	}
	return kith.LeaseStats{}
}

// TestSingletonLeaseIsHandedOver: a leave gives the lease back before the next oldest asks for it: nothing is lost, and
// nothing waits for a rest (SHD-2, SHD-12).
func TestSingletonLeaseIsHandedOver(t *testing.T) {
	t.Parallel()
	m, s := &moody{}, &lonely{l: newLedger()}
	refs := make([]*kith.SingletonRef, 2)
	nodes := cluster(t, 2, nil, func(i int, n *kith.Node) {
		one := leased(s.on(func() *kith.Node { return n }), m)
		one.Lease.Renew, one.Lease.Hold, one.MinBackoff = time.Hour/4, time.Hour, time.Minute
		var err error
		refs[i], err = n.Singleton(one)
		require.NoError(t, err)
	})
	eventually(t, func() bool { return s.alive.Load() == 1 }, "it begins")
	held := 0
	if stat(nodes[1]).Held {
		held = 1
	}
	for seq := range uint64(10) {
		require.NoError(t, refs[1-held].Tell(numbered(0, seq)))
	}
	require.NoError(t, nodes[held].Leave(within(t)))
	for seq := range uint64(10) {
		require.NoError(t, refs[1-held].Tell(numbered(0, 10+seq)))
	}
	s.l.await(t, 20)
	require.Zero(t, stat(nodes[1-held]).Refused, "it was free when it was asked for")
	require.Equal(t, int32(1), s.most.Load())
}

// TestSingletonLeaseService: a service that hangs, errs or panics has the singleton wait, and stopped after Hold, with
// a reason; the node goes on. When the service is well again the singleton lives, and what was sent to it is handled.
func TestSingletonLeaseService(t *testing.T) {
	t.Parallel()
	for mood, why := range map[int32]string{hangs: "has not returned", errs: errAway.Error(),
		panics: "as the store fell"} {
		m, l := &moody{}, newLedger()
		n := start(t, logger(t), kith.Config{})
		var ended atomic.Int32
		m.be(t, mood)
		ref, err := n.Singleton(leased(kith.Singleton{Name: "lone", New: func(kith.Fence) kith.Handler {
			return &actor{receive: func(c *kith.Context, b []byte) error {
				if len(b) == 0 {
					<-c.Context().Done() // it goes on for as long as it may
					ended.Add(1)
					return context.Cause(c.Context())
				}
				l.got("lone", b, n.ID())
				return nil
			}}
		}}, m))
		require.NoError(t, err)
		require.NoError(t, n.Ready(within(t)), "nothing else is disturbed")
		waits := func() bool { list := n.Health().Leases; return len(list) == 1 && strings.Contains(list[0].Why, why) }
		eventually(t, waits, "it waits: %q", why)
		require.NoError(t, ref.Tell(numbered(0, 0)))
		m.be(t, fine)
		l.await(t, 1)
		require.Empty(t, n.Health().Leases)
		require.NoError(t, ref.Tell(nil))
		m.be(t, mood)
		eventually(t, func() bool { return stat(n).Lost == 1 && ended.Load() == 1 }, "it is stopped: %+v", stat(n))
		require.NoError(t, ref.Tell(numbered(0, 1)))
		eventually(t, waits, "it waits again: %q", why)
		m.be(t, fine)
		l.await(t, 2)
		require.Equal(t, uint64(2), stat(n).Acquired)
		require.NoError(t, n.Close())
		require.Empty(t, m.Owner(leaseName), "a node that ends gives it back")
	}
}

// TestSingletonLeaseIsTakenAway: an answer that another has the lease stops the singleton at once, without Stop.
func TestSingletonLeaseIsTakenAway(t *testing.T) {
	t.Parallel()
	m, s := &moody{}, &lonely{l: newLedger()}
	n := start(t, logger(t), kith.Config{})
	one := leased(s.on(func() *kith.Node { return n }), m)
	one.Lease.Name, one.Lease.Hold, one.MinBackoff = "mine", time.Hour, 10*time.Millisecond
	_, err := n.Singleton(one)
	require.NoError(t, err)
	eventually(t, func() bool { return stat(n).Held && s.alive.Load() == 1 }, "it begins")
	require.NoError(t, m.Memory.Release(within(t), "mine", m.Owner("mine")))
	ok, err := m.Memory.Acquire(within(t), "mine", "an operator")
	require.NoError(t, err)
	require.True(t, ok)
	eventually(t, func() bool { return stat(n).Lost == 1 }, "it notices")
	require.NoError(t, m.Memory.Release(within(t), "mine", "an operator"))
	eventually(t, func() bool { return stat(n).Held && s.alive.Load() == 2 }, "it is made anew, and no Stop was called")
}

func TestSingletonLeaseBadInput(t *testing.T) {
	n := start(t, logger(t), kith.Config{})
	for fault, l := range map[string]kith.SingletonLease{
		"Service is nil": {Name: "a"}, "Timeout is": {Service: &moody{}, Timeout: -1},
		"Renew 1m": {Service: &moody{}, Renew: time.Minute}, "Hold 2h": {Service: &moody{}, Hold: 2 * time.Hour},
		"Lease.Name has": {Service: &moody{}, Name: string(make([]byte, 1025))},
	} {
		_, err := n.Singleton(kith.Singleton{Name: "a", New: func(kith.Fence) kith.Handler { return &actor{} }, Lease: l})
		require.ErrorIs(t, err, kith.ErrBadConfig)
		require.ErrorContains(t, err, fault)
	}
}
