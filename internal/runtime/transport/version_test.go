// Tests of wire versions on sockets: what builds of different versions agree on, and what a peer is never sent.

package transport

import (
	"encoding/hex"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A build talks to its own and to earlier versions, on both lanes, dialled from either side: the newest that both speak
// is chosen. Others are refused with a reason that names both ranges (CARD-3).
func TestBuildsOfDifferentVersions(t *testing.T) {
	first, now := hello.VersionOne, wire.Spoken()
	before, next := wire.Versions{Newest: 11, Oldest: 1}, wire.Versions{Newest: 13, Oldest: 2}
	later := wire.Versions{Newest: 14, Oldest: 13}
	for _, c := range []struct {
		name         string
		dials, takes wire.Versions
		chosen       uint16 // zero: refused
		text         string
	}{
		{"own", now, now, 12, ""},
		{"the one before, dialled", now, before, 11, ""},
		{"the one before, dialling", before, now, 11, ""},
		{"previous, dialled", now, first, 1, ""},
		{"previous, dialling", first, now, 1, ""},
		{"next, dialled", now, next, 12, ""},
		{"next, dialling", next, now, 12, ""},
		{"too new, dialled", now, later, 0, `ours "1-12", theirs "13-14"`},
		{"too new, dialling", later, now, 0, `ours "13-14", theirs "1-12"`},
		{"too old, dialled", next, first, 0, `ours "2-13", theirs "1"`},
		{"too old, dialling", first, next, 0, `ours "1", theirs "2-13"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newRider(), newRider()
			got := make(chan int, 1)
			b.onData = func(c *InConn, fs []byte) { c.Consumed(len(fs)); got <- len(fs) }
			tb := start(t, b, func(cfg *Config) { cfg.versions = c.takes })
			ta := start(t, a, func(cfg *Config) { cfg.versions = c.dials })
			require.Zero(t, VersionOf(ta, tb.Self()), "not known yet")
			require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("hi")}))
			if c.chosen == 0 {
				e := want(t, a.refused)
				require.Equal(t, hello.RefusedVersion, e.Reason)
				require.ErrorContains(t, e, c.text)
				require.True(t, e.Reason.ForGood())
				return
			}
			require.Equal(t, "hi", want(t, b.mails).body)
			require.Equal(t, c.chosen, VersionOf(ta, tb.Self()))
			require.NoError(t, send(t, ta.Link(tb.Self()), 1, 1, 8, nil))
			require.Equal(t, wire.SizeEnvelope(1, 8), want(t, got))
		})
	}
}

// A node of version 1, played by the bytes that it wrote: it refuses the hello of this build naming its version, and is
// dialled again at once in its own words; later connections begin with them.
func TestNodeOfVersionOne(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	old := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 5}
	a := newRider()
	ta := start(t, a, nil)
	require.NoError(t, ta.Send(peer.Mail{To: old, Kind: wire.KindStatus, Body: []byte("hi")}))
	accept := func() (net.Conn, string) {
		nc, err := ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		_, body, err := readFrame(nc, hello.MaxFrame)
		require.NoError(t, err)
		return nc, hex.EncodeToString(body[:6])
	}
	answer := func(nc net.Conn, kind wire.Kind, text string) {
		body, err := hex.DecodeString(text)
		require.NoError(t, err)
		_, err = nc.Write(wire.AppendFrame(nil, kind, 0, 0, body))
		require.NoError(t, err)
	}
	nc, words := accept()
	require.Equal(t, "4b495448"+"0c00", words)
	answer(nc, wire.KindHelloRefuse, "02"+"0c"+hex.EncodeToString([]byte("wire version"))+"0133"+"0131")
	nc.Close()
	taken := hex.EncodeToString(hello.AppendAck(nil, &hello.Ack{From: old}, hello.VersionOne))
	for range 2 {
		nc, words := accept()
		require.Equal(t, "4b495448"+"0100", words)
		answer(nc, wire.KindHelloAck, taken)
		kind, body, err := readFrame(nc, 100)
		require.NoError(t, err)
		require.Equal(t, []any{wire.KindStatus, "hi"}, []any{kind, string(body)})
		want(t, a.ups)
		nc.Close()
		want(t, a.downs)
		require.NoError(t, ta.Send(peer.Mail{To: old, Kind: wire.KindStatus, Body: []byte("hi")}))
	}
	require.Empty(t, a.refused)
}

// A kind that a peer's version does not have is never sent to it: what was queued before the version was known is
// dropped and counted, the rest keeps its order, and later mail is refused with an error that names both versions.
func TestPeerIsNotSentWhatItDoesNotKnow(t *testing.T) {
	pretend := func(versions wire.Versions) func(*Config) {
		return func(c *Config) {
			c.versions = versions
			c.since = func(k wire.Kind) uint16 {
				if k == wire.KindDelta {
					return 2
				}
				return 1
			}
		}
	}
	b := newRider()
	tb := start(t, b, pretend(hello.VersionOne))
	ta := start(t, newRider(), pretend(wire.Spoken()))
	mail := func(kind wire.Kind, body string) error {
		return ta.Send(peer.Mail{To: tb.Self(), Kind: kind, Body: []byte(body)})
	}
	r, err := ta.remote(tb.Self())
	require.NoError(t, err)
	c := r.control()
	c.mu.Lock()
	c.dialing = true // all is queued before the first dial
	c.mu.Unlock()
	for i, kind := range []wire.Kind{wire.KindStatus, wire.KindDelta, wire.KindGossip, wire.KindDelta, wire.KindSeen} {
		require.NoError(t, mail(kind, string(rune('a'+i))))
	}
	c.mu.Lock()
	c.dialing = false
	c.ensure()
	c.mu.Unlock()
	for _, body := range []string{"a", "c", "e"} {
		require.Equal(t, body, want(t, b.mails).body)
	}
	require.EqualValues(t, 2, ta.Stats().MailTooNew)
	var e *VersionError
	require.ErrorAs(t, mail(wire.KindDelta, "x"), &e)
	require.Equal(t, VersionError{Peer: tb.Self(), Kind: wire.KindDelta, Needs: 2, Speaks: 1}, *e)
	require.ErrorContains(t, e, "delta came with wire version 2, "+tb.Self().String()+" speaks 1")
	require.EqualValues(t, 3, ta.Stats().MailTooNew)
	require.Empty(t, b.mails)
	require.Zero(t, tb.Stats().FaultsFrames)

	// The other way round: a dialler that says that it speaks version 1 and sends what came later breaks the protocol.
	tc := start(t, newRider(), pretend(wire.Spoken()))
	liar := start(t, newRider(), func(c *Config) {
		c.versions, c.since = hello.VersionOne, func(wire.Kind) uint16 { return 1 }
	})
	require.NoError(t, liar.Send(peer.Mail{To: tc.Self(), Kind: wire.KindDelta}))
	until(t, func() bool { return tc.Stats().FaultsFrames == 1 })
}
