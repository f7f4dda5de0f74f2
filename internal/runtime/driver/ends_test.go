// Tests of a node's end: every message that it had accepted is handled or reported, and it ends within its bound
// whatever user code does.

package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shutdown"
	"github.com/kith-io/kith/wire"
)

var allModes = []entity.Mode{entity.Blocking, entity.Worker, entity.Inline}

// books counts what became of the messages of one node.
type books struct {
	accepted, handled, told atomic.Uint64
	asked, answered         atomic.Uint64

	mu      sync.Mutex
	reasons map[route.Reason]uint64
}

func (b *books) undelivered(u Undelivered) {
	b.told.Add(u.Count)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reasons == nil {
		b.reasons = map[route.Reason]uint64{}
	}
	b.reasons[u.Reason] += u.Count
}

// stubborn is an entity with calls that do what a test says.
type stubborn struct{ receive, stop func() }

func (s *stubborn) Receive(c *entity.Context, _ []byte) error {
	s.receive()
	if c.Asked() {
		return c.Reply(nil)
	}
	return nil
}

func (s *stubborn) Stop(*entity.Context) {
	if s.stop != nil {
		s.stop()
	}
}

// ending is one node with a type of stubborn entities.
type ending struct {
	*Driver
	books
	r *Region
}

func newEnding(t *testing.T, mode entity.Mode, receive, stop func(), edit ...func(*Config)) *ending {
	n := &ending{}
	cfg := Config{Undelivered: n.undelivered, LeaveTimeout: time.Millisecond, patience: time.Second, Workers: 1}
	for _, f := range edit {
		f(&cfg)
	}
	d, err := Start(t.Context(), cfg.WithDefaults())
	require.NoError(t, err)
	n.Driver = d
	t.Cleanup(func() { _ = d.Close() })
	n.r, err = d.Register(entity.Type{Name: "book", Shards: 4, Mode: mode,
		New: func(string, route.Fence) entity.Handler {
			return &stubborn{func() { n.handled.Add(1); receive() }, stop}
		}})
	require.NoError(t, err)
	require.NoError(t, d.Ready(t.Context()))
	return n
}

// tell sends so many messages to a few entities, and as many asks.
func (n *ending) send(t *testing.T, count int) {
	for i := range count {
		id := fmt.Sprint("e", i%5)
		if n.r.Tell(id, []byte("tell")) == nil {
			n.accepted.Add(1)
		}
		if n.r.AskFunc(time.Minute, id, []byte("ask"), func([]byte, error) { n.answered.Add(1) }) == nil {
			n.asked.Add(1)
		}
	}
	require.NotZero(t, n.accepted.Load())
}

// settled checks the law: accepted = handled + reported, and what the end returned is what was reported as abandoned.
// hung is how many handlers have not returned, each with one message.
func (n *ending) settled(t *testing.T, err error, hung int) {
	<-n.Done()
	eventually(t, func() bool { return n.answered.Load() == n.asked.Load() })
	st := n.Stats().Types[0]
	n.mu.Lock()
	defer n.mu.Unlock()
	all := &route.AbandonedError{}
	if n.reasons[route.Abandoned] > 0 || hung > 0 {
		require.ErrorAs(t, err, &all)
		require.ErrorIs(t, err, route.ErrAbandoned)
	} else if err != nil {
		require.ErrorAs(t, err, &all, "asks may have been all that waited")
	}
	require.Equal(t, hung, all.Handlers)
	require.Equal(t, st.Abandoned, all.Total())
	tells, asks := uint64(0), uint64(0)
	for _, typ := range all.Types {
		require.Equal(t, "book", typ.Type)
		tells, asks = tells+typ.Tells, asks+typ.Asks
	}
	require.Equal(t, map[bool]uint64{true: tells}, map[bool]uint64{true: n.told.Load()}, "%v", n.reasons)
	require.Equal(t, n.accepted.Load()+n.asked.Load(), n.handled.Load()+tells+asks,
		"accepted %d tells and %d asks, handled %d, abandoned %d and %d, %v", n.accepted.Load(), n.asked.Load(),
		n.handled.Load(), tells, asks, n.reasons)
}

// A node that ends while handlers are slow, by a leave past its limit or by Close, tells of every message that it had
// accepted and does not handle, and returns how many there were (SHD-4, MEM-8).
func TestEndAccountsForAll(t *testing.T) {
	for name, end := range map[string]func(*ending) error{
		"leave": func(n *ending) error { return n.Leave(context.Background()) },
		"close": func(n *ending) error { return n.Close() },
	} {
		for _, mode := range allModes {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				hang, running, free := hangsOnce()
				n := newEnding(t, mode, func() {
					hang()
					<-free
				}, nil)
				n.send(t, 1)
				<-running
				n.send(t, 100)
				go func() { // the handler returns when it is too late
					look := time.NewTicker(time.Millisecond)
					defer look.Stop()
					for n.Err() == nil {
						<-look.C
					}
					close(free)
				}()
				n.settled(t, end(n), 0)
			})
		}
	}
}

