// Tests of the hello: its codec, the judgement, and the refusals as a peer meets them.

package transport

import (
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func exampleHello() hello {
	return hello{
		versions: wire.Spoken(), lane: wire.LaneData, number: 0, generation: 3, window: 1 << 20, clusterID: 0x1122,
		birth: 0x3344, name: "market", from: peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 0xabcd},
		to: peer.MustAddr("db.local:7355"), toInc: 0xef, settings: []Setting{{"shards", "100"}, {"max-frame", ""}},
	}
}

// helloFrom is a hello that tr accepts.
func helloFrom(tr *Transport, from peer.ID, lane wire.Lane, generation uint32) hello {
	return hello{versions: wire.Spoken(), lane: lane, generation: generation, window: 4096, name: "test", from: from,
		to: tr.Addr(), toInc: tr.Self().Inc}
}

// helloAfterVersion is exampleHello behind the versions and before the tail, in every version.
const helloAfterVersion = "01000003000000000010002211000000000000" + "4433000000000000066d61726b6574040a000001bb1c" +
	"cdab0000000000000108" + "64622e6c6f63616cbb1cef00000000000000020673686172647303313030096d61782d6672616d6500"

func TestHelloCodec(t *testing.T) {
	speaks := wire.Spoken()
	for golden, versions := range map[string]wire.Versions{
		"4b495448" + "0100" + helloAfterVersion:                 versionOne, // what version 1 wrote, byte for byte
		"4b495448" + "0200" + "0100" + helloAfterVersion + "00": {Newest: 2, Oldest: 1},
		"4b495448" + "0300" + "0100" + helloAfterVersion + "00": speaks,
		"4b495448" + "0300" + "0200" + helloAfterVersion + "00": {Newest: 3, Oldest: 2},
		"4b495448" + "0400" + "0200" + helloAfterVersion + "00": {Newest: 4, Oldest: 2},
	} {
		h := exampleHello()
		h.versions = versions
		b := appendHello(nil, &h)
		require.Equal(t, golden, hex.EncodeToString(b))
		got, err := parseHello(b, speaks)
		require.NoError(t, err)
		require.Equal(t, h, got)
		for i := range b {
			_, err := parseHello(b[:i], speaks)
			require.ErrorIs(t, err, wire.ErrTruncated, "cut at %d", i)
		}
		_, err = parseHello(append(b, 0), speaks)
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
	_, err := parseHello([]byte("HTTP/1.1"), speaks)
	require.ErrorIs(t, err, wire.ErrBadMagic)
}

// The tail of a hello, since version 3: what is not said is not there, what is not known is skipped, and what is cut or
// has another length than its field is refused.
func TestHelloTail(t *testing.T) {
	h := exampleHello()
	h.token, h.renews = token{1, 2, 15: 16}, 0x01020304
	b := appendHello(nil, &h)
	fields := "011001020000000000000000000000000010" + "020404030201"
	require.Equal(t, "4b495448"+"0300"+"0100"+helloAfterVersion+"18"+fields, hex.EncodeToString(b))
	got, err := parseHello(b, wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, h, got)
	for i := range b {
		_, err := parseHello(b[:i], wire.Spoken())
		require.Error(t, err, i)
	}
	tail, err := hex.DecodeString(fields)
	require.NoError(t, err)
	bare := exampleHello()
	with := func(tail []byte) []byte {
		b := appendHello(nil, &bare)
		return wire.AppendBytes(b[:len(b)-1:len(b)-1], tail)
	}
	for i := range tail {
		_, err := parseHello(with(tail[:i]), wire.Spoken())
		require.Equal(t, i == 0 || i == 18, err == nil, "cut at %d", i)
	}
	for _, bad := range [][]byte{{1, 0}, {1, 1, 7}, {2, 3, 1, 2, 3}, {2, 5, 1, 2, 3, 4, 5}, {9}, {9, 2, 0}} {
		_, err := parseHello(with(bad), wire.Spoken())
		require.Error(t, err, bad)
	}
	got, err = parseHello(with(append([]byte{9, 2, 0, 0}, tail...)), wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, h, got)
	h.versions = wire.Versions{Newest: 2, Oldest: 1} // which has no fields
	got, err = parseHello(appendHello(nil, &h), wire.Spoken())
	require.NoError(t, err)
	require.Zero(t, got.token)
	require.Zero(t, got.renews)
}

// What a later version puts behind the hello and its answer is skipped, up to a bound (CARD-3).
func TestTailsAreSkipped(t *testing.T) {
	h := exampleHello()
	h.versions = wire.Versions{Newest: wire.Version + 1, Oldest: wire.Version}
	b := appendHello(nil, &h)
	later := wire.AppendBytes(b[:len(b)-1:len(b)-1], make([]byte, maxTail))
	got, err := parseHello(later, wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, h, got)
	_, err = parseHello(wire.AppendBytes(b[:len(b)-1:len(b)-1], make([]byte, maxTail+1)), wire.Spoken())
	require.ErrorIs(t, err, wire.ErrTooLarge)
	a := ack{version: 2, from: peer.ID{Addr: peer.MustAddr("[::1]:9"), Inc: 4}, clusterID: 5, birth: 6}
	b = appendAck(nil, &a, wire.Spoken())
	back, err := parseAck(wire.AppendBytes(b[:len(b)-1], make([]byte, maxTail)), wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, a, back)
}

// Ranges of versions in a hello: none in common is told apart from nonsense, and names what the dialler speaks.
func TestHelloVersions(t *testing.T) {
	for _, c := range []struct {
		newest, oldest uint16
		speaks         wire.Versions
		err            error
	}{
		{3, 2, wire.Versions{Newest: 2, Oldest: 1}, nil},
		{2, 1, wire.Versions{Newest: 3, Oldest: 2}, nil},
		{4, 3, wire.Versions{Newest: 2, Oldest: 1}, wire.ErrBadWire},
		{2, 1, wire.Versions{Newest: 4, Oldest: 3}, wire.ErrBadWire},
		{2, 1, versionOne, nil},
		{2, 0, wire.Spoken(), wire.ErrBadValue},
		{2, 3, wire.Spoken(), wire.ErrBadValue},
	} {
		h := exampleHello()
		h.versions = wire.Versions{Newest: c.newest, Oldest: c.oldest}
		got, err := parseHello(appendHello(nil, &h), c.speaks)
		require.ErrorIs(t, err, c.err, "%+v", c)
		require.Equal(t, h.versions, got.versions)
	}
}

// The largest hello fits its bound.
func TestLargestHello(t *testing.T) {
	h := exampleHello()
	h.name = strings.Repeat("n", maxNameSize)
	h.from.Addr = peer.MustAddr(strings.Repeat("h", peer.MaxHostSize) + ":1")
	h.to = h.from.Addr
	h.settings = make([]Setting, MaxSettings)
	for i := range h.settings {
		h.settings[i] = Setting{strings.Repeat("k", MaxSettingSize), strings.Repeat("v", MaxSettingSize)}
	}
	b := appendHello(nil, &h)
	require.LessOrEqual(t, len(b)+wire.HeaderSize, maxHelloFrame)
	_, err := parseHello(b, wire.Spoken())
	require.NoError(t, err)
}

func TestAnswerCodecs(t *testing.T) {
	const same = "06000000000000000000000000000000010009000400000000000000" + "0500000000000000" + "0600000000000000"
	var b []byte
	for golden, asked := range map[string]wire.Versions{same: versionOne, same + "0200" + "00": {Newest: 3, Oldest: 2}} {
		a := ack{min(asked.Newest, 2), peer.ID{Addr: peer.MustAddr("[::1]:9"), Inc: 4}, 5, 6}
		b = appendAck(nil, &a, asked)
		require.Equal(t, golden, hex.EncodeToString(b))
		got, err := parseAck(b, asked)
		require.NoError(t, err)
		require.Equal(t, a, got)
		for i := range b {
			_, err := parseAck(b[:i], asked)
			require.Error(t, err)
		}
		_, err = parseAck(append(b, 0), asked)
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
	for _, chosen := range []uint16{0, 1, 4} { // not what was offered
		b = appendAck(nil, &ack{chosen, peer.ID{Addr: peer.MustAddr("[::1]:9"), Inc: 4}, 5, 6}, wire.Spoken())
		_, err := parseAck(b, wire.Versions{Newest: 3, Oldest: 2})
		require.ErrorIs(t, err, wire.ErrBadValue)
	}
	e := &RefusedError{Reason: RefusedName, Key: "cluster name", Ours: "a", Theirs: "b"}
	b = appendRefusal(nil, e)
	require.Equal(t, "030c636c7573746572206e616d6501610162", hex.EncodeToString(b))
	back, err := parseRefusal(b)
	require.NoError(t, err)
	require.Equal(t, e, back)
	for i := range b {
		_, err := parseRefusal(b[:i])
		require.Error(t, err)
	}
	b = appendRefusal(nil, &RefusedError{Reason: 200, Key: strings.Repeat("x", 1000)})
	require.Less(t, len(b), maxAnswerFrame-wire.HeaderSize)
	back, err = parseRefusal(b)
	require.NoError(t, err, "a reason of a later version")
	require.True(t, back.Reason.ForGood())
}

func FuzzParseHello(f *testing.F) {
	h := exampleHello()
	f.Add(appendHello(nil, &h))
	f.Add(appendHello(nil, &h)[:40])
	h.token, h.renews = token{1, 15: 2}, 3
	f.Add(appendHello(nil, &h))
	h.versions = versionOne
	f.Add(appendHello(nil, &h))
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		h, err := parseHello(b, wire.Spoken())
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(h.settings), MaxSettings)
		if h.versions.Newest < tailSince {
			require.Zero(t, h.token)
		}
		again, err := parseHello(appendHello(nil, &h), wire.Spoken())
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

func FuzzParseAnswer(f *testing.F) {
	a := ack{1, peer.ID{Addr: peer.MustAddr("a:1"), Inc: 1}, 2, 3}
	f.Add(appendAck(nil, &a, versionOne))
	f.Add(appendAck(nil, &a, wire.Spoken()))
	f.Add(appendRefusal(nil, &RefusedError{Reason: RefusedCluster, Key: "k", Ours: "1", Theirs: "2"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		for _, asked := range []wire.Versions{versionOne, wire.Spoken()} {
			if a, err := parseAck(b, asked); err == nil {
				again, err := parseAck(appendAck(nil, &a, asked), asked)
				require.NoError(t, err)
				require.Equal(t, a, again)
			}
		}
		if e, err := parseRefusal(b); err == nil {
			again, err := parseRefusal(appendRefusal(nil, e))
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
	})
}

func TestJudge(t *testing.T) {
	self := peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 9}
	base := acceptor{self: self, name: "market", clusterID: 0x1122, settings: []Setting{{"shards", "100"}, {"more", "x"}},
		window: 1 << 20}
	for _, c := range []struct {
		name         string
		change       func(a *acceptor, h *hello)
		reason       Refusal
		ours, theirs string
	}{
		{"fine", func(*acceptor, *hello) {}, RefusedNone, "", ""},
		{"joiner", func(_ *acceptor, h *hello) { h.clusterID = 0 }, RefusedNone, "", ""},
		{"contact", func(a *acceptor, h *hello) { a.clusterID, h.toInc = 0, 0 }, RefusedNone, "", ""},
		{"smaller window", func(_ *acceptor, h *hello) { h.window = 4096 }, RefusedNone, "", ""},
		{"closing", func(a *acceptor, _ *hello) { a.closing = true }, RefusedGoingDown, "", ""},
		{"name", func(_ *acceptor, h *hello) { h.name = "shop" }, RefusedName, "shop", "market"},
		{"cluster", func(_ *acceptor, h *hello) { h.clusterID = 7 }, RefusedCluster, "7", "1122"},
		{"birth told", func(a *acceptor, h *hello) { h.clusterID, a.birth = 7, 0x33 }, RefusedCluster, "7", "1122/33"},
		{"self", func(_ *acceptor, h *hello) { h.from = self }, RefusedSelf, "", ""},
		{"our address", func(_ *acceptor, h *hello) { h.from.Addr = self.Addr }, RefusedSelf, "abcd", "9"},
		{"incarnation", func(_ *acceptor, h *hello) { h.toInc = 8 }, RefusedIncarnation, "8", "9"},
		{"setting", func(a *acceptor, _ *hello) { a.settings[0].Value = "50" }, RefusedSetting, "100", "50"},
		{"window", func(a *acceptor, _ *hello) { a.window = 4096 }, RefusedSetting, "1048576", "4096"},
	} {
		a, h := base, exampleHello()
		a.settings = append([]Setting(nil), base.settings...)
		h.toInc = self.Inc
		c.change(&a, &h)
		got := a.judge(&h)
		if c.reason == RefusedNone {
			require.Nil(t, got, c.name)
			continue
		}
		require.NotNil(t, got, c.name)
		require.Equal(t, []any{c.reason, c.ours, c.theirs}, []any{got.Reason, got.Ours, got.Theirs}, c.name)
	}
}

// Each refusal as the dialler meets it: typed, naming both values unless one is for members only, counted at the
// acceptor, told once (CARD-3, SEC-3).
func TestRefusalsOverSockets(t *testing.T) {
	tb := start(t, newRider(), func(c *Config) {
		c.ClusterID, c.Birth, c.Settings = 5, 5, []Setting{{"shards", "100"}}
	})
	for name, c := range map[string]struct {
		change func(*Config)
		text   string
		id     uint64
	}{
		"cluster-name": {func(c *Config) { c.Name = "other" }, `ours "other", theirs "another"`, tb.Self().Inc},
		"cluster-id":   {func(c *Config) { c.ClusterID = 6 }, `ours "6", theirs "5/5"`, tb.Self().Inc},
		"setting": {func(c *Config) { c.Settings = []Setting{{"shards", "9"}} },
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
	body := appendHello(nil, &h)
	later := append([]byte(nil), body...)
	later[4], later[6] = 9, 8
	for name, c := range map[string]struct {
		bytes  []byte
		reason Refusal // none: closed without an answer
	}{
		"http":        {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), RefusedMagic},
		"other frame": {wire.AppendFrame(nil, wire.KindStatus, 0, 0, nil), RefusedMagic},
		"magic":       {wire.AppendFrame(nil, wire.KindHello, 0, 0, []byte("HTIK.....")), RefusedMagic},
		"version":     {wire.AppendFrame(nil, wire.KindHello, 0, 0, later), RefusedVersion},
		"malformed":   {wire.AppendFrame(nil, wire.KindHello, 0, 0, body[:30]), RefusedMalformed},
		"too long":    {wire.AppendFrame(nil, wire.KindHello, 0, 0, make([]byte, maxHelloFrame)), RefusedMagic},
		"half":        {wire.AppendFrame(nil, wire.KindHello, 0, 0, body)[:30], RefusedNone},
		"silence":     {nil, RefusedNone},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", tb.Addr().String())
			require.NoError(t, err)
			defer nc.Close()
			_, _ = nc.Write(c.bytes)
			_ = nc.SetReadDeadline(time.Now().Add(patience))
			kind, answer, err := readFrame(nc, maxAnswerFrame)
			if c.reason == RefusedNone {
				require.Error(t, err)
				return
			}
			if name == "too long" && err != nil {
				return // its unread bytes may reset the connection before the answer is read
			}
			require.NoError(t, err)
			require.Equal(t, wire.KindHelloRefuse, kind)
			e, err := parseRefusal(answer)
			require.NoError(t, err)
			require.Equal(t, c.reason, e.Reason)
		})
	}
	require.EqualValues(t, 1, tb.Stats().FaultsHello)
	require.EqualValues(t, 1, tb.Stats().SaidNothing)
	require.NoError(t, good.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("ok")}))
	require.Equal(t, "ok", want(t, b.mails).body)
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
	require.EqualValues(t, 1, tb.Stats().TooMany)
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
			_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, appendHello(nil, &h)))
			require.NoError(t, err)
			_ = nc.SetReadDeadline(time.Now().Add(patience))
			kind, _, err := readFrame(nc, maxAnswerFrame)
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
			if name == "short credit" { // a whole frame whose body is short
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
		_, body, err := readFrame(nc, maxHelloFrame)
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
