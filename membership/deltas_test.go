// Tests of deltas: they lead from one version to the other or nowhere, and are used only from what both hold (GOS-4).

package membership

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The law of a delta: applied to a it gives b, for any two versions of one cluster.
func TestDeltaLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyState().Draw(t, "a"), anyState().Draw(t, "b")
		changes, ok := appendDelta(nil, a.version, b.version)
		if !ok {
			return // a member changed its roles
		}
		before := bytes.Clone(a.canonical())
		got, err := new(work).readDelta(wire.KindDelta, a.version, changes)
		require.NoError(t, err)
		require.Equal(t, b.canonical(), got.canonical())
		require.Equal(t, b.digest, got.digest)
		require.Equal(t, b.unreachable, got.unreachable)
		require.True(t, got.sound())
		a.bytes = nil
		require.Equal(t, before, a.canonical(), "the base stays what it was")
	})
}

// To itself a version is a few bytes away; whoever changed its roles cannot be told by a delta.
func TestDeltaEdges(t *testing.T) {
	s := crowd(1000, 100, 1000)
	changes, ok := appendDelta(nil, s.version, s.version)
	require.True(t, ok)
	require.LessOrEqual(t, len(changes), 16)
	d := s.draft()
	d.members[7].Status = cluster.Leaving
	d.commit(d.members[3].ID)
	changes, ok = appendDelta(nil, s.version, d.version)
	require.True(t, ok)
	c := coder{above: 1024}
	full := len(c.packOf(d.version).bytes)
	t.Logf("one change among 1,000: %d bytes instead of %d", len(changes), full)
	require.Less(t, len(changes), 32)
	d.members[7].Roles = []string{"other"}
	_, ok = appendDelta(nil, s.version, d.version)
	require.False(t, ok)
}

// A delta cut short, or with a byte too many, is refused; so is one that leads elsewhere, and one that is unsound.
func TestBadDeltas(t *testing.T) {
	from, to := sample(), nextSample()
	changes, ok := appendDelta(nil, from.version, to.version)
	require.True(t, ok)
	var w work
	for n := range changes {
		_, err := w.readDelta(wire.KindDelta, from.version, changes[:n])
		require.Error(t, err, n)
	}
	_, err := w.readDelta(wire.KindDelta, from.version, append(bytes.Clone(changes), 0))
	require.ErrorIs(t, err, wire.ErrTrailing)

	for name, change := range map[string]func(s *state){
		"clock of a stranger":   func(s *state) { s.clock[0].ID = ip(77) },
		"row of a stranger":     func(s *state) { s.reach[0].observer = ip(77) },
		"record of a stranger":  func(s *state) { s.reach[0].records[0].subject = ip(77) },
		"tombstone of a member": func(s *state) { s.tombs[0].id = s.members[0].ID },
		"number too high":       func(s *state) { s.members[0].UpNumber = 99 },
		"Up without number":     func(s *state) { s.members[0].UpNumber = 0 },
		"Joining with number":   func(s *state) { s.members[1].UpNumber = 1 },
	} {
		s := sample()
		change(s)
		require.False(t, s.sound(), name)
	}
	require.True(t, sample().sound())
}

// A node that holds the base applies a delta; one that does not asks for the state; one that is led astray asks for the
// whole state; what it holds already it only notes.
func TestDeltaAtTheReceiver(t *testing.T) {
	to := nextSample()
	sent := func(m *Machine) (wire.Kind, []byte) {
		var out Effects
		m.Drain(&out)
		for _, mail := range out.Mail {
			if mail.To == ip(2) {
				return mail.Kind, bytes.Clone(mail.Body)
			}
		}
		return 0, nil
	}
	m := asMember()
	require.NoError(t, m.Handle(1, 1, ip(2), wire.KindDelta, sampleDelta(1, 0x11)))
	require.NotNil(t, m.held(to.digest), "taken; what its leader did then is a version of its own")
	require.Equal(t, uint64(1), m.stats.DeltasApplied)
	require.Equal(t, uint64(1), m.stats.Newer)
	require.NoError(t, m.Handle(1, 1, ip(2), wire.KindDelta, sampleDelta(1, 0x11)))
	require.Equal(t, uint64(1), m.stats.DeltasApplied)
	require.Equal(t, uint64(1), m.stats.Same+m.stats.Older)

	m = asMember()
	m.install(m.st.draft().commit(ip(1)), false)
	m.history, m.dirty = history{}, false
	before := m.st
	require.NoError(t, m.Handle(1, 1, ip(2), wire.KindDelta, sampleDelta(1, 0x11)))
	require.Equal(t, uint64(1), m.stats.DeltasWithoutBase)
	require.Same(t, before, m.st)
	kind, body := sent(m)
	require.Equal(t, wire.KindVersion, kind)
	v, err := readVersion(body)
	require.NoError(t, err)
	require.True(t, v.want && v.digest == m.st.digest)

	m = asMember()
	lie := sampleDelta(1, 0x11)
	lie[24]++ // the digest of the result
	before = m.st
	require.NoError(t, m.Handle(1, 1, ip(2), wire.KindDelta, lie))
	require.Equal(t, uint64(1), m.stats.DeltasWrong)
	require.Same(t, before, m.st)
	kind, body = sent(m)
	require.Equal(t, wire.KindVersion, kind)
	v, err = readVersion(body)
	require.NoError(t, err)
	require.True(t, v.want && v.digest == 0)

	m = asMember()
	body = sampleDelta(1, 0x11)
	body[32] = 11 // a seen set over more members
	require.Error(t, m.Handle(1, 1, ip(2), wire.KindDelta, append(body[:34:34], body[33:]...)))
	require.Equal(t, sample().digest, m.st.digest)
}

