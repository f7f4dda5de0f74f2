// Tests of bounds: each is a typed error at the sender, a report of what was refused behind it, and room again later.

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
)

// gate is an entity that holds each message until it is opened, and then books it.
type gate struct {
	open chan struct{}
	l    *ledger
}

func (g *gate) Receive(c *kith.Context, payload []byte) error {
	if len(payload) == 0 { // somebody wants to know where the shard lives
		return c.Reply(nil)
	}
	<-g.open
	g.l.got(c.ID, payload[:16], kith.ID{})
	return nil
}

func (g *gate) Stop(*kith.Context) {}

// reports gathers Undelivered.
type reports struct {
	mu    sync.Mutex
	count map[kith.Reason]uint64
	ids   map[string]bool
	errs  map[string]error // by text
	host  kith.ID          // of gates
}

func (r *reports) take(u kith.Undelivered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs == nil {
		r.errs = map[string]error{}
	}
	r.errs[u.Err().Error()] = u.Err()
	if r.count == nil {
		r.count, r.ids = map[kith.Reason]uint64{}, map[string]bool{}
	}
	r.count[u.Reason] += u.Count
	for _, id := range u.Samples {
		r.ids[id] = true
	}
}

// of returns how many were reported with a reason that means err.
func (r *reports) of(err error) (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for reason, count := range r.count {
		if errors.Is(reason.Err(), err) {
			n += count
		}
	}
	return n
}

// gates is a cluster of two in which the second node alone hosts gates of one mode. The first one knows where all
// shards live.
func gates(t *testing.T, mode kith.Mode, prepare func(cfg *kith.Config)) (
	r *kith.Region, open chan struct{}, l *ledger, rep *reports) {
	l, open, rep = newLedger(), make(chan struct{}), &reports{}
	cluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.Roles = []string{"host"}
		} else {
			cfg.Undelivered = rep.take
		}
		prepare(cfg)
	}, func(i int, n *kith.Node) {
		region, err := n.Register(kith.EntityType{Name: "gate", Role: "host", Shards: 4, Mode: mode, MailboxBytes: 64 << 10,
			New: func(string, kith.Fence) kith.Handler { return &gate{open, l} }})
		require.NoError(t, err)
		if i == 0 {
			r = region
		} else {
			rep.host = n.ID()
		}
	})
	// Registered after the cluster's own clean-up, so before it: handlers return.
	t.Cleanup(func() {
		select {
		case <-open:
		default:
			close(open)
		}
	})
	for i := range 16 {
		_, err := r.Ask(within(t), fmt.Sprint("known", i), nil)
		require.NoError(t, err)
	}
	return r, open, l, rep
}

// tellOn is Tell that waits for room on the way, and not at the entity.
func tellOn(t *testing.T, r *kith.Region, id string, payload []byte) {
	eventually(t, func() bool {
		err := r.Tell(id, payload)
		if errors.Is(err, kith.ErrLinkFull) || errors.Is(err, kith.ErrParkFull) {
			return false
		}
		require.NoError(t, err)
		return true
	}, "room on the way")
}

func message(seq uint64, size int) []byte { return append(numbered(0, seq), make([]byte, size-16)...) }

// An entity on a worker that does not come back fills the credit window and then the link: Tell says so, TellWait
// waits, and all that was accepted arrives in order when there is room again.
func TestFullLink(t *testing.T) {
	t.Parallel()
	r, open, l, _ := gates(t, kith.Worker, func(cfg *kith.Config) {
		cfg.Window, cfg.MaxPayload, cfg.LinkBuffer = 64<<10, 10<<10, 64<<10
	})
	accepted := uint64(0)
	eventually(t, func() bool {
		err := r.Tell("a", message(accepted, 4000))
		if err == nil {
			accepted++
			return false
		}
		require.ErrorIs(t, err, kith.ErrLinkFull)
		return true
	}, "a full link")
	require.Less(t, accepted*4000, uint64(400<<10), "what is held is bounded")
	short, cancel := context.WithTimeout(within(t), 30*time.Millisecond)
	defer cancel()
	err := r.TellWait(short, "a", message(accepted, 4000))
	require.ErrorIs(t, err, kith.ErrLinkFull)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	waited := make(chan error, 1)
	ctx := within(t)
	go func() { waited <- r.TellWait(ctx, "a", message(accepted, 4000)) }()
	close(open)
	require.NoError(t, <-waited)
	l.await(t, int(accepted)+1)
}

