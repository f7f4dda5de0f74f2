// Tests of deltas: they lead from one version to the other or nowhere (GOS-4).

package members

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The law of a delta: applied to a it gives b, for any two versions of one cluster.
func TestDeltaLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyState().Draw(t, "a"), anyState().Draw(t, "b")
		changes, ok := appendDelta(nil, a.Version, b.Version)
		if !ok {
			return // a member changed its roles
		}
		before := bytes.Clone(a.canonical())
		got, err := new(work).readDelta(wire.KindDelta, a.Version, changes)
		require.NoError(t, err)
		require.Equal(t, b.canonical(), got.canonical())
		require.Equal(t, b.Digest, got.Digest)
		require.Equal(t, b.Unreachable, got.Unreachable)
		require.True(t, got.sound())
		a.bytes = nil
		require.Equal(t, before, a.canonical(), "the base stays what it was")
	})
}

// To itself a version is a few bytes away; a member that changed its roles cannot be in a delta.
func TestDeltaEdges(t *testing.T) {
	s := crowd(1000, 100, 1000)
	changes, ok := appendDelta(nil, s.Version, s.Version)
	require.True(t, ok)
	require.LessOrEqual(t, len(changes), 16)
	d := s.Draft()
	d.Members[7].Status = cluster.Leaving
	d.Commit(d.Members[3].ID)
	changes, ok = appendDelta(nil, s.Version, d.Version)
	require.True(t, ok)
	c := coder{above: 1024}
	full := len(c.packOf(d.Version).bytes)
	t.Logf("one change among 1,000: %d bytes instead of %d", len(changes), full)
	require.Less(t, len(changes), 32)
	d.Members[7].Roles = []string{"other"}
	_, ok = appendDelta(nil, s.Version, d.Version)
	require.False(t, ok)
}

// A delta cut short, or with a byte too many, is refused; so is one that leads elsewhere, and one that is unsound.
func TestBadDeltas(t *testing.T) {
	from, to := sample(), nextSample()
	changes, ok := appendDelta(nil, from.Version, to.Version)
	require.True(t, ok)
	var w work
	for n := range changes {
		_, err := w.readDelta(wire.KindDelta, from.Version, changes[:n])
		require.Error(t, err, n)
	}
	_, err := w.readDelta(wire.KindDelta, from.Version, append(bytes.Clone(changes), 0))
	require.ErrorIs(t, err, wire.ErrTrailing)

	for name, change := range map[string]func(s *State){
		"clock of a stranger":   func(s *State) { s.Clock[0].ID = ip(77) },
		"row of a stranger":     func(s *State) { s.Reach[0].observer = ip(77) },
		"record of a stranger":  func(s *State) { s.Reach[0].records[0].subject = ip(77) },
		"tombstone of a member": func(s *State) { s.Tombs[0].ID = s.Members[0].ID },
		"number too high":       func(s *State) { s.Members[0].UpNumber = 99 },
		"Up without number":     func(s *State) { s.Members[0].UpNumber = 0 },
		"Joining with number":   func(s *State) { s.Members[1].UpNumber = 1 },
	} {
		s := sample()
		change(s)
		require.False(t, s.sound(), name)
	}
	require.True(t, sample().sound())
}

// TestDeltaGoldenBytes: what changed of the partition table and of the seats stands behind the metadata; without a
// change of them a delta is as nodes before them wrote and read it (PRT-1, GOS-4, MEM-10).
func TestDeltaGoldenBytes(t *testing.T) {
	for want, to := range map[string]*State{
		"060001020100020101040a000009bb1c09000000000000000000010377656203312e330001040a000003bb1c03000000" +
			"000000000403040a000001bb1c010000000000000000020001000004010000000101016b017702040a000002bb1c0200" +
			"000000000000000100ad02": nextSample(),
		"0500000000000000000200010003612f62100104040a000004bb1c04000000000000000002050202020500020104040a" +
			"000004bb1c0400000000000000010004040a000005bb1c05000000000000000002000100ad02": parted(),
		"050000000000000000040303040a000001bb1c0100000000000000040a000001bb1c0100000000000000000000" +
			"000000000000040a000004bb1c0400000000000000000100ad02": seated(),
	} {
		changes, ok := appendDelta(nil, sample().Version, to.Version)
		require.True(t, ok)
		require.Equal(t, want, hex.EncodeToString(changes))
	}
}

func FuzzDelta(f *testing.F) {
	changes, _ := appendDelta(nil, sample().Version, nextSample().Version)
	f.Add(changes)
	changes, _ = appendDelta(nil, sample().Version, parted().Version)
	f.Add(changes)
	changes, _ = appendDelta(nil, sample().Version, seated().Version)
	f.Add(changes)
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		from := sample()
		v, err := new(work).readDelta(wire.KindDelta, from.Version, b)
		require.Equal(t, sample().Digest, from.Seal().Digest, "the base stays what it was")
		if err != nil || !v.sound() {
			return
		}
		s := &State{Version: v, Seen: gossip.NewSeen(len(v.Members))}
		require.False(t, s.Has(peer.ID{}))
		_ = mergeStates(s, sample())
	})
}