// Who asks and names a version that is still held gets the difference; any other the state. The versions held are few.
func TestDeltaAtTheSender(t *testing.T) {
	m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, m.Do(0, JoinCommand{}))
	m.Drain(&Effects{})
	s := crowd(200, 0, 200)
	s.cluster, s.birth = 0x11, 0x22
	s = s.draft()
	s.add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1000})
	s.highestUp = 1000
	m.install(s.commit(ip(1)), false)
	m.Drain(&Effects{})
	asker := s.members[20].ID
	digests := []gossip.Digest{m.st.digest}
	for i := range pastVersions + 2 {
		d := m.st.draft()
		d.members[30+i].Status = cluster.Leaving
		m.install(d.commit(ip(1)), false)
		digests = append(digests, m.st.digest)
	}
	answer := func(have gossip.Digest) wire.Kind {
		body := appendVersion(nil, versionBody{envelope: envelope{1, 0x11}, digest: have, want: true})
		require.NoError(t, m.Handle(1, 1, asker, wire.KindVersion, body))
		var out Effects
		m.Drain(&out)
		for _, mail := range out.Mail {
			if mail.To == asker {
				return mail.Kind
			}
		}
		return 0
	}
	n := len(digests)
	require.Zero(t, answer(digests[n-1]), "it has the newest")
	require.Equal(t, wire.KindDelta, answer(digests[n-2]))
	require.Equal(t, wire.KindDelta, answer(digests[n-1-pastVersions]))
	require.Equal(t, wire.KindGossip, answer(digests[0]), "forgotten")
	require.Equal(t, wire.KindGossip, answer(0))
	require.Equal(t, uint64(2), m.stats.DeltasSent)
	require.Equal(t, uint64(2), m.stats.StatesSent)
}

// In a cluster most of what is told of a change is told as a delta, in a fraction of the bytes; all agree in the end.
func TestDeltasInACluster(t *testing.T) {
	w := newWorld(t, 5)
	all := w.cluster(30)
	w.counts[wire.KindDelta], w.counts[wire.KindGossip], w.sizes[wire.KindDelta] = 0, 0, 0
	for i := range 5 {
		w.do(all[10+i], LeaveCommand{})
		w.run(3 * time.Second)
	}
	w.until(30*time.Second, "settled", w.settled)
	t.Logf("%d deltas of at most %d bytes, %d states", w.counts[wire.KindDelta], w.sizes[wire.KindDelta],
		w.counts[wire.KindGossip])
	require.Greater(t, w.counts[wire.KindDelta], 10*w.counts[wire.KindGossip])
	for _, a := range all {
		require.Zero(t, a.m.stats.DeltasWrong)
	}
}

func FuzzDelta(f *testing.F) {
	changes, _ := appendDelta(nil, sample().version, nextSample().version)
	f.Add(changes)
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		from := sample()
		v, err := new(work).readDelta(wire.KindDelta, from.version, b)
		require.Equal(t, sample().digest, from.seal().digest, "the base stays what it was")
		if err != nil || !v.sound() {
			return
		}
		s := &state{version: v, seen: gossip.NewSeen(len(v.members))}
		require.False(t, s.has(peer.ID{}))
		_ = mergeStates(s, sample())
	})
}
