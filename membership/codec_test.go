// Tests of the bodies: golden bytes, truncation at every byte, hostile values, bounded allocation, fuzzing (GOS-8,
// CARD-4).

package membership

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func ip(n int) peer.ID { return peer.ID{Addr: addr(n), Inc: uint64(n)} }

// sample is a state with everything in it.
func sample() *state {
	s := newState(version{cluster: 0x11, birth: 0x22, highestUp: 5})
	s.add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1, Roles: []string{"db", "web"}})
	s.add(cluster.Member{ID: ip(2), Status: cluster.Joining, Roles: []string{"web"}, AppVersion: "1.2"})
	s.add(cluster.Member{ID: ip(3), Status: cluster.Down, UpNumber: 4, Cause: cluster.CauseResolver, By: ip(1)})
	s.tombs = []tombstone{{id: ip(4), last: cluster.Exiting}, {ip(5), cluster.Down, cluster.CauseOperator, ip(7)}}
	s.reach = s.reach.with(ip(1), ip(3), true).with(ip(2), ip(3), true).with(ip(2), ip(3), false).quarantine(ip(2), ip(3))
	s.meta, _ = s.meta.with("k", "v", ip(1))
	s.clock = gossip.Clock{{ID: ip(1), N: 300}, {ID: ip(2), N: 1}}
	s.seen = gossip.NewSeen(3)
	s.seen.Add(0)
	s.seen.Add(2)
	return s.seal()
}

func payload(s *state) []byte { return bytes.Clone(s.canonical()) }

// readState reads a version that nobody is known to have seen.
func readState(kind wire.Kind, b []byte) (*state, error) {
	v, err := new(work).readCore(kind, b)
	if err != nil {
		return nil, err
	}
	return &state{version: v, seen: gossip.NewSeen(len(v.members))}, nil
}

