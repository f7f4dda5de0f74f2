// Tests of leases that end though nothing that knows of them runs: the control goroutine is stuck, or the machine
// slept.

package driver

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/route"
)

// granted is a lease that every caller gets.
type granted struct{}

func (granted) Acquire(context.Context, string, string) (bool, error) { return true, nil }
func (granted) Release(context.Context, string, string) error         { return nil }

// lone is a singleton that needs a lease, on a node of its own.
type lone struct {
	d    *Driver
	r    *Region
	made atomic.Int32 // instances
	over chan struct{}
	c    shifted
}

// untilOver answers asks, and waits in tells for the end of its context.
type untilOver struct{ l *lone }

func (u untilOver) Receive(c *entity.Context, payload []byte) error {
	if c.Asked() {
		return c.Reply(payload)
	}
	<-c.Context().Done()
	u.l.over <- struct{}{}
	return nil
}

func (untilOver) Stop(*entity.Context) {}

func newLone(t *testing.T, m entity.Mode, hold time.Duration) *lone {
	l := &lone{over: make(chan struct{}, 1)}
	cfg := Config{clocks: clocks{l.c.bootTime, l.c.wallTime}}
	cfg.Sharding.TakeoverTime, cfg.Resolver.Strategy = 4*patience, node.ResolverOff
	var err error
	l.d, err = Start(t.Context(), cfg.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { closes(t, l.d) })
	require.NoError(t, l.d.Ready(t.Context()))
	typ := entity.Type{Name: "lone", Shards: 1, Mode: m, Restart: entity.RestartFresh, RestartBackoff: time.Millisecond,
		New: func(string, route.Fence) entity.Handler {
			l.made.Add(1)
			return untilOver{l}
		}}
	l.r, err = RegisterKept(l.d, typ, &Keep{Keep: entity.Keep{ID: func(route.ShardID) string { return "one" }},
		Lease: granted{}, Name: "lone", Use: leases.Config{Timeout: hold / 8, Renew: hold / 4, Hold: hold,
			Backoff: hold / 8}})
	require.NoError(t, err)
	eventually(t, func() bool { return l.ask(patience) == nil })
	return l
}

// ask asks the singleton, and waits for limit.
func (l *lone) ask(limit time.Duration) error {
	_, err := l.r.AskWithin(limit, "one", nil, nil)
	return err
}

var modes = []entity.Mode{entity.Blocking, entity.Worker, entity.Inline}

// TestLeaseEndsThoughControlIsStuck: a lease ends Hold after the last call that confirmed it, though the goroutine that
// steps its holder is stuck, and its entity is called no more; it lives again when that goes on (SHD-12).
func TestLeaseEndsThoughControlIsStuck(t *testing.T) {
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			l := newLone(t, m, 400*time.Millisecond)
			release := stall(t, l.d)
			made := l.made.Load()
			eventually(t, func() bool { // an ask alone may fail because the machine is busy
				return l.ask(20*time.Millisecond) != nil && l.r.lease.watch.until.Load() == 0
			})
			for range 20 {
				require.Error(t, l.ask(5*time.Millisecond))
			}
			require.Equal(t, made, l.made.Load(), "nobody has confirmed it")
			release()
			eventually(t, func() bool { return l.ask(patience) == nil })
			require.Greater(t, l.made.Load(), made, "what lives now is another instance")
			require.Positive(t, l.r.leaseStats().Lost)
		})
	}
}

// TestLeaseEndsWhileTheMachineSleeps: whichever clock shows that the machine slept past the end of a lease, the next
// call is not made, though nobody has noticed the sleep, and it is too short for the gate (SHD-12, MEM-10).
func TestLeaseEndsWhileTheMachineSleeps(t *testing.T) {
	const hold = patience
	for name, sleep := range map[string]func(c *shifted){
		"of the machine": func(c *shifted) {
			c.boot.Add(int64(hold + time.Second))
			c.wall.Add(int64(hold + time.Second))
		},
		"of a virtual machine": func(c *shifted) { c.wall.Add(int64(hold + time.Second)) },
	} {
		for _, m := range modes {
			t.Run(m.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				l := newLone(t, m, hold)
				release := stall(t, l.d)
				sleep(&l.c)
				require.Error(t, l.ask(20*time.Millisecond))
				require.False(t, l.d.exec.Gate.Closed())
				release()
				eventually(t, func() bool { return l.ask(patience) == nil })
			})
		}
	}
}

// TestContextEndsThoughControlIsStuck: the context of a handler that runs ends with the lease, too (SHD-12).
func TestContextEndsThoughControlIsStuck(t *testing.T) {
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			l := newLone(t, m, 400*time.Millisecond)
			release := stall(t, l.d)
			sent := make(chan error, 1)
			go func() { sent <- l.r.Tell("one", nil) }() // Inline calls the handler here
			eventually(t, func() bool { return len(l.over) > 0 })
			release()
			require.NoError(t, <-sent)
		})
	}
}

// TestLeaseOfARefusedTypeIsForgotten: a singleton that the cluster refuses, declared again and again, leaves nothing
// behind (SHD-12).
func TestLeaseOfARefusedTypeIsForgotten(t *testing.T) {
	l := newLone(t, entity.Blocking, time.Hour)
	typ := entity.Type{Name: "other", Shards: 1, Restart: entity.RestartFresh, RestartBackoff: time.Millisecond,
		New: func(string, route.Fence) entity.Handler { return untilOver{l} }}
	_, err := l.d.Register(typ)
	require.NoError(t, err)
	k := &Keep{Lease: granted{}, Name: "other", Use: leases.Config{Timeout: 1, Renew: 1, Hold: 3, Backoff: 1}}
	for range 3 {
		_, err = RegisterKept(l.d, typ, k)
		require.ErrorIs(t, err, ErrTypeExists)
	}
	typ.Name, typ.Role = "", "" // no name: the node refuses it
	bad := newRegion(l.d, typ.WithDefaults())
	bad.keep = k
	bad.lease = leaseFor(l.d, bad)
	held := make(chan int)
	require.True(t, l.d.inbox.post(func() {
		require.Error(t, l.d.register(bad))
		held <- len(l.d.control.leases.list)
	}))
	require.Equal(t, 1, <-held)
}
