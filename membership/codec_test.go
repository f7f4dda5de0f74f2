// Tests of the bodies: golden bytes, truncation at every byte, hostile values, bounded allocation, fuzzing (GOS-8,
// CARD-4).

package membership

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// bodies returns one valid body of each kind for a machine of the given identity and cluster.
func bodies(to, clusterID uint64) map[wire.Kind][]byte {
	e := envelope{to, clusterID}
	seen := gossip.NewSeen(3)
	seen.Add(1)
	return map[wire.Kind][]byte{
		wire.KindJoinProbe:    wire.AppendU64(nil, 7),
		wire.KindJoinProbeAck: appendProbeAck(nil, probeAckBody{to, 7, clusterID, 9, 0, []Setting{{"k", "v"}}}),
		wire.KindJoinProbeNak: wire.AppendU64(wire.AppendU64(nil, to), 7),
		wire.KindJoin:         appendJoin(nil, joinBody{7, 0, ip(9), []string{"a", "b"}, "1.0", []Setting{{"k", "v"}}, 0}),
		wire.KindWelcome:      plainBody(to, 7, sample()),
		wire.KindJoinRefused:  appendRefused(nil, refusedBody{to, 7, refuseBusy, "why"}),
		wire.KindStatus:       appendStatus(nil, statusBody{e, 3, 4}),
		wire.KindVersion:      appendVersion(nil, versionBody{e, 3, false, gossip.Clock{{ID: ip(1), N: 300}}}),
		wire.KindSeen:         appendSeenBody(nil, seenBody{e, 3, true, seen}),
		wire.KindGossip:       plainBody(to, clusterID, sample()),
		wire.KindExitDone:     appendEnvelope(nil, e),
		wire.KindDelta:        sampleDelta(to, clusterID),
		wire.KindFormAsk:      appendFormAsk(nil, formAskBody{7, 3, true, true}),
		wire.KindFormAnswer: appendFormAnswer(nil, formAnswerBody{to, 7, 3, true,
			Record{ClusterID: clusterID, Birth: 9, Highest: 10, Counts: true, Others: []peer.Addr{addr(2), addr(3)}, More: 1}}),
		wire.KindRemovedNote: appendNote(nil, noteBody{e, members.Tombstone{Last: cluster.Down, Cause: cluster.CauseResolver,
			By: ip(2)}, 1500, 3,
			ip(1)}),
		wire.KindHeartbeat:    wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 1, Sent: 2}),
		wire.KindHeartbeatAck: wire.AppendHeartbeatAck(nil, wire.HeartbeatAck{Seq: 1, Sent: 2, StepAge: 3}),
	}
}

func TestMessageGoldenBytes(t *testing.T) {
	const to, cluster = "0600000000000000", "1100000000000000"
	golden := map[wire.Kind]string{
		wire.KindJoinProbe: "0700000000000000",
		wire.KindJoinProbeAck: to + "0700000000000000" + cluster + "0900000000000000" + "0000000000000000" +
			"01" + "016b0176",
		wire.KindJoinProbeNak: to + "0700000000000000",
		wire.KindJoin: "0700000000000000" + "0000000000000000" + "040a000009bb1c0900000000000000" +
			"0201610162" + "03312e30" + "01" + "016b0176",
		wire.KindWelcome:     to + "0700000000000000" + goldenSeen + "00" + goldenState,
		wire.KindJoinRefused: to + "0700000000000000" + "01" + "03776879",
		wire.KindStatus:      to + cluster + "0300000000000000" + "0400000000000000",
		wire.KindVersion:     to + cluster + "0300000000000000" + "00" + "01040a000001bb1c0100000000000000ac02",
		wire.KindSeen:        to + cluster + "0300000000000000" + "01" + "0302",
		wire.KindGossip:      to + cluster + goldenSeen + "00" + goldenState,
		wire.KindExitDone:    to + cluster,
		wire.KindDelta: to + cluster + goldenDigest + "a93b0027ebb6d1f5" + "0301" + // base, result, seen
			goldenChanges,
		wire.KindFormAsk: "0700000000000000" + "0300000000000000" + "03",
		wire.KindFormAnswer: to + "0700000000000000" + "0300000000000000" + "03" + cluster + "0900000000000000" +
			"0a00000000000000" + "01" + "02" + "040a000002bb1c" + "040a000003bb1c",
		wire.KindRemovedNote: to + cluster + "04" + "dc05000000000000" + "03000000" + "040a000001bb1c0100000000000000" +
			"03" + "040a000002bb1c0200000000000000",
	}
	for kind, want := range golden {
		require.Equal(t, want, hex.EncodeToString(bodies(6, 0x11)[kind]), "%s", kind)
	}
	require.LessOrEqual(t, len(bodies(6, 0x11)[wire.KindStatus]), 64)
}

// asMember returns a machine that is a member of cluster 0x11 and holds the sample state.
func asMember() *Machine {
	m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
	_ = m.Do(0, JoinCommand{})
	m.Drain(&Effects{})
	s := sample()
	s.Birth = 0x22
	m.install(s, false)
	m.dirty = false
	return m
}

// Every body cut short, and every body with a byte too many, is an error that names its kind, and changes nothing.
func TestBadBodiesChangeNothing(t *testing.T) {
	for kind, body := range bodies(1, 0x11) {
		for n := 0; n <= len(body); n++ {
			bad := body[:n]
			if n == len(body) {
				bad = append(bytes.Clone(body), 0)
			}
			m := asMember()
			if kind == wire.KindWelcome { // read by a joiner only
				m.phase, m.joining.nonce = pending, 7
			}
			if kind == wire.KindGossip || kind == wire.KindWelcome { // a version that it holds would not be unpacked at all
				m.st = m.st.Draft().Commit(ip(1))
			}
			before, seen := m.st, m.st.Seen.Clone()
			err := m.Handle(1, 1, ip(2), kind, bad)
			var we *wire.Error
			require.ErrorAs(t, err, &we, "%s of %d bytes", kind, n)
			require.Equal(t, kind, we.Kind)
			require.Same(t, before, m.st)
			require.True(t, seen.Equal(m.st.Seen))
			var out Effects
			m.Drain(&out)
			require.Empty(t, out.Mail)
		}
	}
	require.ErrorIs(t, asMember().Handle(1, 1, ip(2), wire.KindRegister, nil), ErrBadKind)
}

// Whatever arrives: no panic, no state change on error, a sound state afterwards.
func FuzzHandle(f *testing.F) {
	for kind, body := range bodies(1, 0x11) {
		f.Add(byte(kind), body)
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		m := asMember()
		held := spent.Bytes()
		defer func() { spent.Within(t, held, 64*len(body)) }()
		before := m.st.Digest
		err := m.Handle(1, 1, ip(2), wire.Kind(kind), body)
		if err != nil {
			require.Equal(t, before, m.st.Digest)
		}
		m.Drain(&Effects{})
		m.Tick(5_000_000_000)
		m.Drain(&Effects{})
	})
}
