// Tests of the proof that a process at a joiner's address is dead (SHD-9, AVL-5).

package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// claims lets a joiner that repeats every challenge join m with a claim, and returns the incarnations reported dead.
func claims(t *testing.T, m *Machine, now time.Duration, id peer.ID, dead uint64) (died []peer.ID) {
	j := joinBody{nonce: id.Inc, id: id, dead: dead}
	for round := range 2 {
		require.NoError(t, m.Handle(now, now, id, wire.KindJoin, appendJoin(nil, j)))
		var e Effects
		m.Drain(&e)
		died = append(died, e.Died...)
		require.True(t, round == 1 || len(died) == 0, "nothing is believed before the challenge")
		for _, mail := range e.Mail {
			if mail.Kind == wire.KindJoinProbeAck {
				a, err := readProbeAck(mail.Body)
				require.NoError(t, err)
				j.challenge = a.challenge
			}
		}
	}
	return died
}

// host is a machine that has formed a cluster and admitted the others.
func host(t *testing.T, cfg Config, others ...peer.ID) *Machine {
	m := New(ip(1), cfg, newWorld(t, 1).rng)
	require.NoError(t, m.Do(0, JoinCommand{}))
	for i, id := range others {
		require.Empty(t, claims(t, m, time.Duration(i+1)*time.Second, id, 0))
	}
	return m
}

// next is another incarnation at the address of node n.
func next(n int, inc uint64) peer.ID { return peer.ID{Addr: addr(n), Inc: inc} }

// causeOf says why a member is Down, or was when it was removed.
func causeOf(m *Machine, id peer.ID) cluster.Cause {
	if i := m.st.Index(id); i >= 0 {
		return m.st.Members[i].Cause
	}
	t, _ := m.st.Tomb(id)
	return t.Cause
}

// A node that starts again proves its last incarnation dead, once; one that claims nothing only replaces it.
func TestProofOfTheLastIncarnation(t *testing.T) {
	m := host(t, Config{}, ip(2), ip(3))
	require.Equal(t, []peer.ID{ip(2)}, claims(t, m, 10*time.Second, next(2, 77), ip(2).Inc))
	require.Equal(t, cluster.CauseProvenDead, causeOf(m, ip(2)))
	require.Empty(t, claims(t, m, 11*time.Second, next(2, 77), ip(2).Inc), "it is a member by now")
	require.Empty(t, claims(t, m, 12*time.Second, next(3, 88), 0))
	require.Equal(t, cluster.CauseReplaced, causeOf(m, ip(3)))
	require.Equal(t, []peer.ID{ip(3)}, claims(t, m, 13*time.Second, next(3, 99), ip(3).Inc), "removed long ago, or Down")
}

// Nobody speaks of a process at another address, of itself, or of one that was never here; and with NoLockProof nobody
// is believed at all.
func TestProofsThatAreNone(t *testing.T) {
	for dead, id := range map[uint64]peer.ID{ip(3).Inc: next(2, 77), 77: next(2, 77), 12345: next(2, 77), 0: next(2, 77),
		ip(1).Inc: next(2, 78)} {
		m := host(t, Config{}, ip(2), ip(3))
		require.Empty(t, claims(t, m, 10*time.Second, id, dead))
		require.Equal(t, cluster.CauseReplaced, causeOf(m, ip(2)))
		require.Equal(t, cluster.CauseNone, causeOf(m, ip(3)))
	}
	m := host(t, Config{NoLockProof: true}, ip(2))
	require.Empty(t, claims(t, m, 10*time.Second, next(2, 77), ip(2).Inc))
	require.Equal(t, cluster.CauseReplaced, causeOf(m, ip(2)))
}

// Another reason for which it is Down, or was removed, does not hide the proof, and members that hear of it later get
// it too.
func TestProofBehindAnotherCause(t *testing.T) {
	m := host(t, Config{}, ip(2), ip(3))
	require.NoError(t, m.Do(5*time.Second, DownCommand{ID: ip(2), Cause: cluster.CauseResolver}))
	require.Equal(t, []peer.ID{ip(2)}, claims(t, m, 10*time.Second, next(2, 77), ip(2).Inc))
	require.Equal(t, cluster.CauseProvenDead, causeOf(m, ip(2)))
	d := m.st.Draft()
	d.Remove(next(2, 77))
	m.install(d.Commit(ip(1)), true)
	require.NoError(t, m.Do(11*time.Second, SetMetadataCommand{Key: "k", Value: []byte("v")}))
	require.Equal(t, []peer.ID{next(2, 77)}, claims(t, m, 12*time.Second, next(2, 78), 77), "by its tombstone")
	welcomed := New(ip(9), Config{}, newWorld(t, 2).rng)
	welcomed.noteDeaths(m.st)
	require.ElementsMatch(t, []peer.ID{ip(2), next(2, 77)}, welcomed.died)
}

// A side that knows the proof and one that removed the member for another reason agree on the proof.
func TestMergeKeepsProofs(t *testing.T) {
	m := host(t, Config{}, ip(2), ip(3))
	a, b := m.st.Draft(), m.st.Draft()
	a.ProveDead(ip(2), next(2, 77))
	b.SetDown(ip(2), ip(3), cluster.CauseResolver)
	b.Remove(ip(2))
	one, two := a.Commit(ip(1)), b.Commit(ip(3))
	require.NoError(t, members.Laws(one, two, m.st))
	merged, _ := m.store.NewerOrMerged(two, one, m.history.Find)
	require.False(t, merged.Has(ip(2)))
	require.True(t, merged.ProvenDead(ip(2)))
	m.install(two, false)
	m.died = nil
	m.install(merged, false)
	require.Equal(t, []peer.ID{ip(2)}, m.died)
}

// A claim stands in its place among the settings, members of earlier builds read it as one of them, and where there is
// no room it is left out.
func TestClaimsAmongSettings(t *testing.T) {
	list := []Setting{{"a", "1"}, {"kith.resolver", "2"}}
	j, err := readJoin(appendJoin(nil, joinBody{id: ip(2), settings: list, dead: 0xabc}))
	require.NoError(t, err)
	require.Equal(t, uint64(0xabc), j.dead)
	require.Equal(t, list, j.settings)
	require.Equal(t, []Setting{{"a", "1"}, {claimKey, "abc"}, {"kith.resolver", "2"}}, withClaim(list, 0xabc))
	require.Empty(t, differs(list, withClaim(list, 0xabc)), "nobody compares it")
	var full []Setting
	for i := range MaxSettings {
		full = append(full, Setting{fmt.Sprintf("%03d", i), ""})
	}
	require.Equal(t, full, withClaim(full, 1))
	_, dead := claimOf([]Setting{{claimKey, "no number"}})
	require.Zero(t, dead)
}