// Three nodes: one sends, one takes nothing, one is well. Every form of sending to the slow one fails at once, or waits
// as its form says, with an error that names the peer and the bound; the sender's other peer does not feel it, the slow
// one's heartbeats go on, and nobody takes it for lost (SHD-5, FD-1).
func TestASlowPeerCostsItsOwnLinkOnly(t *testing.T) {
	t.Parallel()
	slowLedger, quickLedger, open := newLedger(), newLedger(), make(chan struct{})
	var slow, quick *kith.Region
	nodes := cluster(t, 3, func(i int, cfg *kith.Config) {
		cfg.Window, cfg.MaxPayload, cfg.LinkBuffer = 64<<10, 10<<10, 64<<10
		cfg.Roles = [][]string{nil, {"slow"}, {"quick"}}[i]
	}, func(i int, n *kith.Node) {
		s, err := n.Register(kith.EntityType{Name: "slow", Role: "slow", Shards: 4, Mode: kith.Worker,
			New: func(string, kith.Fence) kith.Handler { return &gate{open, slowLedger} }})
		require.NoError(t, err)
		echo := echoType("quick", kith.Worker, quickLedger, func() *kith.Node { return n })
		echo.Role = "quick"
		q, err := n.Register(echo)
		require.NoError(t, err)
		if i == 0 {
			slow, quick = s, q
		}
	})
	t.Cleanup(func() { close(open) })
	_, err := quick.Ask(within(t), "a", numbered(0, 0))
	require.NoError(t, err)
	var full *kith.LinkFullError
	isFull := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, kith.ErrLinkFull)
		require.ErrorAs(t, err, &full)
		require.Equal(t, nodes[1].ID(), full.Peer)
		require.Equal(t, 64<<10, full.Limit)
		require.ErrorContains(t, err, "65536 bytes wait for "+nodes[1].ID().String())
	}
	// Once the window is used up, what is full stays so.
	eventually(t, func() bool {
		err = slow.Tell("a", message(0, 4000))
		links := nodes[0].Stats().Transport.Links
		for i := range links {
			if links[i].Peer == nodes[1].ID() && len(links[i].Data) > 0 && links[i].Data[0].InFlight >= 64<<10 {
				return slow.Tell("a", message(0, 10<<10)) != nil && err != nil
			}
		}
		return false
	}, "a full link")
	before := nodes[0].Stats()
	isFull(slow.Tell("a", message(0, 10<<10)))
	_, err = slow.Ask(within(t), "a", message(0, 10<<10))
	isFull(err)
	_, err = slow.AskWithin(time.Hour, "a", message(0, 10<<10), nil)
	isFull(err)
	isFull(slow.AskFunc(time.Hour, "a", message(0, 10<<10), func([]byte, error) { t.Error("called beside the error") }))
	short, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
	defer cancel()
	err = slow.TellWait(short, "a", message(0, 10<<10))
	isFull(err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for i := range uint64(500) {
		_, err := quick.Ask(within(t), "a", numbered(0, 1+i))
		require.NoError(t, err)
	}
	beats := func() uint64 {
		for _, l := range nodes[0].Stats().Transport.Links {
			if l.Peer == nodes[1].ID() {
				return l.Control.RoundTrip.Count
			}
		}
		return 0
	}
	from := beats()
	eventually(t, func() bool { return beats() >= from+3 }, "heartbeats beside a full link")
	require.Equal(t, before.Transport.DroppedBytes, nodes[0].Stats().Transport.DroppedBytes)
	require.Empty(t, nodes[0].View().Unreachable)
}

// A slow Blocking entity fills its own mailbox only: what does not fit is refused there and reported here, others of
// the same node go on.
func TestFullMailbox(t *testing.T) {
	t.Parallel()
	r, open, l, rep := gates(t, kith.Blocking, func(*kith.Config) {})
	sent := uint64(0)
	eventually(t, func() bool {
		// The first ones may be parked, and what was parked is never refused.
		tellOn(t, r, "slow", message(sent, 4000))
		sent++
		return rep.of(kith.ErrMailboxFull) > 0
	}, "a report")
	_, err := r.Ask(within(t), "slow", message(0, 4000))
	require.ErrorIs(t, err, kith.ErrMailboxFull)
	require.True(t, rep.ids["slow"])
	close(open)
	eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return uint64(l.delivered)+rep.of(kith.ErrMailboxFull) == sent
	}, "every message is delivered or reported")
	require.Zero(t, l.reordered)
}

// What another node refuses because a bound of it is reached comes back as an error that names that node and its bound,
// to an ask as its answer, to a tell as a report; the entity's mailbox and the node's budget have errors of their own
// (SHD-5).
func TestRefusalsNameTheirBound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entities uint64
		want     kith.RefusedError
		also     error
	}{
		"mailbox": {1, kith.RefusedError{Reason: route.MailboxFull, Limit: 64 << 10}, kith.ErrMailboxFull},
		"budget":  {80, kith.RefusedError{Reason: route.BudgetFull, Limit: 1100 << 10}, kith.ErrBudgetFull},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _, rep := gates(t, kith.Blocking, func(cfg *kith.Config) { cfg.MailboxBudget = 1100 << 10 })
			want := c.want
			want.Peer, want.Type = rep.host, "gate"
			seq := uint64(0)
			eventually(t, func() bool {
				tellOn(t, r, fmt.Sprint("slow", seq%c.entities), message(seq, 4000))
				seq++
				return rep.of(kith.ErrMailboxFull) > 0
			}, "a report")
			var told *kith.RefusedError
			rep.mu.Lock()
			require.Len(t, rep.errs, 1)
			for _, err := range rep.errs {
				require.ErrorAs(t, err, &told)
				require.ErrorIs(t, err, c.also)
			}
			rep.mu.Unlock()
			require.Equal(t, want, *told)
			_, err := r.Ask(within(t), "slow0", message(0, 4000))
			require.ErrorAs(t, err, &told)
			require.Equal(t, want, *told)
			require.ErrorIs(t, err, kith.ErrMailboxFull)
			require.ErrorIs(t, err, c.also)
			require.ErrorContains(t, err, fmt.Sprint(c.want.Limit, " bytes wait for "))
			require.ErrorContains(t, err, rep.host.String())
			answered := make(chan error, 1)
			require.NoError(t, r.AskFunc(time.Minute, "slow0", message(0, 4000), func(_ []byte, err error) { answered <- err }))
			told = nil
			require.ErrorAs(t, <-answered, &told)
			require.Equal(t, want, *told)
		})
	}
}