// hangsOnce returns a function: its first call closes running and returns when free is closed; others return at once.
func hangsOnce() (call func(), running, free chan struct{}) {
	var first atomic.Bool
	running, free = make(chan struct{}), make(chan struct{})
	return func() {
		if first.CompareAndSwap(false, true) {
			close(running)
			<-free
		}
	}, running, free
}

// A handler, or Stop, that never returns keeps a node from ending for no longer than its patience, and what stands
// behind it is reported (MEM-8).
func TestEndDoesNotWaitForEver(t *testing.T) {
	for name, end := range map[string]func(*ending) error{
		"leave": func(n *ending) error { return n.Leave(context.Background()) },
		"close": func(n *ending) error { return n.Close() },
	} {
		for _, mode := range allModes {
			t.Run("receive "+name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				hang, running, free := hangsOnce()
				n := newEnding(t, mode, hang, nil)
				defer func() {
					close(free)
					n.ended(t)
				}()
				n.send(t, 1)
				<-running
				n.send(t, 100)
				n.settled(t, end(n), 1)
			})
		}
	}
	for _, mode := range allModes {
		t.Run("stop "+mode.String(), func(t *testing.T) {
			t.Parallel()
			hang, stopping, free := hangsOnce()
			n := newEnding(t, mode, func() {}, hang, func(c *Config) { c.LeaveTimeout = time.Hour })
			defer func() {
				close(free)
				n.ended(t)
			}()
			n.send(t, 10)
			eventually(t, func() bool { return n.handled.Load() == 20 })
			left := make(chan error, 1)
			go func() { left <- n.Leave(context.Background()) }()
			<-stopping
			_ = n.Close()
			n.settled(t, <-left, 1)
		})
	}
}

// ended waits until nothing runs that was left behind.
func (n *ending) ended(t *testing.T) {
	eventually(t, func() bool { return n.exec.Busy() == 0 })
	for _, l := range n.wires.Loops() {
		eventually(t, func() bool { return !l.Running() })
	}
}

// Hooks and shutdown tasks that never return keep a node from ending no longer than their bound (MEM-8).
func TestEndDoesNotWaitForHooks(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	n := newEnding(t, entity.Blocking, func() { <-free }, nil, func(c *Config) {
		c.Undelivered = func(Undelivered) { <-free }
		c.Phases = []shutdown.Phase{{Name: shutdown.PhaseServiceStop, Timeout: time.Millisecond}}
		c.patience = 100 * time.Millisecond
	})
	hangs := func(context.Context) error { <-free; return nil }
	require.NoError(t, n.OnShutdown(shutdown.PhaseServiceStop, "hangs", hangs))
	n.send(t, 10)
	eventually(t, func() bool { return n.handled.Load() == 5 })
	all := &route.AbandonedError{}
	require.ErrorAs(t, n.Leave(context.Background()), &all)
	require.Equal(t, 5, all.Handlers)
	require.True(t, errors.Is(n.Close(), route.ErrAbandoned), "and so it says again")
}

// An owner that is closed under load leaves nobody in the dark: each message that its sender had accepted was handled,
// is reported by the owner as abandoned, is refused and reported to its sender, or was in flight and is reported as
// lost: each once, since the owner says how many it has taken, whatever its credit has said (SHD-4).
func TestClosedOwnerTellsItsSenders(t *testing.T) {
	for _, mode := range allModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, func(c *Config) { c.Window, c.Sharding.TakeoverTime = 64<<10, time.Hour })
			r := p.at[mode]
			const id, size = "e1", 100
			_, err := r.AskWithin(patience, id, []byte("up"), nil)
			require.NoError(t, err)
			e := opened(t, r, r.Shard(id))
			var accepted atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			var senders sync.WaitGroup
			for range 3 {
				senders.Go(func() {
					for ctx.Err() == nil {
						if r.TellWait(ctx, id, make([]byte, size)) == nil {
							accepted.Add(1)
						}
					}
				})
			}
			eventually(t, func() bool { return len(p.received()) > 5000 })
			_ = p.b.Close()
			cancel()
			senders.Wait()
			require.NoError(t, p.a.Down(t.Context(), p.b.self.Addr.String()))
			eventually(t, func() bool { return isForgotten(e.link.Err()) })
			done := func() int64 {
				_, told := p.account()
				sum := len(p.received())
				for _, n := range told {
					sum += int(n)
				}
				return int64(sum)
			}
			eventually(t, func() bool { return done() >= accepted.Load() })
			require.Equal(t, accepted.Load(), done())
		})
	}
}

