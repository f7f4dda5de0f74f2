// Tests of the frames: golden bytes, truncation at every byte, any bytes from a member.

package replica

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

var some = peer.ID{Addr: peer.MustAddr("127.0.0.1:7355"), Inc: 0x0102030405060708}

// golden are bodies as a node of wire version 8 writes them. They never change.
func golden() map[wire.Kind][2]string {
	const name, who = "016b", "047f000001bb1c0807060504030201"
	h := held{{some, 3}}
	sums := [buckets]uint64{1: 2}
	return map[wire.Kind][2]string{
		wire.KindReplicaDigest: {hex.EncodeToString(wire.AppendU64(nil, 9)), "0900000000000000"},
		wire.KindReplicaSums: {hex.EncodeToString(appendSums(nil, &sums))[:64],
			"0000000000000000" + "0200000000000000" + "0000000000000000" + "0000000000000000"},
		wire.KindReplicaHeld: {hex.EncodeToString(appendHeldFrame(nil, &heldFrame{7, wantMissing | isAnswer,
			[]keyHeld{{"k", h}}})), "0700000000000000" + "09" + "01" + name + "01" + who + "03"},
		wire.KindReplicaDeltas: {hex.EncodeToString(appendKeyDeltas(wire.AppendU64(nil, 7), &keyDeltas{"k", "set",
			[]delta{{some, 2, 3, []byte{0xaa}}}})), "0700000000000000" + name + "03736574" + "01" + who + "02" + "01" + "01aa"},
		wire.KindReplicaPiece: {hex.EncodeToString(appendPiece(nil, &piece{7, 8, "k", "set", 300, 2, []byte{0xaa}})),
			"0700000000000000" + "0800000000000000" + name + "03736574" + "ac02" + "02" + "aa"},
		wire.KindReplicaNext: {hex.EncodeToString(appendNext(nil, 8, 300)), "0800000000000000" + "ac02"},
	}
}

func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	m := New(id(0), rand.New(rand.NewPCG(1, 1)))
	m.members = peer.SetOf(id(0), id(1))
	for kind, g := range golden() {
		require.Equal(t, g[1], g[0], kind)
		body, err := hex.DecodeString(g[1])
		require.NoError(t, err)
		if kind == wire.KindReplicaSums {
			body = append(body, make([]byte, 8*buckets-len(body))...)
		}
		require.NoError(t, m.Handle(1, 1, id(1), kind, body), kind)
		for n := range body {
			if kind == wire.KindReplicaDeltas && n == 8 {
				continue // no key
			}
			require.Error(t, m.Handle(1, 1, id(1), kind, body[:n]), "%s of %d bytes", kind, n)
		}
		require.Error(t, m.Handle(1, 1, id(1), kind, append(body, make([]byte, maxFrame)...)), kind)
	}
	require.Error(t, m.Handle(1, 1, id(1), wire.KindStatus, nil), "no kind of this machine")
}

// FuzzHandle: whatever a member sends, the machine goes on, and allocates in proportion.
func FuzzHandle(f *testing.F) {
	for kind, g := range golden() {
		body, err := hex.DecodeString(g[1])
		require.NoError(f, err)
		f.Add(uint8(kind-wire.KindReplicaDigest), body)
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		m := New(id(0), rand.New(rand.NewPCG(1, 1)))
		m.members, m.live = peer.SetOf(id(0), id(1)), []peer.ID{id(1)}
		require.NoError(t, m.Do(1, OpenCommand{"k", tallies}))
		require.NoError(t, m.Do(1, UpdateCommand{"k", plus(0), All, 7}))
		before := spent.Bytes()
		_ = m.Handle(time.Second, 1, id(1), wire.KindReplicaDigest+wire.Kind(kind%6), body)
		require.Less(t, spent.Bytes()-before, uint64(1<<20+512*len(body)))
		m.Tick(2 * time.Second)
		var e Effects
		m.Drain(&e)
		require.EqualValues(t, 1, m.keys["k"].held.of(id(0)), "nobody else counts for this node")
	})
}
