// Tests of singletons over real sockets.

package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// lone is the singleton of a test on one node: it counts how many of it live, and writes to a ledger.
type lone struct {
	l     *ledger
	at    func() kith.ID
	alive *atomic.Int32
	most  *atomic.Int32
}

func (s *lone) Receive(c *kith.Context, payload []byte) error {
	if c.Asked() {
		return c.Reply([]byte(s.at().String()))
	}
	s.l.got("lone", payload, s.at())
	return nil
}

func (s *lone) Stop(*kith.Context) { s.alive.Add(-1) }

// lonely declares singletons of one ledger on many nodes.
type lonely struct {
	l           *ledger
	alive, most atomic.Int32
}

func (s *lonely) on(n func() *kith.Node) kith.Singleton {
	return kith.Singleton{Name: "lone", New: func(kith.Fence) kith.Handler {
		now := s.alive.Add(1)
		for was := s.most.Load(); now > was && !s.most.CompareAndSwap(was, now); was = s.most.Load() {
		}
		return &lone{s.l, func() kith.ID { return n().ID() }, &s.alive, &s.most}
	}}
}

// age is the up-number of a node.
func age(n *kith.Node) uint32 {
	m, _ := n.View().SelfMember()
	return m.UpNumber
}

// TestSingletonMovesWithTheOldest: it begins on the oldest member without a message. While messages come from all nodes
// the oldest leaves, twice, and it moves to the next oldest: nothing is lost, doubled or reordered, and never are there
// two of it (SHD-2, SHD-9).
func TestSingletonMovesWithTheOldest(t *testing.T) {
	t.Parallel()
	s := &lonely{l: newLedger()}
	refs := make([]*kith.SingletonRef, 4)
	nodes := cluster(t, len(refs), func(_ int, cfg *kith.Config) {
		cfg.Sharding.RebalanceInterval = 50 * time.Millisecond
	}, nil)
	slices.SortFunc(nodes, func(a, b *kith.Node) int { return cmp.Compare(age(a), age(b)) })
	for i, n := range slices.Backward(nodes) { // the youngest first: it moves to the oldest in the end
		ref, err := n.Singleton(s.on(func() *kith.Node { return n }))
		require.NoError(t, err)
		refs[i] = ref
	}
	home := func(i int) {
		t.Helper()
		for k := i; k < len(nodes); k++ {
			eventually(t, func() bool {
				at, known := refs[k].Home()
				return known && at == nodes[i].ID()
			}, "node %d knows that it lives on node %d", k, i)
		}
	}
	home(0)
	eventually(t, func() bool { return s.alive.Load() == 1 }, "it began, though nobody sent")

	stop := make(chan struct{})
	var sent atomic.Int64
	var senders sync.WaitGroup
	for i := 2; i < len(nodes); i++ {
		senders.Go(func() {
			for seq := uint64(0); ; seq++ {
				select {
				case <-stop:
					return
				default:
				}
				err := refs[i].TellWait(context.Background(), numbered(i, seq))
				for errors.Is(err, kith.ErrSuspended) { // the machine is busy, and the node has stood still
					runtime.Gosched()
					err = refs[i].TellWait(context.Background(), numbered(i, seq))
				}
				if err != nil {
					t.Errorf("node %d: message %d: %v", i, seq, err)
					return
				}
				sent.Add(1)
			}
		})
	}
	enough := func() {
		from := sent.Load()
		eventually(t, func() bool { return sent.Load() > from+2_000 }, "messages go on")
	}
	for i := range 2 {
		enough()
		require.NoError(t, nodes[i].Leave(within(t)))
		home(i + 1)
		enough()
	}
	close(stop)
	senders.Wait()
	s.l.await(t, int(sent.Load()))
	require.Equal(t, int32(1), s.most.Load(), "never two")
	eventually(t, func() bool {
		where, err := refs[3].Ask(within(t), nil)
		return err == nil && string(where) == nodes[2].ID().String()
	}, "it answers where it lives")
}

// TestSingletonOfARole: a node without the role sends to it, and does not host it, though it is the oldest; while no
// member has the role tells wait.
func TestSingletonOfARole(t *testing.T) {
	t.Parallel()
	s := &lonely{l: newLedger()}
	l := logger(t)
	declare := func(n *kith.Node) *kith.SingletonRef {
		one := s.on(func() *kith.Node { return n })
		one.Role = "host"
		ref, err := n.Singleton(one)
		require.NoError(t, err)
		return ref
	}
	proxy := start(t, l, kith.Config{})
	ref := declare(proxy)
	require.NoError(t, proxy.Ready(within(t)))
	for seq := range uint64(10) {
		require.NoError(t, ref.Tell(numbered(0, seq)))
	}
	_, err := ref.Ask(within(t), nil)
	require.ErrorIs(t, err, kith.ErrNoHost)
	host := start(t, l, kith.Config{Roles: []string{"host"}, Seeds: []string{proxy.Addr().String()}})
	declare(host)
	s.l.await(t, 10)
	at, known := ref.Home()
	require.True(t, known)
	require.Equal(t, host.ID(), at)
	require.Equal(t, int32(1), s.most.Load())
}