// plainBody is a body with the state as it is.
func plainBody(to, tag uint64, s *state) []byte {
	return appendStateBody(nil, stateBody{to, tag, s.digest, s.seen, packed{0, payload(s)}})
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

const goldenSeen = goldenDigest + "03" + "05"

func TestStateGoldenBytes(t *testing.T) {
	s := sample()
	require.Equal(t, goldenState, hex.EncodeToString(payload(s)))
	got, err := readState(wire.KindGossip, payload(s))
	require.NoError(t, err)
	require.Equal(t, s.members, got.members)
	require.Equal(t, s.tombs, got.tombs)
	require.Equal(t, s.clock, got.clock)
	require.Equal(t, s.canonical(), got.canonical())
	require.True(t, got.reach.accuses(ip(1), ip(3)))
	require.Equal(t, uint64(3), got.reach.versionOf(ip(2)))
	require.True(t, got.reach.quarantines(ip(2), ip(3)))
	require.Equal(t, s.meta, got.meta)
}

// nextSample is a version after the sample in which everything changed.
func nextSample() *state {
	s := sample().draft()
	s.highestUp = 6
	s.setStatus(ip(1), cluster.Leaving)
	s.remove(ip(3))
	s.add(cluster.Member{ID: ip(9), Status: cluster.Joining, Roles: []string{"web"}, AppVersion: "1.3"})
	s.reach = s.reach.with(ip(2), ip(1), true)
	s.meta, _ = s.meta.with("k", "w", ip(2))
	return s.commit(ip(1))
}

func sampleDelta(to, cluster uint64) []byte {
	from, next := sample(), nextSample()
	changes, _ := appendDelta(nil, from.version, next.version)
	return appendDeltaBody(nil, deltaBody{envelope{to, cluster}, from.digest, next.digest, next.seen, changes})
}

// bodies returns one valid body of each kind for a machine of the given identity and cluster.
func bodies(to, clusterID uint64) map[wire.Kind][]byte {
	e := envelope{to, clusterID}
	seen := gossip.NewSeen(3)
	seen.Add(1)
	return map[wire.Kind][]byte{
		wire.KindJoinProbe:    wire.AppendU64(nil, 7),
		wire.KindJoinProbeAck: appendProbeAck(nil, probeAckBody{to, 7, clusterID, 9, 0, []Setting{{"k", "v"}}}),
		wire.KindJoinProbeNak: wire.AppendU64(wire.AppendU64(nil, to), 7),
		wire.KindJoin:         appendJoin(nil, joinBody{7, 0, ip(9), []string{"a", "b"}, "1.0", []Setting{{"k", "v"}}}),
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
		wire.KindRemovedNote: appendNote(nil, noteBody{e, tombstone{last: cluster.Down, cause: cluster.CauseResolver,
			by: ip(2)}, 1500, 3,
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
			"0600" + "0102" + "01" + "000201" + // highest up, never pruned; members: gone, changed
			"01" + "040a000009bb1c0900000000000000" + "0000" + "0103776562" + "03312e33" + // new
			"00" + "01" + "040a000003bb1c0300000000000000" + "04" + "03" + "040a000001bb1c0100000000000000" + // tombstones
			"00" + "02" + "000100" + "000401" + "000000" + // rows: one emptied, one with a record
			"01" + "01" + "016b" + "0177" + "02" + "040a000002bb1c0200000000000000" + // metadata
			"00" + "01" + "00ad02", // clock
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
	s.birth = 0x22
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
				m.phase, m.join.nonce = pending, 7
			}
			if kind == wire.KindGossip || kind == wire.KindWelcome { // a version that it holds would not be unpacked at all
				m.st = m.st.draft().commit(ip(1))
			}
			before, seen := m.st, m.st.seen.Clone()
			err := m.Handle(1, 1, ip(2), kind, bad)
			var we *wire.Error
			require.ErrorAs(t, err, &we, "%s of %d bytes", kind, n)
			require.Equal(t, kind, we.Kind)
			require.Same(t, before, m.st)
			require.True(t, seen.Equal(m.st.seen))
			var out Effects
			m.Drain(&out)
			require.Empty(t, out.Mail)
		}
	}
	require.ErrorIs(t, asMember().Handle(1, 1, ip(2), wire.KindRegister, nil), ErrBadKind)
}

func TestHostileStates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *state)
		err    error
	}{
		"no cluster":             {func(s *state) { s.cluster = 0 }, wire.ErrBadValue},
		"no birth":               {func(s *state) { s.birth = 0 }, wire.ErrBadValue},
		"status beyond Down":     {func(s *state) { s.members[0].Status = cluster.Removed }, wire.ErrBadValue},
		"up-number too high":     {func(s *state) { s.members[0].UpNumber = 6 }, wire.ErrBadValue},
		"Up without number":      {func(s *state) { s.members[0].UpNumber = 0 }, wire.ErrBadValue},
		"Joining with number":    {func(s *state) { s.members[1].UpNumber = 2 }, wire.ErrBadValue},
		"no incarnation":         {func(s *state) { s.members[0].ID.Inc = 0 }, wire.ErrBadValue},
		"member twice":           {func(s *state) { s.members[1].ID = s.members[0].ID }, wire.ErrBadOrder},
		"members unsorted":       {func(s *state) { s.members[0].ID, s.members[1].ID = ip(2), ip(1) }, wire.ErrBadOrder},
		"tombstone of a member":  {func(s *state) { s.tombs[0].id = ip(1) }, wire.ErrBadValue},
		"tombstone of Up":        {func(s *state) { s.tombs[0].last = cluster.Up }, wire.ErrBadValue},
		"self-accusation":        {func(s *state) { s.reach[0].records[0].subject = ip(1) }, wire.ErrBadValue},
		"record from the future": {func(s *state) { s.reach[0].records[0].since = 9 }, wire.ErrBadValue},
		"row without version":    {func(s *state) { s.reach[1].version = 0 }, wire.ErrBadValue},
		"row twice":              {func(s *state) { s.reach[1].observer = ip(1) }, wire.ErrBadValue},
		"empty clock entry":      {func(s *state) { s.clock[0].N = 0 }, wire.ErrBadValue},
		"clock of a stranger":    {func(s *state) { s.clock[0].ID = ip(7) }, wire.ErrBadValue},
		"status beyond Ready":    {func(s *state) { s.members[0].Status = 9 }, wire.ErrBadValue},
		"WeaklyUp with number":   {func(s *state) { s.members[0].Status = cluster.WeaklyUp }, wire.ErrBadValue},
		"Ready without number":   {func(s *state) { s.members[1].Status = cluster.ReadyForShutdown }, wire.ErrBadValue},
		"unknown cause":          {func(s *state) { s.members[2].Cause = 7 }, wire.ErrBadValue},
		"unknown record":         {func(s *state) { s.reach[0].records[0].kind = 2 }, wire.ErrBadValue},
		"version too long":       {func(s *state) { s.members[1].AppVersion = strings.Repeat("1", 65) }, wire.ErrTooLarge},
		"key too long":           {func(s *state) { s.meta[0].key = strings.Repeat("k", 65) }, wire.ErrTooLarge},
		"value too long":         {func(s *state) { s.meta[0].value = strings.Repeat("v", 1025) }, wire.ErrTooLarge},
		"key twice":              {func(s *state) { s.meta = append(s.meta, s.meta[0]) }, wire.ErrBadOrder},
		"write without count":    {func(s *state) { s.meta[0].count = 0 }, wire.ErrBadValue},
		"role too long":          {func(s *state) { s.members[0].Roles[0] = strings.Repeat("a", 129) }, wire.ErrTooLarge},
	} {
		s := sample()
		c.change(s)
		core, _ := appendCore(nil, s.version)
		_, err := readState(wire.KindGossip, core)
		require.ErrorIs(t, err, c.err, name)
	}
	s := sample()
	m := asMember()
	for name, seen := range map[string]gossip.Seen{"fewer": gossip.NewSeen(2), "more": gossip.NewSeen(9)} {
		body := appendStateBody(nil, stateBody{1, 0x11, s.digest, seen, packed{0, payload(s)}})
		require.ErrorIs(t, m.Handle(1, 1, ip(2), wire.KindGossip, body), wire.ErrBadValue, "a seen set over %s members", name)
	}
	m.st = m.st.draft().commit(ip(1))
	lie := appendStateBody(nil, stateBody{1, 0x11, 5, s.seen, packed{0, payload(s)}})
	require.ErrorIs(t, m.Handle(1, 1, ip(2), wire.KindGossip, lie), wire.ErrBadValue, "another digest than it says")
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

