// Tests of make before break: a renewal that does not come in at the door costs nothing; one that does loses nothing.

package transport

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A certificate is renewed while the peer's door lets nobody in: the connections that stand go on, and are made anew
// once it does, and then nothing has been lost, nor has anything been reported to the rider (SEC-1).
func TestRenewalWhileManyArePending(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	var got atomic.Uint32
	b.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func(f []byte) {
			var e wire.Envelope
			if wire.ParseEnvelope(f, &e) != nil || e.Shard != got.Load() {
				t.Errorf("frame %d instead of %d", e.Shard, got.Load())
			}
			got.Store(e.Shard + 1)
		})
		c.Consumed(len(fs))
	}
	site := newSite(t, ca)
	ta, tb := start(t, a, site.tls), start(t, b, newSite(t, ca).tls)
	say := func() {
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
		wantMail(t, b, wire.KindStatus)
	}
	link := ta.Link(tb.Self())
	say()
	require.NoError(t, send(t, link, 0, 0, 100, nil))
	until(t, func() bool { return got.Load() == 1 && tb.Stats().Control.In == 1 && tb.Stats().Data.In == 1 })
	lock := func(most int) {
		tb.mu.Lock()
		tb.admission.most = most
		tb.mu.Unlock()
	}
	lock(0)
	site.prove(ca, time.Now().Add(20*time.Minute))
	until(t, func() bool { return ta.Stats().TLSPutOff >= 2 && tb.Stats().OverLimit >= 2 })
	for n := range uint32(100) {
		require.NoError(t, send(t, link, 0, n+1, 100, nil))
		say()
		until(t, func() bool { return got.Load() == n+2 })
	}
	require.Zero(t, ta.Stats().TLSRenewed)
	lock(256)
	r, err := ta.remote(tb.Self())
	require.NoError(t, err)
	r.uplinks(func(u *uplink) {
		u.mu.Lock()
		u.putOff = time.Time{}
		u.mu.Unlock()
	})
	n := uint32(101)
	until(t, func() bool {
		require.NoError(t, send(t, link, 0, n, 100, nil))
		n++
		return ta.Stats().TLSRenewed == 2
	})
	say()
	until(t, func() bool { return got.Load() == n })
	require.Empty(t, a.downs)
	require.Zero(t, ta.Stats().LostBytes+ta.Stats().DroppedBytes)
	require.Equal(t, []int64{1, 1}, []int64{tb.Stats().Control.In, tb.Stats().Data.In})
}

// A peer of an older version waits for the end of the old connection before it answers: there it breaks first, as ever.
func TestRenewalWithAnOlderPeer(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	site := newSite(t, ca)
	ta := start(t, a, site.tls)
	tb := start(t, b, func(c *Config) {
		newSite(t, ca).tls(c)
		c.versions = wire.Versions{Newest: 2, Oldest: 1}
	})
	require.NoError(t, send(t, ta.Link(tb.Self()), 0, 0, 100, nil))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	wantMail(t, b, wire.KindStatus)
	until(t, func() bool { return ta.Stats().Data.Out == 1 })
	site.prove(ca, time.Now().Add(20*time.Minute))
	until(t, func() bool {
		return ta.Stats().TLSRenewed == 2 && ta.Stats().Data.Out == 1 && ta.Stats().Control.Out == 1
	})
	require.Empty(t, a.downs)
}

// An acceptor answers a connection that follows another one at once, and reads it when that one has ended.
func TestFollowingConnectionWaitsForItsTurn(t *testing.T) {
	b := newRider()
	tb := start(t, b, nil)
	from := peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 77}
	dial := func(generation, renews uint32) net.Conn {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		h := helloFrom(tb, from, wire.LaneControl, generation)
		h.Renews = renews
		_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
		require.NoError(t, err)
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
		kind, _, err := readFrame(nc, hello.MaxAnswer)
		require.NoError(t, err)
		require.Equal(t, wire.KindHelloAck, kind)
		return nc
	}
	says := func(nc net.Conn, text string) {
		_, err := nc.Write(wire.AppendFrame(nil, wire.KindStatus, 0, 0, []byte(text)))
		require.NoError(t, err)
	}
	first := dial(1, 0)
	says(first, "1")
	require.Equal(t, "1", wantMail(t, b, wire.KindStatus).body)
	says(first, "2")
	second := dial(2, 1) // which is answered though the first is there
	says(second, "3")
	require.NoError(t, first.Close())
	require.Equal(t, "2", wantMail(t, b, wire.KindStatus).body, "what the first said is read first")
	require.Equal(t, "3", wantMail(t, b, wire.KindStatus).body)
}

// Large messages go on while the peer's door lets nobody in, though their connection is to be made anew.
func TestRenewalOfABulkConnectionWhileManyArePending(t *testing.T) {
	ca := authority(t)
	s := newSite(t, ca)
	a, b := startBulk(t, s.tls), startBulk(t, newSite(t, ca).tls)
	streamBulk(t, a, b, func() bool { return true })
	lock := func(most int) {
		b.Transport.mu.Lock()
		b.admission.most = most
		b.Transport.mu.Unlock()
	}
	lock(0)
	proven := false
	streamBulk(t, a, b, func() bool {
		if !proven { // two are on their way: a connection that carries nothing is closed, and nobody could come in anew
			s.prove(ca, time.Now().Add(20*time.Minute))
			proven = true
		}
		return a.Stats().TLSPutOff > 0
	})
	streamBulk(t, a, b, func() bool { return true })
	require.Zero(t, a.Stats().TLSRenewed)
	require.Equal(t, 1, b.Stats().Bulk.In)
	lock(256)
	require.Zero(t, a.Stats().Bulk.Sent.Lost)
}