// TestSingletonThatNobodyHosts: on a node without its role what is sent waits within bounds: beyond ParkBytes it is
// refused at once, by a type that names the bound, and after ParkTime exactly what was accepted is reported and counted
// (SHD-4).
func TestSingletonThatNobodyHosts(t *testing.T) {
	t.Parallel()
	const bound = 20_000
	told := &reports{}
	proxy := start(t, logger(t), kith.Config{MaxPayload: 2000, Undelivered: told.take,
		Sharding: kith.Sharding{ParkBytes: bound, ParkTime: time.Second}})
	ref, err := proxy.Singleton(kith.Singleton{Name: "lone", Role: "host",
		New: func(kith.Fence) kith.Handler { return &actor{} }})
	require.NoError(t, err)
	require.NoError(t, proxy.Ready(within(t)))
	lost := func() uint64 { return proxy.Stats().Types[0].ParkedLost }
	for round := range 2 { // there is room again
		accepted, before := uint64(0), told.of(kith.ErrTimeout)
		for err = ref.Tell(make([]byte, 1000)); err == nil; err = ref.Tell(make([]byte, 1000)) {
			accepted++
		}
		var full *kith.ParkFullError
		require.ErrorAs(t, err, &full)
		require.ErrorIs(t, err, kith.ErrParkFull)
		require.Equal(t, bound, full.Limit)
		require.False(t, kith.MayHaveRun(err))
		require.Greater(t, accepted, uint64(10))
		_, known := ref.Home()
		require.False(t, known)
		eventually(t, func() bool { return told.of(kith.ErrTimeout)-before >= accepted }, "all are reported, round %d", round)
		require.Equal(t, accepted, told.of(kith.ErrTimeout)-before, "and no other")
		require.Equal(t, told.of(kith.ErrTimeout), lost())
		require.Zero(t, proxy.Stats().Types[0].ParkedBytes)
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	require.Len(t, told.count, 1, "for no other reason")
}

// TestSingletonBeginsAgain: after a panic, and a failure to be made, without a message.
func TestSingletonBeginsAgain(t *testing.T) {
	t.Parallel()
	n := start(t, logger(t), kith.Config{})
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker, kith.Inline} {
		var made atomic.Int32
		ref, err := n.Singleton(kith.Singleton{Name: mode.String(), Mode: mode, MinBackoff: time.Millisecond,
			MaxBackoff: 4 * time.Millisecond, Open: func(*kith.Context) (kith.Handler, error) {
				if made.Add(1) < 3 {
					return nil, errors.New("the store does not answer")
				}
				return &actor{receive: func(*kith.Context, []byte) error { panic("boom") }}, nil
			}})
		require.NoError(t, err)
		eventually(t, func() bool { return made.Load() == 3 }, "%v: it is tried again", mode)
		require.NoError(t, ref.Tell(nil))
		eventually(t, func() bool { return made.Load() == 4 }, "%v: it is made again", mode)
		_, err = ref.Region().Ask(within(t), "another", nil)
		require.ErrorIs(t, err, kith.ErrNewFailed, "its name is its only id")
	}
}

func TestSingletonBadInput(t *testing.T) {
	n := start(t, logger(t), kith.Config{})
	made := func(kith.Fence) kith.Handler { return &actor{} }
	open := func(*kith.Context) (kith.Handler, error) { return &actor{}, nil }
	for _, s := range []kith.Singleton{
		{New: made}, {Name: "a"}, {Name: "a", New: made, Open: open}, {Name: strings.Repeat("a", 256), New: made},
		{Name: "a", New: made, MinBackoff: -1}, {Name: "a", New: made, MinBackoff: 2, MaxBackoff: 1},
		{Name: "a", New: made, MaxBackoff: 25 * time.Hour}, {Name: "a", New: made, Mode: 9},
		{Name: "a", New: made, MailboxBytes: 1},
	} {
		_, err := n.Singleton(s)
		require.ErrorIs(t, err, kith.ErrBadConfig, "%+v", s)
	}
	_, err := n.Singleton(kith.Singleton{Mode: 9})
	require.ErrorContains(t, err, "New is nil")
	require.ErrorContains(t, err, "Mode is 9", "all faults at once")

	_, err = n.Register(kith.EntityType{Name: "a", New: func(string, kith.Fence) kith.Handler { return &actor{} }})
	require.NoError(t, err)
	_, err = n.Singleton(kith.Singleton{Name: "a", New: made})
	require.ErrorIs(t, err, kith.ErrTypeExists)
	_, err = n.Singleton(kith.Singleton{Name: "b", New: made})
	require.NoError(t, err)
	_, err = n.Singleton(kith.Singleton{Name: "b", New: made})
	require.ErrorIs(t, err, kith.ErrTypeExists)
}
