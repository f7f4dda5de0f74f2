// Tests of session leases over real sockets.

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// sessionStore is a store of leases in memory, whose calls may hang, err or panic.
type sessionStore struct {
	moody
	mu    sync.Mutex
	rows  map[string]sessionRow
	under atomic.Int32 // calls that have not returned
	most  atomic.Int32 // of them at any time
}

type sessionRow struct {
	owner string
	until time.Time
}

// lasting is the store with leases of one length.
type lasting struct {
	*sessionStore
	ttl time.Duration
}

func (l lasting) TTL() time.Duration { return l.ttl }

func (l lasting) Acquire(_ context.Context, name, owner string) (bool, error) {
	n := l.under.Add(1)
	defer l.under.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	if err := l.call(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, now := l.rows[name], time.Now()
	if r.owner != owner && now.Before(r.until) {
		return false, nil
	}
	l.rows[name] = sessionRow{owner, now.Add(l.ttl)}
	return true, nil
}

func (s *sessionStore) session(ttl time.Duration) kith.Session {
	return kith.Session{Service: lasting{s, ttl}, Ends: lasting{s, 100 * ttl}}
}

// TestSessions: while the store is away nodes handle nothing and say why; when it is back they go on, nobody has ended.
// When one is lost another ends its session, and what lived there answers, long before the takeover time (SHD-4, AVL-5,
// MEM-10).
func TestSessions(t *testing.T) {
	t.Parallel()
	store := &sessionStore{rows: map[string]sessionRow{}}
	var regions [3]*kith.Region
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) {
		cfg.Sharding.TakeoverTime = time.Hour
		cfg.Sharding.Session = store.session(10 * time.Second)
	}, func(i int, n *kith.Node) {
		typ := echoType("echo", kith.Worker, newLedger(), func() *kith.Node { return n })
		var err error
		regions[i], err = n.Register(typ)
		require.NoError(t, err)
	})
	all := func(r *kith.Region) bool {
		for i := range 50 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			_, err := r.Ask(ctx, fmt.Sprint(i), []byte("where"))
			if cancel(); err != nil {
				return false
			}
		}
		return true
	}
	eventually(t, func() bool { return all(regions[0]) }, "all entities answer")

	store.be(t, errs)
	for _, n := range nodes {
		eventually(t, func() bool {
			h := n.Health()
			return h.State == kith.StateSuspended && !n.Stats().Suspension.Session.Held
		}, "no node has a session")
		require.Contains(t, n.Health().Reason, "its session lease has run out")
		require.Contains(t, n.Stats().Suspension.Session.Why, errAway.Error())
	}
	_, err := regions[0].Ask(within(t), "1", []byte("where"))
	require.ErrorIs(t, err, kith.ErrSuspended)
	store.be(t, fine)
	eventually(t, func() bool { return all(regions[0]) }, "all entities answer again")
	for _, n := range nodes {
		require.NoError(t, n.Err())
		require.True(t, n.Stats().Suspension.Session.On)
		require.Positive(t, n.Stats().Suspension.Session.RanOut)
		require.Zero(t, n.Stats().Suspension.Session.Ended)
	}

	closes(t, nodes[2])
	eventually(t, func() bool { return all(regions[0]) }, "what lived at the lost node answers")
	require.Positive(t, nodes[0].Stats().Suspension.Session.Ended+nodes[1].Stats().Suspension.Session.Ended)
}

// TestSessionIsEnded: a node ends, and says so, when another one has ended its session.
func TestSessionIsEnded(t *testing.T) {
	t.Parallel()
	store := &sessionStore{rows: map[string]sessionRow{}}
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
		cfg.Sharding.Session = store.session(10 * time.Second)
	}, func(int, *kith.Node) {})
	store.mu.Lock()
	for name := range store.rows {
		if name == "test-session-"+nodes[1].ID().String() {
			store.rows[name] = sessionRow{"ended", time.Now().Add(time.Hour)}
		}
	}
	store.mu.Unlock()
	eventually(t, func() bool { return nodes[1].Err() != nil }, "it has ended")
	require.ErrorContains(t, nodes[1].Err(), "another member has ended its session lease")
	require.NoError(t, nodes[0].Err())
}