// Nobody hosts the type, though a member might: messages wait within bounds, and fail when their time is over.
func TestParking(t *testing.T) {
	t.Parallel()
	rep := &reports{}
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		cfg.MaxPayload = 2000
		if i == 1 {
			cfg.Roles = []string{"host"} // and never registers the type
			return
		}
		cfg.Sharding.ParkBytes, cfg.Sharding.ParkTime, cfg.Undelivered = 20_000, time.Second, rep.take
	}, nil)
	r, err := nodes[0].Register(kith.EntityType{Name: "orphan", Role: "host", Shards: 4,
		New: func(string, kith.Fence) kith.Handler { return &echo{} }})
	require.NoError(t, err)
	accepted := uint64(0)
	for ; err == nil; accepted++ {
		err = r.Tell("a", make([]byte, 1000))
	}
	accepted--
	require.ErrorIs(t, err, kith.ErrParkFull)
	require.ErrorIs(t, r.Tell("b", make([]byte, 2000)), kith.ErrParkFull, "the bound is the type's")
	require.Greater(t, accepted, uint64(10))
	_, err = r.AskWithin(time.Second, "a", make([]byte, 1000), nil)
	require.ErrorIs(t, err, kith.ErrParkFull)
	require.NotZero(t, nodes[0].Stats().Types[0].ParkedBytes)
	eventually(t, func() bool { return rep.of(kith.ErrTimeout) == accepted }, "all of them reported")
	require.Zero(t, nodes[0].Stats().Types[0].ParkedBytes)
	for range 2 { // what comes later has a time limit too
		require.NoError(t, r.Tell("a", nil))
		accepted++
		eventually(t, func() bool { return rep.of(kith.ErrTimeout) == accepted }, "another one is reported")
	}
	require.ErrorIs(t, r.TellBulk(within(t), "a", make([]byte, 100_000), nil), kith.ErrTimeout)
	_, err = r.AskWithin(10*time.Millisecond, "a", nil, nil)
	require.ErrorIs(t, err, kith.ErrTimeout)
	require.NoError(t, r.Tell("a", nil))
	asked := make(chan error, 1)
	require.NoError(t, r.AskFunc(patience, "a", nil, func(_ []byte, err error) { asked <- err }))
	all := &kith.AbandonedError{}
	require.ErrorAs(t, nodes[0].Close(), &all)
	require.Equal(t, []kith.AbandonedType{{Type: "orphan", Tells: 1, Asks: 2}}, all.Types)
	require.ErrorIs(t, <-asked, kith.ErrAbandoned)
	require.ErrorIs(t, r.Tell("a", nil), kith.ErrStopped)
	require.EqualValues(t, 1, rep.of(kith.ErrAbandoned), "the end is reported for what is parked")
}

// The bounds of this node's own entities are named in the same way: of the mailbox of a Blocking entity, and of the
// queue of the worker or event loop that has the others (SHD-5).
func TestOwnRefusalsNameTheirBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode   kith.Mode
		reason kith.Reason
		limit  int
		typ    string
	}{
		{kith.Blocking, route.MailboxFull, 64 << 10, "gate"},
		{kith.Worker, route.QueueFull, 8 * (64 << 10), ""},
		{kith.Inline, route.QueueFull, 8 * (64 << 10), ""},
	} {
		t.Run(c.mode.String(), func(t *testing.T) {
			open := make(chan struct{})
			var r *kith.Region
			nodes := cluster(t, 1, func(_ int, cfg *kith.Config) {
				cfg.LinkBuffer, cfg.Window, cfg.MaxPayload = 64<<10, 64<<10, 10<<10
			}, func(_ int, n *kith.Node) {
				r = register(t, n, kith.EntityType{Name: "gate", Shards: 4, Mode: c.mode, MailboxBytes: 64 << 10}, actor{
					receive: func(*kith.Context, []byte) error { <-open; return nil }})
			})
			t.Cleanup(func() { close(open) })
			var err error
			eventually(t, func() bool {
				err = r.Tell("a", make([]byte, 4000))
				return err != nil
			}, "a full bound")
			var full *kith.RefusedError
			require.ErrorAs(t, err, &full)
			require.ErrorIs(t, err, kith.ErrMailboxFull)
			require.Equal(t, kith.RefusedError{Peer: nodes[0].ID(), Type: c.typ, Reason: c.reason, Limit: c.limit}, *full)
		})
	}
}
