// Tests of the hello: its codec and the judgement.

package hello

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func exampleHello() Hello {
	return Hello{
		Versions: wire.Spoken(), Lane: wire.LaneData, Number: 0, Generation: 3, Window: 1 << 20, ClusterID: 0x1122,
		Birth: 0x3344, Name: "market", From: peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 0xabcd},
		To: peer.MustAddr("db.local:7355"), ToInc: 0xef, Settings: []Setting{{"shards", "100"}, {"max-frame", ""}},
	}
}

// helloAfterVersion is exampleHello behind the versions and before the tail, in every version.
const helloAfterVersion = "01000003000000000010002211000000000000" + "4433000000000000066d61726b6574040a000001bb1c" +
	"cdab0000000000000108" + "64622e6c6f63616cbb1cef00000000000000020673686172647303313030096d61782d6672616d6500"

func TestHelloCodec(t *testing.T) {
	speaks := wire.Spoken()
	for golden, versions := range map[string]wire.Versions{
		"4b495448" + "0100" + helloAfterVersion:                 VersionOne, // what version 1 wrote, byte for byte
		"4b495448" + "0200" + "0100" + helloAfterVersion + "00": {Newest: 2, Oldest: 1},
		"4b495448" + "0c00" + "0100" + helloAfterVersion + "00": speaks,
		"4b495448" + "0900" + "0100" + helloAfterVersion + "00": {Newest: 9, Oldest: 1},
		"4b495448" + "0600" + "0100" + helloAfterVersion + "00": {Newest: 6, Oldest: 1},
		"4b495448" + "0500" + "0100" + helloAfterVersion + "00": {Newest: 5, Oldest: 1},
		"4b495448" + "0400" + "0100" + helloAfterVersion + "00": {Newest: 4, Oldest: 1},
		"4b495448" + "0300" + "0100" + helloAfterVersion + "00": {Newest: 3, Oldest: 1},
		"4b495448" + "0300" + "0200" + helloAfterVersion + "00": {Newest: 3, Oldest: 2},
		"4b495448" + "0400" + "0200" + helloAfterVersion + "00": {Newest: 4, Oldest: 2},
	} {
		h := exampleHello()
		h.Versions = versions
		b := Append(nil, &h)
		require.Equal(t, golden, hex.EncodeToString(b))
		got, err := Parse(b, speaks)
		require.NoError(t, err)
		require.Equal(t, h, got)
		for i := range b {
			_, err := Parse(b[:i], speaks)
			require.ErrorIs(t, err, wire.ErrTruncated, "cut at %d", i)
		}
		_, err = Parse(append(b, 0), speaks)
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
	_, err := Parse([]byte("HTTP/1.1"), speaks)
	require.ErrorIs(t, err, wire.ErrBadMagic)
}

// The tail of a hello, since version 3: what is not said is not there, what is not known is skipped, and what is cut or
// has another length than its field is refused.
func TestHelloTail(t *testing.T) {
	h := exampleHello()
	h.Token, h.Renews = Token{1, 2, 15: 16}, 0x01020304
	b := Append(nil, &h)
	fields := "011001020000000000000000000000000010" + "020404030201"
	require.Equal(t, "4b495448"+"0c00"+"0100"+helloAfterVersion+"18"+fields, hex.EncodeToString(b))
	got, err := Parse(b, wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, h, got)
	for i := range b {
		_, err := Parse(b[:i], wire.Spoken())
		require.Error(t, err, i)
	}
	tail, err := hex.DecodeString(fields)
	require.NoError(t, err)
	bare := exampleHello()
	with := func(tail []byte) []byte {
		b := Append(nil, &bare)
		return wire.AppendBytes(b[:len(b)-1:len(b)-1], tail)
	}
	for i := range tail {
		_, err := Parse(with(tail[:i]), wire.Spoken())
		require.Equal(t, i == 0 || i == 18, err == nil, "cut at %d", i)
	}
	for _, bad := range [][]byte{{1, 0}, {1, 1, 7}, {2, 3, 1, 2, 3}, {2, 5, 1, 2, 3, 4, 5}, {9}, {9, 2, 0}} {
		_, err := Parse(with(bad), wire.Spoken())
		require.Error(t, err, bad)
	}
	got, err = Parse(with(append([]byte{9, 2, 0, 0}, tail...)), wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, h, got)
	h.Versions = wire.Versions{Newest: 2, Oldest: 1} // which has no fields
	got, err = Parse(Append(nil, &h), wire.Spoken())
	require.NoError(t, err)
	require.Zero(t, got.Token)
	require.Zero(t, got.Renews)
}

// What a later version puts behind the hello and its answer is skipped, up to a bound (CARD-3).
func TestTailsAreSkipped(t *testing.T) {
	h := exampleHello()
	h.Versions = wire.Versions{Newest: wire.Version + 1, Oldest: wire.Version}
	b := Append(nil, &h)
	later := wire.AppendBytes(b[:len(b)-1:len(b)-1], make([]byte, maxTail))
	got, err := Parse(later, wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, h, got)
	_, err = Parse(wire.AppendBytes(b[:len(b)-1:len(b)-1], make([]byte, maxTail+1)), wire.Spoken())
	require.ErrorIs(t, err, wire.ErrTooLarge)
	a := Ack{Version: 2, From: peer.ID{Addr: peer.MustAddr("[::1]:9"), Inc: 4}, ClusterID: 5, Birth: 6}
	b = AppendAck(nil, &a, wire.Spoken())
	back, err := ParseAck(wire.AppendBytes(b[:len(b)-1], make([]byte, maxTail)), wire.Spoken())
	require.NoError(t, err)
	require.Equal(t, a, back)
}

// Ranges of versions in a hello: none in common is distinguished from nonsense, and names what the dialler speaks.
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
		{2, 1, VersionOne, nil},
		{2, 0, wire.Spoken(), wire.ErrBadValue},
		{2, 3, wire.Spoken(), wire.ErrBadValue},
	} {
		h := exampleHello()
		h.Versions = wire.Versions{Newest: c.newest, Oldest: c.oldest}
		got, err := Parse(Append(nil, &h), c.speaks)
		require.ErrorIs(t, err, c.err, "%+v", c)
		require.Equal(t, h.Versions, got.Versions)
	}
}