// What waits for the home of a shard that no node hosts is reported when its time is over, each time anew: tells and
// large messages, and not before. An ask does not wait there (SHD-4).
func TestParkTimeHoldsForEachMessage(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	edit := func(c *Config) { c.Sharding.ParkTime, c.AskTimeout = limit, patience }
	n := newEnding(t, entity.Inline, func() {}, nil, edit)
	r, err := n.Register(entity.Type{Name: "nobody", Role: "absent",
		New: func(string, route.Fence) entity.Handler { return &stubborn{receive: func() {}} }})
	require.NoError(t, err)
	for round := range uint64(3) {
		begun := time.Now()
		require.NoError(t, r.Tell("a", []byte("tell")))
		eventually(t, func() bool { return n.told.Load() == 2*round+1 })
		require.GreaterOrEqual(t, time.Since(begun), limit)
		_, err := r.AskWithin(patience, "a", []byte("ask"), nil)
		require.ErrorIs(t, err, route.ErrNoHost)
		begun = time.Now()
		err = r.TellBulk(t.Context(), "a", make([]byte, 2<<20), nil)
		require.ErrorIs(t, err, route.ErrTimeout)
		require.GreaterOrEqual(t, time.Since(begun), limit)
		require.NoError(t, r.Tell("b", make([]byte, 2<<20)))
		eventually(t, func() bool { return n.told.Load() == 2*round+2 })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Equal(t, map[route.Reason]uint64{route.TimedOut: 6}, n.reasons)
}

// What waits before a worker of a node that ends is refused when its handler has returned at last, and its sender hears
// of each (SHD-4).
func TestLastRefusalsAreTold(t *testing.T) {
	p := newPair(t, func(c *Config) { c.Sharding.TakeoverTime, c.Workers = time.Hour, 1 })
	running, free := make(chan struct{}), make(chan struct{})
	typ := entity.Type{Name: "held", Role: "host", Shards: 1, Mode: entity.Worker,
		New: func(string, route.Fence) entity.Handler {
			return &plain{func(payload []byte) {
				p.note(payload)
				close(running)
				<-free
			}}
		}}
	_, err := p.b.Register(typ)
	require.NoError(t, err)
	r, err := p.a.Register(typ)
	require.NoError(t, err)
	_, err = r.AskWithin(patience, "a", nil, nil)
	require.NoError(t, err)
	require.NoError(t, r.Tell("a", []byte("runs")))
	<-running
	const count = 50
	received := func() (n uint64) {
		for _, from := range p.b.Stats().Transport.Links {
			for _, in := range from.In {
				n += in.Received
			}
		}
		return n
	}
	before := received()
	for range count {
		require.NoError(t, r.Tell("a", []byte("waits")))
	}
	eventually(t, func() bool { return received()-before >= count*uint64(wire.SizeEnvelope(1, 5)) })
	closed := make(chan error, 1)
	go func() { closed <- p.b.Close() }()
	<-p.b.tickerStop // the end has reported what was refused so far
	close(free)
	require.NoError(t, <-closed, "nothing of its own")
	eventually(t, func() bool {
		told, _ := p.undelivered("held", 0)
		return told[route.Abandoned] == count
	})
}

// What waits before a worker with a handler that does not return is left when the node ends, and its sender reports
// exactly that as lost, though what another worker has handled gave more credit than its bytes (SHD-4).
func TestLeftBehindOneWorkerIsReported(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(c *Config) {
		c.Sharding.TakeoverTime, c.Workers, c.patience = time.Hour, 2, 100*time.Millisecond
	})
	var hangs atomic.Bool
	running, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	typ := entity.Type{Name: "held", Role: "host", Shards: 8, Mode: entity.Worker,
		New: func(string, route.Fence) entity.Handler {
			return &stubborn{receive: func() {
				if hangs.CompareAndSwap(true, false) {
					close(running)
					<-free
				}
			}}
		}}
	_, err := p.b.Register(typ)
	require.NoError(t, err)
	r, err := p.a.Register(typ)
	require.NoError(t, err)
	const stuck = "a"
	other := ""
	for i := 0; other == ""; i++ {
		if id := fmt.Sprint(i); r.Shard(id)%2 != r.Shard(stuck)%2 {
			other = id
		}
	}
	for _, id := range []string{stuck, other} {
		_, err = r.AskWithin(patience, id, nil, nil)
		require.NoError(t, err)
	}
	hangs.Store(true)
	require.NoError(t, r.AskFunc(patience, stuck, nil, func([]byte, error) {}))
	<-running
	large := make([]byte, 20<<10) // so that the link counts the tells up to it
	require.NoError(t, r.Tell(stuck, large))
	_, err = r.AskWithin(patience, other, append(large, large...), nil)
	require.NoError(t, err)
	e := opened(t, r, r.Shard(stuck))
	require.Error(t, p.b.Close(), "a handler is left behind")
	require.NoError(t, p.a.Down(t.Context(), p.b.self.Addr.String()))
	eventually(t, func() bool { return isForgotten(e.link.Err()) })
	_, told := p.account()
	require.Equal(t, map[route.Reason]uint64{route.LostInFlight: 1}, told)
}