// TestSessionStoreMisbehaves: panics of the store, and calls that never return, are failed renewals. The calls that are
// left behind are bounded, and the node goes on when the store does (MEM-10, BND-1).
func TestSessionStoreMisbehaves(t *testing.T) {
	t.Parallel()
	store := &sessionStore{rows: map[string]sessionRow{}}
	n := cluster(t, 1, func(_ int, cfg *kith.Config) {
		cfg.Sharding.Session = store.session(time.Second)
	}, func(int, *kith.Node) {})[0]
	session := func() kith.SessionStats { return n.Stats().Suspension.Session }
	eventually(t, func() bool { return session().Held }, "it has a session")
	store.be(t, panics)
	eventually(t, func() bool { return strings.Contains(session().Why, "a callback panicked") }, "panics")
	store.be(t, hangs)
	eventually(t, func() bool { return strings.Contains(session().Why, "has not answered in time") }, "the first calls")
	eventually(t, func() bool { return strings.Contains(session().Why, "16 calls of the store do not return") }, "all")
	require.EqualValues(t, 16, store.most.Load())
	store.be(t, fine)
	eventually(t, func() bool { return session().Held }, "it has a session again")
	require.NoError(t, n.Err())
}

// TestCloseEndsSessionCalls: a node that closes ends the calls that are under way.
func TestCloseEndsSessionCalls(t *testing.T) {
	t.Parallel()
	var s waiting
	both := kith.Session{Service: &s, Ends: lasting{ttl: time.Hour}}
	n := start(t, logger(t), kith.Config{Sharding: kith.Sharding{Session: both}})
	eventually(t, func() bool { return s.began.Load() > 0 }, "a call is under way")
	closes(t, n)
	eventually(t, func() bool { return s.ended.Load() == s.began.Load() }, "it has returned")
	require.Positive(t, s.canceled.Load())
}

// waiting is a store whose calls return when their context ends.
type waiting struct{ began, ended, canceled atomic.Int32 }

func (*waiting) TTL() time.Duration { return time.Minute }

func (w *waiting) Acquire(ctx context.Context, _, _ string) (bool, error) {
	w.began.Add(1)
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) {
		w.canceled.Add(1)
	}
	w.ended.Add(1)
	return false, ctx.Err()
}

// noTTL panics when it is asked for its TTL, as a nil pointer does.
type noTTL struct{ lasting }

func (*noTTL) TTL() time.Duration { panic("no TTL") }

// TestSessionConfig: what is wrong with the store of sessions is said at the start, all of it.
func TestSessionConfig(t *testing.T) {
	t.Parallel()
	of := func(service, ends time.Duration) kith.Session {
		return kith.Session{Service: lasting{ttl: service}, Ends: lasting{ttl: ends}}
	}
	for _, c := range []struct {
		session kith.Session
		want    []string
	}{
		{kith.Session{Service: lasting{ttl: 5 * time.Second}}, []string{"needs both"}},
		{kith.Session{Ends: lasting{ttl: time.Hour}}, []string{"needs both"}},
		{kith.Session{Ends: (*noTTL)(nil)}, []string{"needs both", "Session.Ends: ", "no TTL"}},
		{of(0, 0), []string{"is 0"}},
		{of(-1, -10), []string{"must be 1s to 1m0s"}},
		{of(time.Minute+1, time.Hour), []string{"must be 1s to 1m0s"}},
		{of(5*time.Second, 49*time.Second), []string{"must be 50s (10 times"}},
		{of(5*time.Second, 25*time.Hour), []string{"an end is kept for 25h0"}},
		{of(time.Millisecond, 25*time.Hour), []string{"must be 1s to 1m0s", "an end is kept for 25h0"}},
	} {
		err := kith.Config{Sharding: kith.Sharding{Session: c.session}}.Validate()
		require.ErrorIs(t, err, kith.ErrBadConfig)
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
	good := kith.Config{Sharding: kith.Sharding{Session: of(5*time.Second, 50*time.Second)}}
	require.NoError(t, good.Validate())
	good.Membership.LenientSettings = true
	require.ErrorContains(t, good.Validate(), "LenientSettings must be off")
}

// TestSessionsAreAgreed: nodes without sessions, and with others, are refused by those that have them (JOIN-1).
func TestSessionsAreAgreed(t *testing.T) {
	t.Parallel()
	store := &sessionStore{rows: map[string]sessionRow{}}
	first := cluster(t, 1, func(_ int, cfg *kith.Config) {
		cfg.Sharding.Session = store.session(10 * time.Second)
	}, func(int, *kith.Node) {})[0]
	for _, other := range []kith.Session{{}, store.session(11 * time.Second)} {
		n := start(t, logger(t), kith.Config{Seeds: []string{first.Addr().String()}, Sharding: kith.Sharding{Session: other}})
		eventually(t, func() bool { return n.Err() != nil }, "it is refused")
		require.ErrorContains(t, n.Err(), "kith.takeover-time")
	}
	require.NoError(t, first.Err())
}