func bigState(n int) *state {
	s := newState(version{cluster: 1, birth: 1, highestUp: uint32(n)})
	for i := range n {
		at := peer.MustAddr(fmt.Sprintf("10.1.%d.%d:7355", i/200, i%200+1))
		id := peer.ID{Addr: at, Inc: uint64(i)*0x9e3779b97f4a7c15 | 1}
		s.members = append(s.members, cluster.Member{ID: id, Status: cluster.Up, UpNumber: uint32(i + 1),
			Roles: []string{"worker"}})
	}
	s.seen = gossip.NewSeen(n)
	return s.seal()
}

// TestGzip pins CARD-3.
func TestGzip(t *testing.T) {
	c := coder{above: 1024}
	plain := payload(bigState(300))
	flags, zipped := c.pack(plain)
	require.Equal(t, byte(flagGzip), flags)
	require.Less(t, len(zipped), len(plain)*3/4)
	t.Logf("300 members: %d bytes, %d packed", len(plain), len(zipped))
	body := appendStateBody(nil, stateBody{1, 2, 5, gossip.NewSeen(3), packed{flags, zipped}})
	for range 2 { // the second use runs on the kept halves
		back, err := c.unpack(wire.KindGossip, flags, zipped)
		require.NoError(t, err)
		require.Equal(t, plain, back)
		_, again := (&coder{above: 1024}).pack(plain)
		require.Equal(t, zipped, again, "the same bytes each time")
	}
	require.Equal(t, appendStateBody(nil, stateBody{1, 2, 5, gossip.NewSeen(3), packed{0, plain}}),
		PlainBody(wire.KindGossip, body))
	require.Equal(t, []byte{1}, PlainBody(wire.KindGossip, []byte{1}))
	require.Equal(t, body, PlainBody(wire.KindStatus, body))

	flags, zipped = c.pack(plain[:500])
	require.Zero(t, flags)
	require.Equal(t, plain[:500], zipped, "below the size where it pays")
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	flags, _ = c.pack(noise)
	require.Zero(t, flags, "what does not shrink is sent as it is")

	_, zipped = c.pack(plain)
	for n := range len(zipped) {
		if _, err := c.unpack(wire.KindGossip, flagGzip, zipped[:n]); err == nil {
			require.Fail(t, "truncated gzip accepted", n)
		}
	}
}

func TestGzipBomb(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, 64<<20))
	require.NoError(t, w.Close())
	var c coder
	for announced, want := range map[uint64]error{
		64 << 20: wire.ErrTooLarge, // over the limit of a control frame
		1 << 40:  wire.ErrTooLarge,
		1000:     wire.ErrTrailing, // more comes out than was announced
	} {
		_, err := c.unpack(wire.KindGossip, flagGzip, append(wire.AppendUvarint(nil, announced), b.Bytes()...))
		require.ErrorIs(t, err, want)
		require.LessOrEqual(t, cap(c.raw), 1<<20)
	}
	_, err := c.unpack(wire.KindGossip, flagGzip, append(wire.AppendUvarint(nil, 8<<20), b.Bytes()[:100]...))
	require.ErrorIs(t, err, wire.ErrTooLarge, "100 bytes cannot expand to 8 MiB")
	require.LessOrEqual(t, cap(c.raw), 1<<20)
	_, err = c.unpack(wire.KindGossip, flagGzip, append(wire.AppendUvarint(nil, 10), "no gzip at all"...))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// crowd is a state as it may be after a long life: random incarnations, addresses that are spread over a few networks,
