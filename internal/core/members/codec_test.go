// Tests of the encoding of states: golden bytes, hostile values, bounded allocation, fuzzing (GOS-8, CARD-4).

package members

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Every state that a node can hold survives its codec.
func TestStateCodecLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyState().Draw(t, "s")
		if i := rapid.IntRange(-1, 4).Draw(t, "seen"); i >= 0 {
			s.Seen.Add(i)
		}
		got, err := readState(0, payload(s))
		require.NoError(t, err)
		require.Equal(t, s.canonical(), got.canonical())
		require.Equal(t, s.Digest, got.Digest)
		store := NewStore(1, nil)
		v, err := NewStore(1, nil).Read(0, s.Digest, store.Pack(s.Version), nil)
		require.NoError(t, err)
		require.Equal(t, s.canonical(), v.canonical(), "packed")
		_, err = NewStore(1, nil).Read(0, s.Digest+1, store.Pack(s.Version), nil)
		require.ErrorIs(t, err, wire.ErrBadValue, "another digest than it says")
	})
}

const goldenState = "03" + "1100000000000000" + "2200000000000000" + "05" + "00" + // format, ids, highest, pruned
	"02" + "026462" + "03776562" + // roles
	"03" + "00" + "00" + "020001" + "00" + "0101" + "03312e32" + // profiles: roles and version
	"02" + "01040a000001bb1c" + "18" + "0100000000000000" + "0700000000000000" + // deciders
	"03" + "01040a000001bb1c" + "04" + "04" + // members: addresses
	"0100000000000000" + "0200000000000000" + "0300000000000000" + // incarnations
	"01" + "00" + "04" + "00" + "03" + "06" + "01" + "02" + "00" + "0301" + // status, up-number, profile, verdict
	"02" + "01040a000004bb1c" + "04" + "0400000000000000" + "0500000000000000" + "0304" + "0102" + // tombstones
	"02" + "00" + "01" + "01" + "020000" + "00" + "03" + "01" + "020001" + // rows
	"01" + "016b" + "0176" + "01" + "040a000001bb1c0100000000000000" + // metadata
	"02" + "0000" + "ac0201" // clock

const goldenDigest = "846b70647dc575f4"

func TestStateGoldenBytes(t *testing.T) {
	s := sample()
	require.Equal(t, goldenState, hex.EncodeToString(payload(s)))
	got, err := readState(wire.KindGossip, payload(s))
	require.NoError(t, err)
	require.Equal(t, s.Members, got.Members)
	require.Equal(t, s.Tombs, got.Tombs)
	require.Equal(t, s.Clock, got.Clock)
	require.Equal(t, s.canonical(), got.canonical())
	require.True(t, got.Reach.Accuses(ip(1), ip(3)))
	require.Equal(t, uint64(3), got.Reach.VersionOf(ip(2)))
	require.True(t, got.Reach.Quarantines(ip(2), ip(3)))
	require.Equal(t, s.meta, got.meta)
}

// goldenParted is a state of format 4: the table stands before the clock. Formats without one stay as they were.
const goldenParted = "04110000000000000022000000000000000500020264620377656203000002000100010103312e320201040a00" +
	"0001bb1c18010000000000000007000000000000000301040a000001bb1c040401000000000000000200000000" +
	"000000030000000000000001000400030601020003010201040a000004bb1c0404000000000000000500000000" +
	"000000030401020200010102000000030102000101016b017601040a000001bb1c010000000000000001000361" +
	"2f62100104040a000004bb1c04000000000000000002050202020500020104040a000004bb1c04000000000000" +
	"00010004040a000005bb1c05000000000000000002020000ad0201"

// TestPartedGoldenBytes: with a partition table a state has its own format, in which identities are ordinals; without
// one it costs nothing (PRT-1, GOS-8).
func TestPartedGoldenBytes(t *testing.T) {
	s := parted()
	b := payload(s)
	require.Equal(t, goldenParted, hex.EncodeToString(b))
	got, err := readState(wire.KindGossip, b)
	require.NoError(t, err)
	require.Equal(t, s.Parts, got.Parts)
	require.Equal(t, s.Placed, got.Placed)
	b[0] = stateFormat
	_, err = readState(wire.KindGossip, b)
	require.Error(t, err)
	empty := payload(sample())
	require.EqualValues(t, stateFormat, empty[0])
	empty[0] = partsFormat
	_, err = readState(wire.KindGossip, empty)
	require.Error(t, err, "a table that is empty is not written")
}

// goldenSeated is a state of format 5: the seats stand behind the partition table, which may be empty.
const goldenSeated = "05110000000000000022000000000000000500020264620377656203000002000100010103312e320201040a00" +
	"0001bb1c18010000000000000007000000000000000301040a000001bb1c040401000000000000000200000000" +
	"000000030000000000000001000400030601020003010201040a000004bb1c0404000000000000000500000000" +
	"000000030401020200010102000000030102000101016b017601040a000001bb1c010000000000000000030304" +
	"0a000001bb1c0100000000000000040a000001bb1c0100000000000000000000000000000000040a000004bb1c" +
	"0400000000000000020000ad0201"

