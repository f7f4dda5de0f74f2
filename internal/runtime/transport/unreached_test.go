// Tests of peers that are not reached: what is logged, what is counted, and what becomes of the frames that waited.

package transport

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// nobody returns an address at which nobody listens.
func nobody(t *testing.T) peer.Addr {
	return peer.MustAddr(port.Keep(t))
}

// The first dial that fails is logged, later ones only every 30 s with their number, and the end of it too (issue 2,
// bad input).
func TestUnreachableIsLogged(t *testing.T) {
	rec := &logstest.Text{}
	ta := start(t, newRider(), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(rec, nil)) })
	addr := nobody(t)
	to := peer.ID{Addr: addr}
	probe := func() { require.NoError(t, ta.Send(peer.Mail{To: to, Kind: wire.KindStatus})) }
	fail := func(n uint64) {
		until(t, func() bool {
			probe()
			return ta.Stats().DialsFailed >= n
		})
	}
	fail(4)
	const text = "peer cannot be reached"
	require.Len(t, rec.Lines(text), 1, "the first failure only")
	line := rec.Lines(text)[0]
	for _, want := range []string{"level=WARN", "peer=" + addr.String() + " ", "lane=control", "refused", "failures=1"} {
		require.Contains(t, line, want)
	}
	require.Equal(t, 1, ta.Stats().FailedDials)

	r, err := ta.remote(to)
	require.NoError(t, err)
	c := r.control()
	c.mu.Lock()
	c.warnedAt = c.warnedAt.Add(-unreachedEvery)
	c.mu.Unlock()
	fail(ta.Stats().DialsFailed + 2)
	require.Len(t, rec.Lines(text), 2, "once more after the interval")
	require.NotContains(t, rec.Lines(text)[1], "failures=1\n", "with the number of failures since")

	b := newRider()
	start(t, b, func(c *Config) { c.Listen = addr.String() })
	until(t, func() bool {
		probe()
		return len(rec.Lines("peer reached at last")) == 1
	})
	require.Contains(t, rec.Lines("peer reached at last")[0], "level=INFO")
	require.Zero(t, ta.Stats().FailedDials)
}

// An uplink that flaps is logged at the pace of one that fails all the time; a connection that lasted starts anew.
func TestFlappingIsLoggedSparely(t *testing.T) {
	ta := start(t, newRider(), nil)
	r, err := ta.remote(peer.ID{Addr: nobody(t), Inc: 7})
	require.NoError(t, err)
	c := r.control()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.True(t, c.worthLogging())
	c.warned, c.unreached = false, 0 // as opened does
	require.False(t, c.worthLogging())
	c.warnedAt = time.Time{} // as closed does after a connection that lasted
	require.True(t, c.worthLogging())
	c.warnedAt = time.Time{}
	c.dead = ErrForgotten
	require.False(t, c.worthLogging(), "its removal is no failure")
	c.dead = nil
	c.mu.Unlock()
	ta.Leaving(r.id)
	ta.Leaving(peer.ID{Addr: nobody(t), Inc: 8}) // nobody known
	c.mu.Lock()
	require.False(t, c.worthLogging(), "nor is that a leaver is away")
}

// What a link held is reported when its peer is forgotten, when the transport closes, and when the peer refuses for
// good: whole, in order, once.
func TestHeldFramesAreTold(t *testing.T) {
	const frames = 100
	fill := func(tr *Transport, to peer.ID) *Link {
		l := tr.Link(to)
		for i := range uint32(frames) {
			require.NoError(t, send(t, l, 1, i, 10, nil))
		}
		return l
	}
	check := func(got unsent, to peer.ID, tr *Transport, why string) {
		t.Helper()
		require.Equal(t, to, got.id)
		n := uint32(0)
		eachFrame(got.frames, func(f []byte) {
			var env wire.Envelope
			require.NoError(t, wire.ParseEnvelope(f, &env))
			require.Equal(t, n, env.Shard)
			n++
		})
		require.EqualValues(t, frames, n)
		require.EqualValues(t, len(got.frames), tr.Stats().DroppedBytes)
		require.Equal(t, map[string]uint64{why: uint64(len(got.frames))}, tr.Stats().Dropped)
	}
	gone := peer.ID{Addr: nobody(t), Inc: 7}

	a := newRider()
	ta := start(t, a, nil)
	l := fill(ta, gone)
	require.NoError(t, l.Err())
	ta.Forget(gone)
	got := want(t, a.unsent)
	require.ErrorIs(t, got.err, ErrForgotten)
	check(got, gone, ta, "removed")
	require.ErrorIs(t, l.Err(), ErrForgotten)
	require.ErrorIs(t, ta.Link(gone).Err(), ErrForgotten)
	require.ErrorIs(t, send(t, l, 1, 0, 1, nil), ErrForgotten)

	b := newRider()
	tb := start(t, b, nil)
	fill(tb, gone)
	tb.Close()
	got = want(t, b.unsent)
	require.ErrorIs(t, got.err, ErrClosed)
	check(got, gone, tb, "closed")

	c, other := newRider(), start(t, newRider(), func(c *Config) { c.Name = "other" })
	tc := start(t, c, nil)
	filled := make(chan struct{})
	require.NoError(t, tc.loops[0].Execute(taskFunc(func() { <-filled }))) // no dial before all of it is there
	fill(tc, other.Self())
	close(filled)
	got = want(t, c.unsent)
	var refused *hello.RefusedError
	require.ErrorAs(t, got.err, &refused)
	check(got, other.Self(), tc, "refused")
	require.Empty(t, a.unsent)
	require.Empty(t, b.unsent)
}