// up-numbers in any order, one role, one version, clocks entries counters of all who ever changed something.
func crowd(n, tombs, clocks int) *state {
	rng := rand.New(rand.NewPCG(7, 7))
	s := newState(version{cluster: rng.Uint64(), birth: rng.Uint64(), highestUp: uint32(2 * n)})
	ids := make(peer.Set, 0, n+tombs)
	for i := range n + tombs {
		ip := uint32(i * (200_000 / (n + tombs)))
		at := peer.MustAddr(fmt.Sprintf("10.%d.%d.%d:7355", ip>>16, ip>>8&255, ip&255))
		ids = append(ids, peer.ID{Addr: at, Inc: rng.Uint64() | 1})
	}
	ups := rng.Perm(n + tombs)
	for i, id := range ids {
		if len(s.members)*(n+tombs) <= i*n && len(s.members) < n {
			s.members = append(s.members, cluster.Member{ID: id, Status: cluster.Up, UpNumber: uint32(ups[i] + 1),
				Roles: []string{"worker"}, AppVersion: "2.14.1"})
		} else {
			s.tombs = append(s.tombs, tombstone{id: id, last: cluster.Exiting})
		}
	}
	s.highestUp = uint32(n + tombs)
	for i := range clocks {
		id := s.members[i*n/clocks].ID
		s.clock = append(s.clock, gossip.Entry{ID: id, N: 1 + rng.Uint64N(300)})
	}
	s.seen = gossip.NewSeen(n)
	return s.seal()
}

// The full state of 1,000 members fits into 14 kB, of which 8 kB are incarnations that nothing can compress; the
// ancestor takes 21 kB (GOS-8).
func TestStateSizes(t *testing.T) {
	for name, s := range map[string]*state{"3 clock entries": crowd(1000, 0, 3), "full clock": crowd(1000, 0, 1000)} {
		c := coder{above: 1024}
		body := appendStateBody(nil, stateBody{1, 2, s.digest, s.seen, c.packOf(s.version)})
		t.Logf("1,000 members, %s: %d bytes, plain %d", name, len(body), len(s.canonical()))
		require.LessOrEqual(t, len(body), 14_000, name)
	}
}

// Ten thousand members with full clocks and ten thousand tombstones fit into one control frame, plain and packed; with
// the longest host names they fit packed, as the names of one network share what is long about them.
func TestLargestStateFits(t *testing.T) {
	s := crowd(cluster.MaxMembers, cluster.MaxMembers, cluster.MaxMembers)
	for i := range s.clock {
		s.clock[i].N = 1 << 62
	}
	s.seal()
	c := coder{above: 1024}
	t.Logf("10,000 members and tombstones: %d bytes, packed %d", len(payload(s)), len(c.packOf(s.version).bytes))
	require.Less(t, len(payload(s)), wire.MaxControlFrame)
	require.Less(t, len(c.packOf(s.version).bytes), wire.MaxControlFrame/16)
	got, err := readState(wire.KindGossip, payload(s))
	require.NoError(t, err)
	require.Len(t, got.members, cluster.MaxMembers)

	suffix := strings.Repeat(".very-long-network-name", 10)
	for i := range s.members {
		s.members[i].ID.Addr = peer.MustAddr(fmt.Sprintf("a%05d%s:7355", i, suffix))
	}
	s.clock, s.tombs = nil, nil
	s.seal()
	require.Less(t, len(payload(s)), maxStateSize)
	require.Less(t, len((&coder{above: 1}).packOf(s.version).bytes), wire.MaxControlFrame/16)
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
		before := m.st.digest
		err := m.Handle(1, 1, ip(2), wire.Kind(kind), body)
		if err != nil {
			require.Equal(t, before, m.st.digest)
		}
		m.Drain(&Effects{})
		m.Tick(5_000_000_000)
		m.Drain(&Effects{})
	})
}

func FuzzState(f *testing.F) {
	f.Add(payload(sample()))
	f.Add(payload(bigState(3)))
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
