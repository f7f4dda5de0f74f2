// Tests of what an acceptor makes of a first frame, and a dialler of the answer (CARD-3, SEC-3).

package hello

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Each first frame that is not let in has one reason; what could be understood of a hello is understood.
func TestHear(t *testing.T) {
	h := exampleHello()
	good := Append(nil, &h)
	got, refused := Hear(wire.KindHello, good, wire.Spoken())
	require.Nil(t, refused)
	require.Equal(t, h, got)

	later := h
	later.Versions = wire.Versions{Newest: 14, Oldest: 13}
	numbered := h
	numbered.Number = MaxConnections
	for name, c := range map[string]struct {
		kind         wire.Kind
		body         []byte
		reason       Refusal
		ours, theirs string
	}{
		"another frame": {wire.KindStatus, good, RefusedMagic, "", ""},
		"magic":         {wire.KindHello, []byte("HTTP/1.1"), RefusedMagic, "", ""},
		"version":       {wire.KindHello, Append(nil, &later), RefusedVersion, "13-14", "1-12"},
		"number":        {wire.KindHello, Append(nil, &numbered), RefusedMalformed, "16", "below 16"},
	} {
		_, refused := Hear(c.kind, c.body, wire.Spoken())
		require.NotNil(t, refused, name)
		require.Equal(t, []any{c.reason, c.ours, c.theirs}, []any{refused.Reason, refused.Ours, refused.Theirs}, name)
	}
	for i := len(Magic); i < len(good); i++ {
		_, refused := Hear(wire.KindHello, good[:i], wire.Spoken())
		require.Equal(t, RefusedMalformed, refused.Reason, "cut at %d", i)
	}
	got, _ = Hear(wire.KindHello, Append(nil, &later), wire.Spoken())
	require.Equal(t, later.Versions, got.Versions)
}

// A dialler takes an answer for what it is, and refuses an incarnation that it did not mean.
func TestAnswer(t *testing.T) {
	h := exampleHello()
	by := Acceptor{Self: peer.ID{Addr: h.To, Inc: h.ToInc}, ClusterID: 5, Birth: 6,
		Speaks: wire.Versions{Newest: 2, Oldest: 1}}
	said := by.Answer(&h)
	require.Equal(t, Ack{Version: 2, From: by.Self, ClusterID: 5, Birth: 6}, said)
	a, err := h.Answer(wire.KindHelloAck, AppendAck(nil, &said, h.Versions))
	require.NoError(t, err)
	require.Equal(t, said, a)

	by.Self.Inc++
	said = by.Answer(&h)
	var refused *RefusedError
	_, err = h.Answer(wire.KindHelloAck, AppendAck(nil, &said, h.Versions))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, RefusedError{Peer: peer.ID{Addr: h.To, Inc: h.ToInc}, Reason: RefusedIncarnation,
		Key: "incarnation at db.local:7355", Ours: "ef", Theirs: "f0"}, *refused)
	whoever := h
	whoever.ToInc = 0
	_, err = whoever.Answer(wire.KindHelloAck, AppendAck(nil, &said, h.Versions))
	require.NoError(t, err)

	_, err = h.Answer(wire.KindHelloRefuse, AppendRefusal(nil, &RefusedError{Reason: RefusedBusy}))
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, route.ErrPeerLost)
	require.Equal(t, RefusedError{Peer: peer.ID{Addr: h.To, Inc: h.ToInc}, Reason: RefusedBusy}, *refused)
	_, err = h.Answer(wire.KindStatus, nil)
	require.ErrorIs(t, err, ErrNoAnswer)
	for _, kind := range []wire.Kind{wire.KindHelloAck, wire.KindHelloRefuse} {
		_, err = h.Answer(kind, nil)
		require.ErrorIs(t, err, wire.ErrTruncated)
	}
}

// Only a refusal by one that speaks version 1 and nothing else is worth another hello, and only on a lane that there
// was and by one that speaks version 1 too.
func TestOnlyOne(t *testing.T) {
	all := wire.Versions{Newest: 3, Oldest: 1}
	refusal := func(theirs string) error { return &RefusedError{Reason: RefusedVersion, Theirs: theirs} }
	require.True(t, OnlyOne(refusal("1"), all, wire.LaneData))
	require.False(t, OnlyOne(refusal("1-2"), all, wire.LaneData))
	require.False(t, OnlyOne(refusal("nothing"), all, wire.LaneData))
	require.False(t, OnlyOne(refusal("1"), wire.Versions{Newest: 3, Oldest: 2}, wire.LaneData))
	require.False(t, OnlyOne(refusal("1"), all, wire.LaneBulk))
	require.False(t, OnlyOne(&RefusedError{Reason: RefusedName, Theirs: "1"}, all, wire.LaneData))
	require.False(t, OnlyOne(errors.New("reset"), all, wire.LaneData))
}
