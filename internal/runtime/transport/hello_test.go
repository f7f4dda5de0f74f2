// Tests of the hello over sockets: the refusals as a peer meets them.

package transport

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func exampleHello() hello.Hello {
	return hello.Hello{
		Versions: wire.Spoken(), Lane: wire.LaneData, Number: 0, Generation: 3, Window: 1 << 20, ClusterID: 0x1122,
		Birth: 0x3344, Name: "market", From: peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 0xabcd},
		To: peer.MustAddr("db.local:7355"), ToInc: 0xef,
		Settings: []hello.Setting{{Key: "shards", Value: "100"}, {Key: "max-frame"}},
	}
}

// helloFrom is a hello that tr accepts.
func helloFrom(tr *Transport, from peer.ID, lane wire.Lane, generation uint32) hello.Hello {
	return hello.Hello{Versions: wire.Spoken(), Lane: lane, Generation: generation, Window: 4096, Name: "test", From: from,
		To: tr.Addr(), ToInc: tr.Self().Inc}
}

// Each refusal as the dialler meets it: typed, naming both values unless one is for members only, counted at the
// acceptor, reported once (CARD-3, SEC-3).
func TestRefusalsOverSockets(t *testing.T) {
	tb := start(t, newRider(), func(c *Config) {
		c.ClusterID, c.Birth, c.Terms = 5, 5, terms("shards", "100")
	})
	for name, c := range map[string]struct {
		change func(*Config)
		text   string
		id     uint64
	}{
		"cluster-name": {func(c *Config) { c.Name = "other" }, `ours "other", theirs "another"`, tb.Self().Inc},
		"cluster-id":   {func(c *Config) { c.ClusterID = 6 }, `ours "6", theirs "5/5"`, tb.Self().Inc},
		"setting": {func(c *Config) { c.Terms = terms("shards", "9") },
			`shards differs: ours "9", theirs "100"`, tb.Self().Inc},
		"incarnation": {nil, `ours "1", theirs "another"`, 1},
		"self":        {func(c *Config) { c.Advertise = tb.Addr().String() }, `theirs "another"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRider()
			ta := start(t, a, c.change)
			to := peer.ID{Addr: tb.Addr(), Inc: c.id}
			if name == "self" { // by another name for the same address
				to.Addr = peer.MustAddr(strings.Replace(tb.Addr().String(), "127.0.0.1", "localhost", 1))
			}
			require.NoError(t, ta.Send(peer.Mail{To: to, Kind: wire.KindJoinProbe}))
			e := want(t, a.refused)
			require.Equal(t, name, e.Reason.String())
			require.ErrorContains(t, e, c.text)
			require.ErrorContains(t, e, to.Addr.String())
			require.EqualValues(t, 1, tb.Stats().Refused[name])
		})
	}
}

// What is no hello, or no whole one, is closed within the deadline, answered where that makes sense, and counted; the
// other peers do not notice.
func TestBadHellos(t *testing.T) {
	b := newRider()
	tb := start(t, b, func(c *Config) { c.HelloTimeout, c.MaxPending = 300*time.Millisecond, 4 })
	good := start(t, newRider(), nil)
	h := helloFrom(tb, peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 77}, wire.LaneData, 1)
	body := hello.Append(nil, &h)
	later := append([]byte(nil), body...)
	later[4], later[6] = wire.Version+2, wire.Version+1
	for name, c := range map[string]struct {
		bytes  []byte
		reason hello.Refusal // none: closed without an answer
	}{
		"other frame": {wire.AppendFrame(nil, wire.KindStatus, 0, 0, nil), hello.RefusedMagic},
		"magic":       {wire.AppendFrame(nil, wire.KindHello, 0, 0, []byte("HTIK.....")), hello.RefusedMagic},
		"version":     {wire.AppendFrame(nil, wire.KindHello, 0, 0, later), hello.RefusedVersion},
		"malformed":   {wire.AppendFrame(nil, wire.KindHello, 0, 0, body[:30]), hello.RefusedMalformed},
		"too long":    {wire.AppendFrame(nil, wire.KindHello, 0, 0, make([]byte, hello.MaxFrame)), hello.RefusedMagic},
		"half":        {wire.AppendFrame(nil, wire.KindHello, 0, 0, body)[:30], hello.RefusedNone},
		"silence":     {nil, hello.RefusedNone},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", tb.Addr().String())
			require.NoError(t, err)
			defer nc.Close()
			_, _ = nc.Write(c.bytes)
			_ = nc.SetReadDeadline(time.Now().Add(patience))
			kind, answer, err := readFrame(nc, hello.MaxAnswer)
			if c.reason == hello.RefusedNone {
				require.Error(t, err)
				return
			}
			if name == "too long" && err != nil {
				return // its unread bytes may reset the connection before the answer is read
			}
			require.NoError(t, err)
			require.Equal(t, wire.KindHelloRefuse, kind)
			e, err := hello.ParseRefusal(answer)
			require.NoError(t, err)
			require.Equal(t, c.reason, e.Reason)
		})
	}
	require.EqualValues(t, 1, tb.Stats().FaultsHello)
	require.EqualValues(t, 1, tb.Stats().SaidNothing)
	require.NoError(t, good.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("ok")}))
	require.Equal(t, "ok", want(t, b.mails).body)
}

// A request of HTTP is answered in HTTP, with the owner of the port, with TLS and without, and the log has it (OPS-1).
func TestHTTPAtTheNodesPort(t *testing.T) {
	for name, protect := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			var log logstest.Text
			to := start(t, newRider(), func(c *Config) {
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				if protect {
					member(t, authority(t))(c)
				}
			})
			a, err := (&http.Client{Timeout: patience}).Get("http://" + to.Addr().String() + "/health/ready")
			require.NoError(t, err)
			defer a.Body.Close()
			text, err := io.ReadAll(a.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadRequest, a.StatusCode)
			require.Contains(t, string(text), "the port of a kith node, which speaks no HTTP")
			until(t, func() bool { return log.Count("connection fault") == 1 })
			require.Contains(t, log.String(), "HTTP")
		})
	}
}

// Connections that say nothing are bounded in number: one over the bound is closed at once.
func TestTooManySilentConnections(t *testing.T) {
	tb := start(t, newRider(), func(c *Config) { c.MaxPending = 2 })
	closed := make(chan struct{}, 3)
	for range 3 {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		defer nc.Close()
		go func() {
			_, _ = nc.Read(make([]byte, 1))
			closed <- struct{}{}
		}()
	}
	want(t, closed)
	require.EqualValues(t, 1, tb.Stats().OverLimit)
	require.Equal(t, 2, tb.Stats().Pending)
	tb.Close() // does not wait for the hello deadline
	want(t, closed)
	want(t, closed)
}

// Garbage after a good hello closes that connection only, counted; frames before it are delivered.
func TestGarbageFrames(t *testing.T) {
	b := newRider()
	frames := make(chan int, 10)
	b.onData = func(c *InConn, fs []byte) { c.Consumed(len(fs)); frames <- len(fs) }
	tb := start(t, b, func(c *Config) { c.MaxFrame = 8192 })
	good := wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x")})
	big := wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x"), Payload: make([]byte, 9000)})
	credit := wire.AppendFrame(nil, wire.KindCredit, 0, 0, wire.AppendCredit(nil, wire.Credit{Generation: 9}))
	inc := uint64(1000)
	for name, c := range map[string]struct {
		lane  wire.Lane
		bytes []byte
	}{
		"unknown kind":     {wire.LaneData, wire.AppendFrame(nil, 99, 0, 0, nil)},
		"control on data":  {wire.LaneData, wire.AppendFrame(nil, wire.KindStatus, 0, 0, nil)},
		"over the limit":   {wire.LaneData, big},
		"size below least": {wire.LaneData, []byte{3, 0, 0, 0, byte(wire.KindEnvelope), 0, 0, 0}},
		"split garbage":    {wire.LaneData, append(good[:len(good):len(good)], 0xff, 0xff, 0xff)},
		"data on control":  {wire.LaneControl, good},
		"hello again":      {wire.LaneControl, wire.AppendFrame(nil, wire.KindHello, 0, 0, nil)},
		"ack uncalled for": {wire.LaneControl, wire.AppendFrame(nil, wire.KindHeartbeatAck, 0, 0, make([]byte, 24))},
		"short heartbeat":  {wire.LaneControl, wire.AppendFrame(nil, wire.KindHeartbeat, 0, 0, make([]byte, 15))},
		"strange credit":   {wire.LaneControl, credit},
		"short credit":     {wire.LaneControl, credit[:9]},
	} {
		t.Run(name, func(t *testing.T) {
			inc++
			before := tb.Stats().FaultsFrames
			nc, err := net.Dial("tcp", tb.Addr().String())
			require.NoError(t, err)
			defer nc.Close()
			h := helloFrom(tb, peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: inc}, c.lane, 1)
			_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
			require.NoError(t, err)
			_ = nc.SetReadDeadline(time.Now().Add(patience))
			kind, _, err := readFrame(nc, hello.MaxAnswer)
			require.NoError(t, err)
			require.Equal(t, wire.KindHelloAck, kind)
			if c.lane == wire.LaneData {
				_, _ = nc.Write(good)
				require.Equal(t, len(good), want(t, frames))
			}
			_, _ = nc.Write(c.bytes)
			if name == "split garbage" {
				want(t, frames)
				_, _ = nc.Write([]byte{0xff, 0xff, 0xff, 0xff, 0xff})
			}
			if name == "short credit" { // a whole frame with a short body
				_, _ = nc.Write(wire.AppendFrame(nil, wire.KindCredit, 0, 0, make([]byte, 13)))
			}
			_, err = nc.Read(make([]byte, 1))
			require.Error(t, err, "closed")
			require.Equal(t, before+1, tb.Stats().FaultsFrames)
		})
	}
}

// Bytes that come back on a data connection, and anything but heartbeat answers on a control connection, break it.
func TestGarbageFromTheAcceptor(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	self := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 5}
	a := newRider()
	ta := start(t, a, nil)
	for _, lane := range []wire.Lane{wire.LaneControl, wire.LaneData} {
		if lane == wire.LaneControl {
			require.NoError(t, ta.Send(peer.Mail{To: self, Kind: wire.KindStatus}))
		} else {
			require.NoError(t, send(t, ta.Link(self), 0, 0, 1, nil))
		}
		nc, err := ln.Accept()
		require.NoError(t, err)
		_, body, err := readFrame(nc, hello.MaxFrame)
		require.NoError(t, err)
		_, _ = nc.Write(ackTo(t, body, self))
		_, _ = nc.Write(wire.AppendFrame(nil, wire.KindGossip, 0, 0, nil))
		d := want(t, a.downs)
		require.Equal(t, lane, d.lane)
		require.ErrorIs(t, d.err, ErrProtocol)
		nc.Close()
	}
	require.EqualValues(t, 2, ta.Stats().FaultsFrames)
}

// terms is one term of a configuration.
func terms(key, value string) []hello.Term {
	return []hello.Term{{Setting: hello.Setting{Key: key, Value: value}}}
}
