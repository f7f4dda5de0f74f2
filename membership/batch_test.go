// Tests of joins that arrive together (JOIN-1, MEM-1).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// asks lets a joiner ask m at now and returns the answers by receiver.
func asks(t *testing.T, m *Machine, now time.Duration, j joinBody) map[peer.ID]wire.Kind {
	require.NoError(t, m.Handle(now, now, j.id, wire.KindJoin, appendJoin(nil, j)))
	return answersOf(m)
}

func answersOf(m *Machine) map[peer.ID]wire.Kind {
	out := map[peer.ID]wire.Kind{}
	for _, mail := range mailOf(m) {
		if mail.Kind == wire.KindWelcome || mail.Kind == wire.KindJoinRefused || mail.Kind == wire.KindJoinProbeAck {
			out[mail.To] = mail.Kind
		}
	}
	return out
}

// A node that joins alone is admitted at once; two hundred that follow are one change, 50 ms later, and each is
// welcomed. Pins GOS-8.
func TestJoinsAreBatched(t *testing.T) {
	m := New(ip(1), Config{}, newWorld(t, 1).rng)
	require.NoError(t, m.Do(0, JoinCommand{}))
	mailOf(m)
	require.Equal(t, map[peer.ID]wire.Kind{ip(2): wire.KindWelcome},
		asks(t, m, time.Second, joinBody{nonce: 2, id: ip(2)}))
	before := m.st.Clock.Of(ip(1))
	for n := 3; n < 203; n++ {
		require.Empty(t, asks(t, m, time.Second+time.Duration(n)*time.Microsecond, joinBody{nonce: uint64(n), id: ip(n)}))
	}
	require.Empty(t, asks(t, m, time.Second+time.Millisecond, joinBody{nonce: 77, id: ip(3)}),
		"asked again while it waits")
	at, ok := m.Next()
	require.True(t, ok)
	require.LessOrEqual(t, at, time.Second+admitEvery)
	m.Tick(time.Second + admitEvery)
	welcomed := answersOf(m)
	require.Len(t, welcomed, 200)
	require.Len(t, m.st.Members, 202)
	require.Equal(t, before+1, m.st.Clock.Of(ip(1)))
	require.Equal(t, wire.KindWelcome, asks(t, m, 2*time.Second, joinBody{nonce: 500, id: ip(203)})[ip(203)],
		"alone again")
}

// The list of waiting joins is bounded: one more and all are admitted.
func TestWaitingJoinsAreBounded(t *testing.T) {
	m := New(ip(1), Config{}, newWorld(t, 1).rng)
	require.NoError(t, m.Do(0, JoinCommand{}))
	mailOf(m)
	asks(t, m, time.Second, joinBody{nonce: 2, id: ip(2)})
	for n := range maxWaiting + 1 {
		id := peer.ID{Addr: addr(3 + n%200), Inc: uint64(1000 + n)}
		asks(t, m, time.Second, joinBody{nonce: 3, id: id})
		require.LessOrEqual(t, len(m.admission.waiting), maxWaiting)
	}
	require.Len(t, m.st.Members, 202, "of two incarnations at one address the first is in, the other asks again")
}

// What changed while a join waited is looked at again: one with a taken address must prove that it lives, one that was
// removed is refused, one that another member admitted is welcomed.
func TestWaitingJoinsAreJudgedAgain(t *testing.T) {
	m := New(ip(1), Config{}, newWorld(t, 1).rng)
	require.NoError(t, m.Do(0, JoinCommand{}))
	mailOf(m)
	asks(t, m, time.Second, joinBody{nonce: 2, id: ip(2)})
	for n := 3; n < 7; n++ {
		require.Empty(t, asks(t, m, time.Second, joinBody{nonce: uint64(n), id: ip(n)}))
	}
	d := m.st.Draft()
	d.Add(cluster.Member{ID: peer.ID{Addr: addr(3), Inc: 99}, Status: cluster.Joining})
	d.Tombs = []members.Tombstone{{ID: ip(4), Last: cluster.Exiting}}
	d.Add(cluster.Member{ID: ip(5), Status: cluster.Joining})
	m.install(d.Commit(ip(2)), false)
	m.Tick(time.Second + admitEvery)
	require.Equal(t, map[peer.ID]wire.Kind{ip(4): wire.KindJoinRefused, ip(5): wire.KindWelcome, ip(6): wire.KindWelcome},
		answersOf(m))
	require.False(t, m.st.Has(ip(3)))
	require.Equal(t, wire.KindJoinProbeAck, asks(t, m, 2*time.Second, joinBody{nonce: 3, id: ip(3)})[ip(3)], "a challenge")
}