// TestSeatedGoldenBytes: with a list of seats a state has its own format; without one it costs nothing (MEM-10, GOS-8).
func TestSeatedGoldenBytes(t *testing.T) {
	s := seated()
	b := payload(s)
	require.Equal(t, goldenSeated, hex.EncodeToString(b))
	got, err := readState(wire.KindGossip, b)
	require.NoError(t, err)
	require.Equal(t, s.Seats, got.Seats)
	require.Equal(t, s.canonical(), got.canonical())
	for _, format := range []byte{stateFormat, partsFormat, seatsFormat + 1} {
		b[0] = format
		_, err = readState(wire.KindGossip, b)
		require.Error(t, err)
	}
	for _, other := range []*State{sample(), parted()} {
		b := payload(other)
		b[0] = seatsFormat
		_, err = readState(wire.KindGossip, b)
		require.Error(t, err, "no list is not written")
	}
	both := parted().Draft()
	both.Seats = s.Seats
	both.Commit(ip(1))
	got, err = readState(wire.KindGossip, payload(both))
	require.NoError(t, err)
	require.Equal(t, both.Seats, got.Seats)
	require.Equal(t, both.Placed, got.Placed)
}

// TestPartitionsCost says what a state and its packed form cost with so many paths, for docs and releases (PRT-1).
func TestPartitionsCost(t *testing.T) {
	for _, n := range []int{0, 100, cluster.MaxPartitions} {
		s := bigState(100).Draft()
		for i := range n {
			d := cluster.PartitionDefinition{Path: fmt.Sprintf("market/prices/%04d", i*7919%n), Count: partition.Exactly(3)}
			s.Parts, _ = s.Parts.Define(d, s.Members[i%100].ID)
		}
		s.Parts = s.Parts.Plan(s.Members, 1, nil)
		s.Commit(s.Members[0].ID)
		next := s.Draft()
		if n > 0 {
			next.Members[50].Status = cluster.Leaving
			next.Parts = next.Parts.Plan(next.Members, 1, nil)
		}
		next.Commit(s.Members[0].ID)
		changes, ok := appendDelta(nil, s.Version, next.Version)
		require.True(t, ok)
		plain, packed := len(payload(s)), len((&coder{above: 1024}).packOf(s.Version).bytes)
		t.Logf("%d paths, 100 members: %d bytes, %d packed; %d changes: a delta of %d", n, plain, packed,
			next.Parts.Pending(), len(changes))
		require.LessOrEqual(t, plain-len(payload(bigState(100))), 32*n+64)
		require.LessOrEqual(t, len(changes), 48*next.Parts.Pending()+32)
	}
}

