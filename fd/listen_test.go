// Tests of members that are probed and not judged.

package fd

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// TestListen: a member that others judge is probed for as long as it is named, and is unanswered when nothing has
// arrived from it for two intervals, whatever that was. It is never judged here (MEM-10).
func TestListen(t *testing.T) {
	now := 20 * time.Second
	all := set("aa", "bb", "cc", "dd", "ee")
	fresh := func(ids ...string) *Monitor {
		m := monitor(2)
		setRing(m, 0, all, nil, nil)
		rhythm(m, now, set("bb", "cc"), set("ee"))
		m.Listen(now, set(ids...))
		return m
	}
	asked := func(m *Monitor) peer.Set { return peer.SetOf(m.Asked(nil)...) }
	unanswered := func(m *Monitor, at time.Duration) peer.Set { return peer.SetOf(m.Unanswered(at, nil)...) }

	m := fresh("aa", "bb", "dd", "zz")
	require.Equal(t, set("dd"), asked(m), "not this node, no target, no stranger")
	require.Equal(t, set("bb", "cc"), targets(m))
	require.Empty(t, unanswered(m, now+2*time.Second-1))
	require.Equal(t, set("dd"), unanswered(m, now+2*time.Second), "not bb, which is a target")
	for _, v := range m.Judge(now+time.Hour, alone, nil) {
		require.NotEqual(t, id("dd"), v.ID)
	}
	at := now
	for name, hear := range map[string]func(peer.ID, time.Duration){
		"answer": m.Heard, "last probe": m.Parted, "gossip": m.Sign,
	} {
		at += 10 * time.Second
		require.Equal(t, set("dd"), unanswered(m, at))
		hear(id("dd"), at)
		require.Empty(t, unanswered(m, at+2*time.Second-1), name)
		require.Equal(t, set("dd"), unanswered(m, at+2*time.Second), name)
		hear(id("dd"), at-time.Second)
		require.Empty(t, unanswered(m, at+2*time.Second-1), "stamps do not go back")
	}

	// Ids in the new list go on; ids that are not are forgotten.
	m.Listen(at+5*time.Second, set("dd", "ee"))
	require.Equal(t, set("dd"), unanswered(m, at+5*time.Second))
	require.Equal(t, set("dd", "ee"), asked(m))
	m.Listen(at+5*time.Second, set("ee"))
	require.Equal(t, set("ee"), asked(m))
	m.Listen(at+5*time.Second, nil)
	require.Empty(t, asked(m))

	// One that is no member any more, a node that stood still, and one that this node accuses.
	m = fresh("dd", "ee")
	setRing(m, now, set("aa", "bb", "cc", "ee"), nil, nil)
	m.Listen(now, set("dd", "ee"))
	require.Equal(t, set("ee"), asked(m))
	m.Forgive(now+10*time.Second, 9*time.Second)
	require.Empty(t, unanswered(m, now+11*time.Second-1))
	require.Equal(t, set("ee"), unanswered(m, now+11*time.Second))
	m.Forgive(now+11*time.Second, time.Hour)
	require.Equal(t, set("ee"), unanswered(m, now+13*time.Second), "forgiven up to now at most")
	require.False(t, verdicts(m, now+time.Hour)[id("ee")])
	require.Empty(t, unanswered(m, now+time.Hour))
}

// The number of members that a node listens to is bounded, and a forgotten one makes room.
func TestListenIsBounded(t *testing.T) {
	m := monitor(1)
	var all peer.Set
	for i := range 3 * maxAsked {
		all.Add(peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: uint64(i + 1)})
	}
	m.self = all[0]
	setRing(m, 0, all, nil, nil)
	for range 2 {
		m.Listen(0, all[2:])
		require.Len(t, m.Asked(nil), maxAsked)
	}
	m.Listen(0, all[2*maxAsked:])
	require.Equal(t, []peer.ID(all[2*maxAsked:]), m.Asked(nil))
}
