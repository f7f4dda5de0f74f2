// Tests of the account of messages over real sockets: what is accepted is handled or reported, to the last message.

package e2e_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// toldReports adds up what Config.Undelivered gets.
type toldReports struct {
	mu sync.Mutex
	by map[kith.Reason]uint64
	un uint64 // of them, those without a named shard
}

func (r *toldReports) take(u kith.Undelivered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[kith.Reason]uint64{}
	}
	r.by[u.Reason] += u.Count
	if u.Shard == kith.NoShard {
		r.un += u.Count
	}
}

func (r *toldReports) total() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, count := range r.by {
		n += count
	}
	return n
}

func (r *toldReports) unnamed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.un
}

// Every message that fails is reported, however many shards fail at once: beyond the bound of what is kept apart its
// shard is not named, and its count is not lost (SHD-4).
func TestManyShardsFailAtOnce(t *testing.T) {
	t.Parallel()
	told := &toldReports{}
	n := start(t, logger(t), kith.Config{Sharding: kith.Sharding{ParkTime: time.Second}, Undelivered: told.take})
	r, err := n.Register(kith.EntityType{Name: "nobody", Role: "absent", Shards: 100_000,
		New: func(string, kith.Fence) kith.Handler { return nil }})
	require.NoError(t, err)
	accepted := uint64(0)
	for i := range 20_000 {
		if r.Tell(fmt.Sprint("id", i), []byte("x")) == nil {
			accepted++
		}
	}
	require.Positive(t, accepted)
	eventually(t, func() bool { return told.total() >= accepted }, "%d of %d are told", told.total(), accepted)
	require.Equal(t, accepted, told.total())
}

// held is an entity that answers asks and holds tells until it is let go.
type held struct {
	hold    chan struct{}
	handled *atomic.Uint64
}

func (h *held) Receive(c *kith.Context, _ []byte) error {
	if c.Asked() {
		return c.Reply(nil)
	}
	<-h.hold
	h.handled.Add(1)
	return nil
}

func (h *held) Stop(*kith.Context) {}

// Every refusal reaches its sender, however many shards refuse at once: more than one telling keeps apart (SHD-4).
func TestManyShardsRefuseAtOnce(t *testing.T) {
	t.Parallel()
	const ids = 2600
	told, handled, hold := &toldReports{}, &atomic.Uint64{}, make(chan struct{})
	var far *kith.Region
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		if cfg.Undelivered, cfg.Sharding.TakeoverTime = told.take, time.Hour; i == 1 {
			cfg.Roles, cfg.MailboxBudget = []string{"host"}, 1_200_000
		}
	}, func(i int, n *kith.Node) {
		r, err := n.Register(kith.EntityType{Name: "x", Role: "host", Shards: 2600,
			New: func(string, kith.Fence) kith.Handler { return &held{hold, handled} }})
		require.NoError(t, err)
		if i == 0 {
			far = r
		}
	})
	for i := range ids {
		_, err := far.Ask(within(t), fmt.Sprint("id", i), nil)
		require.NoError(t, err)
	}
	refused := func() (n uint64) {
		for _, count := range nodes[1].Stats().Types[0].Refused {
			n += count
		}
		return n
	}
	accepted := uint64(0)
	once := func() {
		for i := range ids {
			tell := func() bool { return far.Tell(fmt.Sprint("id", i), make([]byte, 400)) == nil }
			eventually(t, tell, "the link has room")
			accepted++
		}
	}
	for range 3 {
		once()
	}
	eventually(t, func() bool { return refused() > 3000 }, "more is refused than there are entries")
	for ctx := within(t); told.unnamed() == 0; once() { // a slow machine tells before there are too many
		require.NoError(t, ctx.Err(), "never more at once than are kept apart")
	}
	close(hold)
	eventually(t, func() bool { return handled.Load()+told.total() >= accepted }, "all are handled or told")
	require.Equal(t, accepted, handled.Load()+told.total())
	require.Equal(t, refused(), told.total())
	require.Zero(t, nodes[1].Stats().UnreportedRefusals)
}
