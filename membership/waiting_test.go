// Tests of what a node says that it waits for before it is Up.

package membership

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// told returns the reported NotUpYet events of a node.
func told(a *actor) (list []Event) {
	for _, e := range a.events {
		if e.Kind == NotUpYet {
			list = append(list, e)
		}
	}
	return list
}

// A seed that does not answer is named, with the reason once that is known; it is reported after 10 s and each minute,
// and never again once the node is Up (JOIN-2).
func TestWaitsForSeeds(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(2)
	w.join(a, 1, 3)
	w.run(9 * time.Second)
	require.Empty(t, told(a))
	w.do(a, UnreachedCommand{Addr: addr(1), Kind: WaitSeeds, Why: "connection refused"})
	got := a.m.Waiting()
	require.Equal(t, Waiting{For: WaitSeeds, Addrs: addrs(1, 3),
		Detail: "no seed answers: 10.0.0.1:7355 (connection refused), 10.0.0.3:7355"}, got)
	w.run(2*time.Minute + 2*time.Second)
	list := told(a)
	require.Len(t, list, 3)
	require.Equal(t, &got, list[0].Waiting)
	require.Equal(t, "not-up-yet: "+got.Detail, list[0].String())
	first := w.start(1)
	w.join(first, 1, 3)
	w.until(30*time.Second, "both up", func() bool { return first.view != nil && first.view.CountUp() == 2 })
	w.until(5*time.Second, "both know", w.settled)
	require.Equal(t, Waiting{}, a.m.Waiting())
	w.run(5 * time.Minute)
	require.Len(t, told(a), 3)
}

// What an operator has to mend comes before what may pass: settings that differ, with both values, and certificates. A
// seed that answers meanwhile has nothing against this node any more (JOIN-1).
func TestWaitsForWhatAnOperatorMends(t *testing.T) {
	w := newWorld(t, 1)
	w.cut = func(from, to peer.ID) bool { return true }
	a := w.start(4)
	w.join(a, 1, 2, 3)
	w.do(a, UnreachedCommand{Addr: addr(1), Kind: WaitSeeds, Why: "i/o timeout"})
	w.do(a, UnreachedCommand{Addr: addr(2), Kind: WaitCertificate, Why: "tls: unknown-ca"})
	require.Equal(t, Waiting{For: WaitCertificate, Addrs: addrs(2), Detail: "10.0.0.2:7355: tls: unknown-ca"},
		a.m.Waiting())
	w.do(a, UnreachedCommand{Addr: addr(3), Kind: WaitSettings, Why: "long", Setting: "window", Ours: "1", Theirs: "2"})
	require.Equal(t, Waiting{For: WaitSettings, Addrs: addrs(3), Setting: "window", Ours: "1", Theirs: "2",
		Detail: `10.0.0.3:7355 refuses this node: window differs: ours "1", theirs "2"`}, a.m.Waiting())
	w.do(a, UnreachedCommand{Addr: addr(9), Kind: WaitSettings}) // not an address that it asks
	long := strings.Repeat("x", 1000)
	w.do(a, UnreachedCommand{Addr: addr(2), Kind: WaitSettings, Setting: long, Ours: long, Theirs: long, Why: long})
	got := a.m.Waiting()
	require.Equal(t, addrs(2, 3), got.Addrs)
	require.Len(t, got.Setting, maxWhyUnreached)
	require.Contains(t, got.Detail, "; 1 more for the like")
	w.cut = nil
	three := w.start(3)
	w.join(three, 1, 3)
	w.run(2 * time.Second)
	require.Equal(t, addrs(2), a.m.Waiting().Addrs, "the third has answered")
}

// A node in no cluster with seeds that answer, and one that may not form the next cluster, say so (JOIN-1).
func TestWaitsForACluster(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.start(2), w.start(3)
	w.join(a, 1, 3)
	w.join(b, 1, 2)
	w.run(3 * time.Second)
	got := a.m.Waiting()
	require.Equal(t, WaitCluster, got.For)
	require.Equal(t, "no seed is in a cluster: 10.0.0.3:7355 say so, nothing is heard of 10.0.0.1:7355", got.Detail)
	r := newRemembering(t, 1, 3)
	r.crash(r.now[1])
	r.isolate(1)
	c := r.begin(1)
	r.run(20 * time.Second)
	require.Equal(t, WaitCluster, c.m.Waiting().For)
	require.Contains(t, c.m.Waiting().Detail, "nothing is heard of 10.0.0.2:7355, 10.0.0.3:7355")
}

// A member that is not let in names the minimum that is not there, or the members that convergence waits for.
func TestWaitsAsAMember(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.MinMembers, w.cfg.MinRoleMembers = 2, []RoleMinimum{{"db", 1}}
	a := w.start(1)
	w.join(a, 1)
	w.run(15 * time.Second)
	require.Equal(t, Waiting{For: WaitMembers,
		Detail: "more members are to come before joining ones are let in: 1 of at least 2"}, a.m.Waiting())
	require.Len(t, told(a), 1)
	b := w.start(2)
	w.join(b, 1)
	w.run(5 * time.Second)
	require.Equal(t, `more members are to come before joining ones are let in: 0 of at least 1 with the role "db"`,
		a.m.Waiting().Detail)
	c := w.start(3, "db")
	w.join(c, 1)
	w.until(10*time.Second, "up", w.settled)
	w.crash(c)
	w.until(20*time.Second, "noticed", func() bool { return len(a.view.Unreachable) == 1 })
	d := w.start(4, "db")
	d.m.cfg.WeaklyUpAfter = -1
	w.join(d, 1)
	w.until(10*time.Second, "admitted", func() bool { return d.view != nil })
	w.run(time.Second)
	got := d.m.Waiting()
	require.Equal(t, WaitConvergence, got.For)
	require.Contains(t, got.Detail, c.id.String())
	require.Contains(t, got.Addrs, addr(3))
	w.do(a, DownCommand{ID: c.id})
	w.until(20*time.Second, "let in", func() bool { return d.m.Waiting().For == WaitNothing })
}

// JOIN-2: the end of a node that was not admitted in time says what it waited for.
func TestJoinTimeoutSaysWhatItWaitedFor(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.JoinTimeout = 3 * time.Second
	a := w.start(2)
	w.join(a, 1)
	w.run(5 * time.Second)
	require.NotNil(t, a.ended)
	require.Equal(t, "not admitted within 3s: no seed answers: 10.0.0.1:7355", a.ended.Reason)
}
