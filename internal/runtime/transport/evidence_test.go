// Tests of lost links as evidence: reported when the process at the other end is gone, and only then (FD-1).

package transport

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// linked returns two transports of which the first has a control connection to the second; the second's port stays its
// own when it is closed.
func linked(t *testing.T) (ra *rider, ta, tb *Transport) {
	ra, rb := newRider(), newRider()
	listen := port.Keep(t)
	ta, tb = start(t, ra, nil), start(t, rb, func(c *Config) { c.Listen = listen })
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("x")}))
	wantMail(t, rb, wire.KindStatus)
	require.Equal(t, tb.Self(), want(t, ra.ups).id)
	return ra, ta, tb
}

// Nobody listens any more at the address of a broken connection: that is reported once, though no mail waits.
func TestGoneProcessIsTold(t *testing.T) {
	ra, ta, tb := linked(t)
	tb.Close()
	require.Equal(t, tb.Self(), want(t, ra.lost))
	require.Equal(t, tb.Self(), want(t, ra.downs).id)
	until(t, func() bool {
		_ = ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus})
		return ta.Stats().DialsFailed > 3
	})
	require.Empty(t, ra.lost, "later refusals are no news")
}

// A connection that the peer closed while it lives is dialled again, and nothing is reported.
func TestClosedConnectionIsVerified(t *testing.T) {
	ra, ta, tb := linked(t)
	tb.mu.Lock()
	var conns []*InConn
	for _, c := range tb.remotes[ta.Self()].in {
		conns = append(conns, c)
	}
	tb.mu.Unlock()
	require.Len(t, conns, 1)
	conns[0].loop.Post(conns[0])
	want(t, ra.downs)
	require.Equal(t, tb.Self(), want(t, ra.ups).id, "dialled again without mail")
	require.Empty(t, ra.lost)
}

// Another incarnation at the address is reported as such.
func TestReplacedProcessIsTold(t *testing.T) {
	ra, ta, tb := linked(t)
	tb.Close()
	want(t, ra.lost)
	tc := start(t, newRider(), func(c *Config) { c.Listen = tb.Addr().String() })
	require.Equal(t, tb.Addr(), tc.Addr())
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	refused := want(t, ra.refused)
	require.Equal(t, hello.RefusedIncarnation, refused.Reason)
	require.Equal(t, tb.Self(), refused.Peer)
}

// What this node closed itself is no evidence: a peer that it was to forget, or one that is leaving.
func TestOwnDoingIsNoEvidence(t *testing.T) {
	ra, ta, tb := linked(t)
	ta.Forget(tb.Self())
	want(t, ra.downs)
	tb.Close()
	require.Empty(t, ra.lost)

	ra, ta, tb = linked(t)
	ta.Leaving(tb.Self())
	tb.Close()
	want(t, ra.downs)
	r, err := ta.remote(tb.Self())
	require.NoError(t, err)
	c := r.control()
	c.mu.Lock()
	require.False(t, c.dialing || c.verify)
	c.mu.Unlock()
}

// A probe by address alone takes a connection of its own, beside the one to the full identity, and its answer comes in
// the name of the node that is there: that is the second way on which membership probes those late with their answers.
func TestProbeByAddressTakesAnotherConnection(t *testing.T) {
	ra, ta, tb := linked(t)
	probe := wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 7, Sent: 8})
	require.NoError(t, ta.Send(peer.Mail{To: peer.ID{Addr: tb.Addr()}, Kind: wire.KindHeartbeat, Body: probe}))
	ack := wantMail(t, ra, wire.KindHeartbeatAck)
	require.Equal(t, tb.Self(), ack.from)
	got, err := wire.ParseHeartbeatAck([]byte(ack.body))
	require.NoError(t, err)
	require.Equal(t, uint64(7), got.Seq)
	tb.mu.Lock()
	defer tb.mu.Unlock()
	require.Len(t, tb.remotes[ta.Self()].in, 2)
}

// A dying process still takes connections for a moment and resets them: the refusal that follows is the evidence, and
// an address that resets for ever is not dialled for ever (FD-1).
func TestResetBeforeTheRefusal(t *testing.T) {
	ra, ta, tb := linked(t)
	r, err := ta.remote(tb.Self())
	require.NoError(t, err)
	c := r.control()
	reset, refused := fmt.Errorf("dial: %w", syscall.ECONNRESET), fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	c.mu.Lock()
	c.verify, c.failures = true, 0
	c.mu.Unlock()
	require.True(t, c.failed(time.Now(), reset), "nothing is known yet")
	require.Empty(t, ra.lost)
	require.False(t, c.failed(time.Now(), refused))
	require.Equal(t, tb.Self(), want(t, ra.lost))

	c.mu.Lock()
	c.verify, c.failures = true, 0
	c.mu.Unlock()
	for range verifyTries - 1 {
		require.True(t, c.failed(time.Now(), reset))
	}
	require.False(t, c.failed(time.Now(), reset))
	require.False(t, c.failed(time.Now(), refused))
	require.Empty(t, ra.lost)
}

// frameLen is the length of a frame that send appends with a payload of one byte.
var frameLen = wire.SizeEnvelope(1, 1)

// What waits for a connection to a peer that is given up comes back at once, and nothing more is taken for a while; not
// for ever, since the evidence may have been wrong.
func TestGiveUpReturnsWhatWaits(t *testing.T) {
	ra, ta, tb := linked(t)
	l := ta.Link(tb.Self())
	tb.Close()
	require.Equal(t, tb.Self(), want(t, ra.lost))
	for range 3 {
		require.NoError(t, send(t, l, 0, 0, 1, nil))
	}
	ta.GiveUp(tb.Self())
	got := want(t, ra.unsent)
	require.Equal(t, tb.Self(), got.id)
	require.Len(t, got.frames, 3*frameLen)
	require.ErrorIs(t, got.err, ErrGone)
	require.ErrorIs(t, send(t, l, 0, 0, 1, nil), ErrGone)
	require.ErrorIs(t, l.Err(), route.ErrPeerLost)
	require.EqualValues(t, 3*frameLen, ta.Stats().Dropped["gone"])
	l.Lock()
	l.away -= awayHold
	l.Unlock()
	require.NoError(t, l.Err())
	require.NoError(t, send(t, l, 0, 0, 1, nil))
	require.Empty(t, ra.unsent)
}

// A connection that stands goes on when its peer is given up; what waits behind it comes back when it breaks.
func TestGiveUpBehindAConnection(t *testing.T) {
	narrow := func(c *Config) { c.Window, c.MaxFrame, c.LinkBuffer = 16<<10, 4096, 64<<10 }
	ra, rb := newRider(), newRider()
	rb.onData = func(*InConn, []byte) {} // takes nothing, so no credit comes back
	ta, tb := start(t, ra, narrow), start(t, rb, narrow)
	l := ta.Link(tb.Self())
	waiting := func() int {
		l.Lock()
		defer l.Unlock()
		queued, all := l.Backlog()
		if all == queued {
			return 0
		}
		return queued
	}
	until(t, func() bool { return send(t, l, 0, 0, 1000, nil) != nil }) // it is full
	until(t, func() bool { return waiting() > 0 })
	ta.GiveUp(tb.Self())
	require.Empty(t, ra.unsent)
	require.ErrorIs(t, send(t, l, 0, 0, 1, nil), ErrGone)
	left := waiting()
	tb.Close()
	got := want(t, ra.unsent)
	require.Len(t, got.frames, left)
	require.ErrorIs(t, got.err, ErrGone)
}