// The largest hello fits its bound.
func TestLargestHello(t *testing.T) {
	h := exampleHello()
	h.Name = strings.Repeat("n", MaxNameSize)
	h.From.Addr = peer.MustAddr(strings.Repeat("h", peer.MaxHostSize) + ":1")
	h.To = h.From.Addr
	h.Settings = make([]Setting, MaxSettings)
	for i := range h.Settings {
		h.Settings[i] = Setting{strings.Repeat("k", MaxSettingSize), strings.Repeat("v", MaxSettingSize)}
	}
	b := Append(nil, &h)
	require.LessOrEqual(t, len(b)+wire.HeaderSize, MaxFrame)
	_, err := Parse(b, wire.Spoken())
	require.NoError(t, err)
}
func TestAnswerCodecs(t *testing.T) {
	const same = "06000000000000000000000000000000010009000400000000000000" + "0500000000000000" + "0600000000000000"
	var b []byte
	for golden, asked := range map[string]wire.Versions{same: VersionOne, same + "0200" + "00": {Newest: 3, Oldest: 2}} {
		a := Ack{min(asked.Newest, 2), peer.ID{Addr: peer.MustAddr("[::1]:9"), Inc: 4}, 5, 6}
		b = AppendAck(nil, &a, asked)
		require.Equal(t, golden, hex.EncodeToString(b))
		got, err := ParseAck(b, asked)
		require.NoError(t, err)
		require.Equal(t, a, got)
		for i := range b {
			_, err := ParseAck(b[:i], asked)
			require.Error(t, err)
		}
		_, err = ParseAck(append(b, 0), asked)
		require.ErrorIs(t, err, wire.ErrTrailing)
	}
	for _, chosen := range []uint16{0, 1, 4} { // not what was offered
		b = AppendAck(nil, &Ack{chosen, peer.ID{Addr: peer.MustAddr("[::1]:9"), Inc: 4}, 5, 6}, wire.Spoken())
		_, err := ParseAck(b, wire.Versions{Newest: 3, Oldest: 2})
		require.ErrorIs(t, err, wire.ErrBadValue)
	}
	e := &RefusedError{Reason: RefusedName, Key: "cluster name", Ours: "a", Theirs: "b"}
	b = AppendRefusal(nil, e)
	require.Equal(t, "030c636c7573746572206e616d6501610162", hex.EncodeToString(b))
	back, err := ParseRefusal(b)
	require.NoError(t, err)
	require.Equal(t, e, back)
	for i := range b {
		_, err := ParseRefusal(b[:i])
		require.Error(t, err)
	}
	b = AppendRefusal(nil, &RefusedError{Reason: 200, Key: strings.Repeat("x", 1000)})
	require.Less(t, len(b), MaxAnswer-wire.HeaderSize)
	back, err = ParseRefusal(b)
	require.NoError(t, err, "a reason of a later version")
	require.True(t, back.Reason.ForGood())
}
func FuzzParseHello(f *testing.F) {
	h := exampleHello()
	f.Add(Append(nil, &h))
	f.Add(Append(nil, &h)[:40])
	h.Token, h.Renews = Token{1, 15: 2}, 3
	f.Add(Append(nil, &h))
	h.Versions = VersionOne
	f.Add(Append(nil, &h))
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		h, err := Parse(b, wire.Spoken())
		heard, refused := Hear(wire.KindHello, b, wire.Spoken())
		require.Equal(t, err != nil || h.Number >= MaxConnections, refused != nil)
		require.Equal(t, h, heard)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(h.Settings), MaxSettings)
		if h.Versions.Newest < TailSince {
			require.Zero(t, h.Token)
		}
		again, err := Parse(Append(nil, &h), wire.Spoken())
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}
func FuzzParseAnswer(f *testing.F) {
	a := Ack{1, peer.ID{Addr: peer.MustAddr("a:1"), Inc: 1}, 2, 3}
	f.Add(AppendAck(nil, &a, VersionOne))
	f.Add(AppendAck(nil, &a, wire.Spoken()))
	f.Add(AppendRefusal(nil, &RefusedError{Reason: RefusedCluster, Key: "k", Ours: "1", Theirs: "2"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		for _, asked := range []wire.Versions{VersionOne, wire.Spoken()} {
			if a, err := ParseAck(b, asked); err == nil {
				again, err := ParseAck(AppendAck(nil, &a, asked), asked)
				require.NoError(t, err)
				require.Equal(t, a, again)
			}
		}
		h := exampleHello()
		for _, kind := range []wire.Kind{wire.KindHelloAck, wire.KindHelloRefuse} {
			if a, err := h.Answer(kind, b); err == nil {
				require.Equal(t, h.ToInc, a.From.Inc)
			}
		}
		if e, err := ParseRefusal(b); err == nil {
			e.Standing()
			e.Cluster()
			again, err := ParseRefusal(AppendRefusal(nil, e))
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
	})
}

// Each difference between a hello and its acceptor is refused for its own reason, naming both values (CARD-3).
func TestJudge(t *testing.T) {
	self := peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 9}
	base := Acceptor{Self: self, Name: "market", ClusterID: 0x1122,
		Terms:  []Term{{Setting: Setting{"shards", "100"}}, {Setting: Setting{"more", "x"}}},
		Window: 1 << 20}
	for _, c := range []struct {
		name         string
		change       func(a *Acceptor, h *Hello)
		reason       Refusal
		ours, theirs string
	}{
		{"fine", func(*Acceptor, *Hello) {}, RefusedNone, "", ""},
		{"joiner", func(_ *Acceptor, h *Hello) { h.ClusterID = 0 }, RefusedNone, "", ""},
		{"contact", func(a *Acceptor, h *Hello) { a.ClusterID, h.ToInc = 0, 0 }, RefusedNone, "", ""},
		{"smaller window", func(_ *Acceptor, h *Hello) { h.Window = 4096 }, RefusedNone, "", ""},
		{"closing", func(a *Acceptor, _ *Hello) { a.Closing = true }, RefusedGoingDown, "", ""},
		{"name", func(_ *Acceptor, h *Hello) { h.Name = "shop" }, RefusedName, "shop", "market"},
		{"cluster", func(_ *Acceptor, h *Hello) { h.ClusterID = 7 }, RefusedCluster, "7", "1122"},
		{"birth told", func(a *Acceptor, h *Hello) { h.ClusterID, a.Birth = 7, 0x33 }, RefusedCluster, "7", "1122/33"},
		{"self", func(_ *Acceptor, h *Hello) { h.From = self }, RefusedSelf, "", ""},
		{"our address", func(_ *Acceptor, h *Hello) { h.From.Addr = self.Addr }, RefusedSelf, "abcd", "9"},
		{"incarnation", func(_ *Acceptor, h *Hello) { h.ToInc = 8 }, RefusedIncarnation, "8", "9"},
		{"setting", func(a *Acceptor, _ *Hello) { a.Terms[0].Value = "50" }, RefusedSetting, "100", "50"},
		{"window", func(a *Acceptor, _ *Hello) { a.Window = 4096 }, RefusedSetting, "1048576", "4096"},
	} {
		a, h := base, exampleHello()
		a.Terms = append([]Term(nil), base.Terms...)
		h.ToInc = self.Inc
		c.change(&a, &h)
		got := a.Judge(&h)
		if c.reason == RefusedNone {
			require.Nil(t, got, c.name)
			continue
		}
		require.NotNil(t, got, c.name)
		require.Equal(t, []any{c.reason, c.ours, c.theirs}, []any{got.Reason, got.Ours, got.Theirs}, c.name)
	}
}