func TestHostileStates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *State)
		err    error
	}{
		"no cluster": {func(s *State) { s.Cluster = 0 }, wire.ErrBadValue},
		"seat held twice": {func(s *State) {
			s.Seats = tenure.Seats{Number: 1, Writer: ip(1), Holders: []peer.ID{ip(1), ip(1), {}}}
		}, wire.ErrBadValue},
		"no quorum of seats": {func(s *State) {
			s.Seats = tenure.Seats{Number: 1, Writer: ip(1), Holders: []peer.ID{ip(1), {}, {}}}
		}, wire.ErrBadValue},
		"no birth":               {func(s *State) { s.Birth = 0 }, wire.ErrBadValue},
		"status beyond Down":     {func(s *State) { s.Members[0].Status = cluster.Removed }, wire.ErrBadValue},
		"up-number too high":     {func(s *State) { s.Members[0].UpNumber = 6 }, wire.ErrBadValue},
		"Up without number":      {func(s *State) { s.Members[0].UpNumber = 0 }, wire.ErrBadValue},
		"Joining with number":    {func(s *State) { s.Members[1].UpNumber = 2 }, wire.ErrBadValue},
		"no incarnation":         {func(s *State) { s.Members[0].ID.Inc = 0 }, wire.ErrBadValue},
		"member twice":           {func(s *State) { s.Members[1].ID = s.Members[0].ID }, wire.ErrBadOrder},
		"members unsorted":       {func(s *State) { s.Members[0].ID, s.Members[1].ID = ip(2), ip(1) }, wire.ErrBadOrder},
		"tombstone of a member":  {func(s *State) { s.Tombs[0].ID = ip(1) }, wire.ErrBadValue},
		"tombstone of Up":        {func(s *State) { s.Tombs[0].Last = cluster.Up }, wire.ErrBadValue},
		"self-accusation":        {func(s *State) { s.Reach[0].records[0].subject = ip(1) }, wire.ErrBadValue},
		"record from the future": {func(s *State) { s.Reach[0].records[0].since = 9 }, wire.ErrBadValue},
		"row without version":    {func(s *State) { s.Reach[1].version = 0 }, wire.ErrBadValue},
		"row twice":              {func(s *State) { s.Reach[1].observer = ip(1) }, wire.ErrBadValue},
		"empty clock entry":      {func(s *State) { s.Clock[0].N = 0 }, wire.ErrBadValue},
		"clock of a stranger":    {func(s *State) { s.Clock[0].ID = ip(7) }, wire.ErrBadValue},
		"status beyond Ready":    {func(s *State) { s.Members[0].Status = 9 }, wire.ErrBadValue},
		"WeaklyUp with number":   {func(s *State) { s.Members[0].Status = cluster.WeaklyUp }, wire.ErrBadValue},
		"Ready without number":   {func(s *State) { s.Members[1].Status = cluster.ReadyForShutdown }, wire.ErrBadValue},
		"unknown cause":          {func(s *State) { s.Members[2].Cause = 7 }, wire.ErrBadValue},
		"unknown record":         {func(s *State) { s.Reach[0].records[0].kind = 2 }, wire.ErrBadValue},
		"version too long":       {func(s *State) { s.Members[1].AppVersion = strings.Repeat("1", 65) }, wire.ErrTooLarge},
		"key too long":           {func(s *State) { s.meta[0].key = strings.Repeat("k", 65) }, wire.ErrTooLarge},
		"value too long":         {func(s *State) { s.meta[0].value = strings.Repeat("v", 1025) }, wire.ErrTooLarge},
		"key twice":              {func(s *State) { s.meta = append(s.meta, s.meta[0]) }, wire.ErrBadOrder},
		"write without count":    {func(s *State) { s.meta[0].count = 0 }, wire.ErrBadValue},
		"role too long":          {func(s *State) { s.Members[0].Roles[0] = strings.Repeat("a", 129) }, wire.ErrTooLarge},
	} {
		s := sample()
		c.change(s)
		core, _ := appendCore(nil, s.Version)
		_, err := readState(wire.KindGossip, core)
		require.ErrorIs(t, err, c.err, name)
	}
	s := sample()
	_, err := readState(wire.KindGossip, append([]byte{1}, payload(s)[1:]...))
	require.ErrorIs(t, err, wire.ErrBadWire)
	idle := bytes.Replace(payload(s), []byte("\x02\x02db\x03web"), []byte("\x03\x02db\x03web\x01x"), 1)
	_, err = readState(wire.KindGossip, idle)
	require.ErrorIs(t, err, wire.ErrBadValue, "a role that nobody has: not the bytes of this state")
	for name, counts := range map[string][]byte{"roles": {}, "versions": {0}, "deciders": {0, 0}, "members": {0, 0, 0},
		"tombs": {0, 0, 0, 0}, "rows": {0, 0, 0, 0, 0}, "metadata": {0, 0, 0, 0, 0, 0}} {
		bad := append(append(bytes.Clone(payload(s)[:19]), counts...), 0xff, 0xff, 0xff, 0x7f)
		_, err = readState(wire.KindGossip, bad)
		require.ErrorIs(t, err, wire.ErrTooLarge, "%s: a count over the limit allocates nothing", name)
	}
	huge := append(bytes.Clone(payload(s)[:19]), 0, 0xff, 0xff, 0xff, 0x7f)
	_, err = readState(wire.KindGossip, huge)
	require.ErrorIs(t, err, wire.ErrTooLarge, "a count over the limit allocates nothing")
}

// Ten thousand members with full clocks and ten thousand tombstones fit into one control frame, plain and packed; with
// the longest host names they fit packed, as the names of one network share what is long about them.
func TestLargestStateFits(t *testing.T) {
	s := crowd(cluster.MaxMembers, cluster.MaxMembers, cluster.MaxMembers)
	for i := range s.Clock {
		s.Clock[i].N = 1 << 62
	}
	s.Seal()
	c := coder{above: 1024}
	t.Logf("10,000 members and tombstones: %d bytes, packed %d", len(payload(s)), len(c.packOf(s.Version).bytes))
	require.Less(t, len(payload(s)), wire.MaxControlFrame)
	require.Less(t, len(c.packOf(s.Version).bytes), wire.MaxControlFrame/16)
	got, err := readState(wire.KindGossip, payload(s))
	require.NoError(t, err)
	require.Len(t, got.Members, cluster.MaxMembers)

	suffix := strings.Repeat(".very-long-network-name", 10)
	for i := range s.Members {
		s.Members[i].ID.Addr = peer.MustAddr(fmt.Sprintf("a%05d%s:7355", i, suffix))
	}
	s.Clock, s.Tombs = nil, nil
	s.Seal()
	require.Less(t, len(payload(s)), maxStateSize)
	require.Less(t, len((&coder{above: 1}).packOf(s.Version).bytes), wire.MaxControlFrame/16)
}

func FuzzState(f *testing.F) {
	f.Add(payload(sample()))
	f.Add(payload(bigState(3)))
	f.Add(payload(seated()))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		s, err := readState(wire.KindGossip, b)
		if err != nil {
			return
		}
		require.Equal(t, b, s.canonical(), "one version, one encoding")
		_ = mergeStates(s, sample())
	})
}
