// Tests of deltas: they lead from one version to the other or nowhere, and are used only from what both hold (GOS-4).

package membership

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/wire"
)

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
	require.NotNil(t, m.held(to.Digest), "taken; what its leader did then is a version of its own")
	require.Equal(t, uint64(1), m.stats.DeltasApplied)
	require.Equal(t, uint64(1), m.stats.Newer)
	require.NoError(t, m.Handle(1, 1, ip(2), wire.KindDelta, sampleDelta(1, 0x11)))
	require.Equal(t, uint64(1), m.stats.DeltasApplied)
	require.Equal(t, uint64(1), m.stats.Same+m.stats.Older)

	m = asMember()
	m.install(m.st.Draft().Commit(ip(1)), false)
	m.history, m.dirty = members.History{}, false
	before := m.st
	require.NoError(t, m.Handle(1, 1, ip(2), wire.KindDelta, sampleDelta(1, 0x11)))
	require.Equal(t, uint64(1), m.stats.DeltasWithoutBase)
	require.Same(t, before, m.st)
	kind, body := sent(m)
	require.Equal(t, wire.KindVersion, kind)
	v, err := readVersion(body)
	require.NoError(t, err)
	require.True(t, v.want && v.digest == m.st.Digest)

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
	require.Equal(t, sample().Digest, m.st.Digest)
}

// An asker that names a version still held gets the difference; any other the state. The versions held are few.
func TestDeltaAtTheSender(t *testing.T) {
	m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, m.Do(0, JoinCommand{}))
	m.Drain(&Effects{})
	s := crowd(200)
	s.Cluster, s.Birth = 0x11, 0x22
	s = s.Draft()
	s.Add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1000})
	s.HighestUp = 1000
	m.install(s.Commit(ip(1)), false)
	m.Drain(&Effects{})
	asker := s.Members[20].ID
	digests := []gossip.Digest{m.st.Digest}
	for i := range members.PastVersions + 2 {
		d := m.st.Draft()
		d.Members[30+i].Status = cluster.Leaving
		m.install(d.Commit(ip(1)), false)
		digests = append(digests, m.st.Digest)
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
	require.Equal(t, wire.KindDelta, answer(digests[n-1-members.PastVersions]))
	require.Equal(t, wire.KindGossip, answer(digests[0]), "forgotten")
	require.Equal(t, wire.KindGossip, answer(0))
	require.Equal(t, uint64(2), m.stats.DeltasSent)
	require.Equal(t, uint64(2), m.stats.StatesSent)
}

// In a cluster most news of a change is sent as a delta, in a fraction of the bytes; all agree in the end.
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
