// Tests of the machine: look-ups and their failures, probes, promises, and what it says of itself (BOOT-2 to BOOT-8).

package formation

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const second = time.Second

// tried is a machine at a host, and what it wants done.
type tried struct {
	*Machine
	t   *testing.T
	now time.Duration
	out Effects
}

func try(t *testing.T, host string, cfg Config) *tried {
	t.Helper()
	cfg.Cluster, cfg.Self, cfg.Point = "market", node(host), contact(host)
	require.NoError(t, cfg.Validate())
	m := &tried{Machine: New(cfg, rand.New(rand.NewPCG(1, 2))), t: t}
	m.at(0)
	require.True(t, m.out.LookUp)
	return m
}

// at lets time pass, and drains.
func (m *tried) at(now time.Duration) {
	m.now = now
	m.Tick(now)
	m.Drain(&m.out)
}

func contacts(hosts ...string) (list []peer.Addr) {
	for _, h := range hosts {
		list = append(list, contact(h))
	}
	return list
}

// see makes a look-up show these hosts now, and all of them answer that they are in no cluster.
func (m *tried) see(hosts ...string) {
	m.LookedUp(m.now, contacts(hosts...), "")
	for _, h := range hosts {
		m.Probed(m.now, contact(h), Reply{Cluster: "market", Node: node(h), Wire: wire.Spoken()}, "")
	}
	m.Drain(&m.out)
}

// until repeats that each second until a time.
func (m *tried) until(end time.Duration, hosts ...string) {
	for m.now < end {
		m.at(m.now + second)
		m.see(hosts...)
	}
}

func (m *tried) holds(want Hold) {
	m.t.Helper()
	e := m.Explain(m.now)
	require.Equal(m.t, want, e.Hold, "%s", e.Detail)
	require.NotEmpty(m.t, e.Detail)
}

// Look-ups are repeated for ever, after failures with a growing pause that ends at fifteen seconds. A failure keeps the
// last answer and its age, and does not begin the margin anew (BOOT-7).
func TestFailedLookUpKeepsTheLastAnswer(t *testing.T) {
	m := try(t, hostA, Config{Expected: 3})
	m.holds(HoldUnknown)
	m.see(hostA, hostB, hostC)
	at, pauses := m.now, []time.Duration(nil)
	for range 9 {
		for m.out.LookUp = false; !m.out.LookUp; m.at(m.now + 50*time.Millisecond) {
			require.Less(t, m.now, at+20*second)
		}
		pauses = append(pauses, m.now-at)
		at = m.now
		m.LookedUp(m.now, nil, "no answer")
		m.Drain(&m.out)
	}
	for i, want := range []float64{1, 1, 2, 4, 8, 15, 15, 15} { // and up to a fifth more
		require.InDelta(t, 1.1*want, pauses[i].Seconds(), 0.1*want+0.05, "%v", pauses)
	}
	e := m.Explain(m.now)
	require.Len(t, e.Points, 3)
	require.Equal(t, "no answer", e.LookupFailed)
	require.Equal(t, 9, e.Failures)
	require.Greater(t, e.LookupAge, 50*second)

	m.see(hostA, hostB, hostC)
	e = m.Explain(m.now)
	require.Greater(t, e.Stable, 50*second, "the same as before the failures")
	require.Zero(t, e.Failures)
	m.at(m.now + second)
	require.NotEmpty(t, m.out.Asks, "it wants to form the cluster")
}

// What look-ups show begins the margin anew when it changes, in any way, and only then (BOOT-4, BOOT-7).
func TestChangesBeginTheMarginAnew(t *testing.T) {
	for name, change := range map[string][]string{"one more": {hostA, hostB, hostC, "10.0.0.9"},
		"one less": {hostA, hostB}, "another": {hostA, hostB, "10.0.0.9"}, "nobody": nil} {
		m := try(t, hostA, Config{Required: 2})
		m.see(hostA, hostB, hostC)
		m.until(4*second, hostC, hostB, hostA) // the order does not matter
		m.see(change...)
		m.until(8*second, hostA, hostB, hostC)
		require.Zero(t, m.claim.attempt, name)
		m.until(11*second, hostA, hostB, hostC)
		require.NotZero(t, m.claim.attempt, name)
	}
}

// An operator's word ends the search at any stage: an attempt is given up and the nodes that have promised themselves
// are notified, nothing is looked up, probed, promised or decided any more, until the node is a member (BOOT-3, MEM-9).
func TestToldEndsTheSearch(t *testing.T) {
	told := []peer.Addr{node("10.0.0.9").Addr}
	for name, bring := range map[string]func(*tried){
		"looks": func(m *tried) { m.see(hostA, hostB) },
		"has promised itself": func(m *tried) {
			m.see(hostA, hostB, hostC)
			ask := Ask{Cluster: "market", From: node(hostC), Point: contact(hostC), Attempt: 1, Wants: true}
			require.True(t, m.Asked(m.now, ask).Granted)
		},
		"wants to form": func(m *tried) { m.until(7*second, hostA, hostB, hostC) },
		"forms": func(m *tried) {
			m.until(7*second, hostA, hostB, hostC)
			for _, host := range []string{hostB, hostC} {
				m.Answered(m.now, contact(host), Answer{Reply: answers(host)[0].Reply, Granted: true, Attempt: 1})
			}
		},
		"joins": func(m *tried) {
			m.LookedUp(m.now, contacts(hostA, hostB), "")
			r := Reply{Cluster: "market", Node: node(hostB), Wire: wire.Spoken(), ClusterID: 5, Seeds: told}
			m.Probed(m.now, contact(hostB), r, "")
		},
	} {
		m := try(t, hostA, Config{Expected: 3})
		bring(m)
		claimed := m.claim.on()
		require.Equal(t, strings.Contains(name, "form"), claimed, name)
		m.Told(m.now, told)
		m.Told(m.now, told)
		m.Drain(&m.out)
		require.Equal(t, Effects{Probes: m.out.Probes[:0], Asks: m.out.Asks}, m.out, name)
		gaveUp := 0
		for _, a := range m.out.Asks {
			require.Equal(t, uint64(1), a.Ask.Attempt)
			if !a.Ask.Wants {
				gaveUp++
			}
		}
		require.Equal(t, map[bool]int{true: 2}[claimed], gaveUp, name)
		_, next := m.Next()
		require.False(t, next, name)
		m.until(60*second, hostA, hostB, hostC)
		require.Empty(t, m.out.Probes, name)
		require.Nil(t, m.out.Join, name)
		require.False(t, m.out.LookUp, name)
		require.False(t, m.Asked(m.now, Ask{Cluster: "market", From: node(hostB), Point: contact(hostB), Attempt: 9,
			Wants: true}).Granted, name)
		e := m.Explain(m.now)
		require.Equal(t, JoinCluster, e.Action, name)
		require.Equal(t, told, e.Seeds, name)
		require.Contains(t, e.Detail, "an operator")
		require.True(t, e.Promised.IsZero(), name)
		require.False(t, m.Reply().Forms, name)
		require.Zero(t, m.Reply().ClusterID, name)
		m.Joined(m.now, 7, told)
		m.Told(m.now, told)
		require.Equal(t, uint64(7), m.Reply().ClusterID, name)

		other := peer.ID{Addr: node(hostA).Addr, Inc: 8}
		m.GoesOn(m.now, other)
		require.Equal(t, Reply{Cluster: "market", Node: other, Wire: wire.Spoken(), Ended: m.claim.ended}, m.Reply(), name)
		require.False(t, m.Explain(m.now).Member, name)
		m.Told(m.now, told)
		require.Equal(t, told, m.Explain(m.now).Seeds, name)
		m.Joined(m.now, 9, told)
		require.Equal(t, uint64(9), m.Reply().ClusterID, name)
	}
}

// A claim needs the promise of all that have confirmed that it is in no cluster; then the cluster is formed, once
// (BOOT-4, BOOT-7).
func TestFormsWithAllPromises(t *testing.T) {
	m := try(t, hostA, Config{Expected: 3})
	m.see(hostA, hostB, hostC)
	m.until(6*second, hostA, hostB, hostC)
	m.holds(HoldClaiming)
	require.Equal(t, uint64(1), m.claim.attempt)
	grant := func(host string, attempt uint64) {
		m.Answered(m.now, contact(host), Answer{Reply: Reply{Cluster: "market", Node: node(host), Wire: wire.Spoken()},
			Granted: true, Attempt: attempt})
		m.Drain(&m.out)
	}
	grant(hostB, 1)
	grant(hostB, 1)
	grant(hostC, 7)
	require.Nil(t, m.out.Join, "the same promise twice, and one for another attempt")
	require.False(t, m.Reply().Forms)
	grant(hostC, 1)
	require.Equal(t, &Join{Seeds: []peer.Addr{node(hostA).Addr, node(hostB).Addr, node(hostC).Addr}, Form: true,
		Voters: []peer.ID{node(hostA), node(hostB), node(hostC)}}, m.out.Join)
	require.True(t, m.Reply().Forms)
	require.Equal(t, FormCluster, m.Explain(m.now).Action)
	m.until(20*second, hostA, hostB, hostC)
	require.Nil(t, m.out.Join)
	require.False(t, m.Asked(m.now, Ask{Cluster: "market", From: node("10.0.0.1"), Attempt: 1, Wants: true}).Granted)

	m.Joined(m.now, 5, []peer.Addr{node(hostA).Addr})
	require.Equal(t, Reply{Cluster: "market", Node: node(hostA), Wire: wire.Spoken(), ClusterID: 5,
		Seeds: []peer.Addr{node(hostA).Addr}}, m.Reply())
	_, ok := m.Next()
	require.False(t, ok)
	require.True(t, m.Explain(m.now).Member)
	require.False(t, m.Asked(m.now, Ask{Cluster: "market", From: node("10.0.0.1"), Attempt: 1, Wants: true}).Granted)
}

// An attempt that gets no answer is given up, the asked nodes are notified, and another one follows (BOOT-4).
func TestAttemptIsGivenUp(t *testing.T) {
	m := try(t, hostA, Config{Expected: 2})
	m.see(hostA, hostB)
	m.until(6*second, hostA, hostB)
	require.True(t, m.claim.on())
	var asked []Ask
	for m.now < 12*second {
		m.at(m.now + second)
		for _, a := range m.out.Asks {
			require.Equal(t, contact(hostB), a.Point)
			asked = append(asked, a.Ask)
		}
		m.see(hostA, hostB)
		for _, a := range m.out.Asks {
			asked = append(asked, a.Ask)
		}
	}
	require.GreaterOrEqual(t, len(asked), 2)
	require.Equal(t, Ask{Cluster: "market", From: node(hostA), Point: contact(hostA), Attempt: 1}, asked[0])
	require.Equal(t, Ask{Cluster: "market", From: node(hostA), Point: contact(hostA), Attempt: 2, Wants: true}, asked[1])
	require.GreaterOrEqual(t, m.Reply().Ended, uint64(1))
}

// A node that has promised itself promises no other, this node's own attempt included, until it is released: by word,
// by another process at the address, or by long silence (BOOT-4, BOOT-7).
func TestPromises(t *testing.T) {
	ask := func(m *tried, host string, attempt uint64, wants bool) bool {
		a := m.Asked(m.now, Ask{Cluster: "market", From: node(host), Point: contact(host), Attempt: attempt, Wants: wants})
		m.Drain(&m.out)
		return a.Granted
	}
	begin := func() *tried {
		m := try(t, hostC, Config{Required: 2})
		m.see(hostC, "10.0.0.9")
		require.True(t, ask(m, hostA, 1, true))
		require.True(t, ask(m, hostA, 1, true), "again, for the answer may be lost")
		require.False(t, ask(m, hostB, 1, true))
		m.until(20*second, hostC, "10.0.0.9")
		return m
	}
	said := func(m *tried, reply Reply) {
		reply.Cluster, reply.Wire = "market", wire.Spoken()
		m.Probed(m.now, contact(hostA), reply, "")
		m.Drain(&m.out)
	}
	m := begin()
	require.Zero(t, m.claim.attempt, "it is the lowest of those that it sees, and has promised itself")
	m.holds(HoldPromised)
	require.NotNil(t, m.point(contact(hostA)), "it asks the one that it promised itself to, whom no look-up shows")
	require.True(t, ask(m, hostA, 2, true), "a later attempt of the same process")
	require.False(t, ask(m, hostB, 1, true))

	for name, release := range map[string]func(m *tried){
		"by word":          func(m *tried) { ask(m, hostA, 1, false) },
		"by a later word":  func(m *tried) { ask(m, hostA, 3, false) },
		"by a reply":       func(m *tried) { said(m, Reply{Node: node(hostA), Ended: 1}) },
		"by its successor": func(m *tried) { said(m, Reply{Node: peer.ID{Addr: node(hostA).Addr, Inc: 8}}) },
		"by its successor's wish": func(m *tried) {
			m.Asked(m.now, Ask{Cluster: "market", From: peer.ID{Addr: node(hostA).Addr, Inc: 8}, Attempt: 1})
		},
		"by silence": func(m *tried) { m.at(m.now + 31*second) },
	} {
		m := begin()
		release(m)
		require.True(t, ask(m, hostB, 1, true), name)
	}
	for name, keep := range map[string]func(m *tried){
		"a word of another":     func(m *tried) { ask(m, hostB, 1, false) },
		"a word of long ago":    func(m *tried) { m.promise.attempt = 2; ask(m, hostA, 1, false) },
		"an attempt goes on":    func(m *tried) { said(m, Reply{Node: node(hostA), Ended: 0}) },
		"it is in a cluster":    func(m *tried) { said(m, Reply{Node: node(hostA), Ended: 1, ClusterID: 4}) },
		"another name":          func(m *tried) { m.Asked(m.now, Ask{Cluster: "x", From: node(hostA), Attempt: 1}) },
		"it is heard, and late": func(m *tried) { said(m, Reply{Node: node(hostA)}); m.at(m.now + 29*second) },
	} {
		m := begin()
		keep(m)
		require.False(t, ask(m, hostB, 1, true), name)
	}
	m = begin()
	said(m, Reply{Node: node(hostA), ClusterID: 4, Seeds: []peer.Addr{node(hostA).Addr}})
	require.Equal(t, &Join{Seeds: []peer.Addr{node(hostA).Addr}}, m.out.Join, "it joins whom it promised itself to")
}

// Of two that want to form the cluster the lower address goes on (BOOT-4).
func TestLowerAddressGoesFirst(t *testing.T) {
	for host, yields := range map[string]bool{hostA: true, hostC: false} {
		m := try(t, hostB, Config{Required: 2})
		m.see(hostB, "10.0.0.9")
		m.until(6*second, hostB, "10.0.0.9")
		require.True(t, m.claim.on())
		a := m.Asked(m.now, Ask{Cluster: "market", From: node(host), Attempt: 1, Wants: true})
		m.Drain(&m.out)
		require.Equal(t, yields, a.Granted)
		require.Equal(t, !yields, m.claim.on())
		if yields {
			require.Equal(t, []AskTo{{contact("10.0.0.9"), Ask{Cluster: "market", From: node(hostB), Point: contact(hostB),
				Attempt: 1}}}, m.out.Asks)
		} else {
			require.Equal(t, node(hostB), a.Holder)
		}
	}
}

// A node that shows a cluster is joined at once, also when the seeds change before that has come about (BOOT-3).
func TestJoinsAtOnce(t *testing.T) {
	m := try(t, hostC, Config{Expected: 3})
	m.LookedUp(0, contacts(hostA, hostC), "")
	m.Drain(&m.out)
	require.Equal(t, contacts(hostA, hostC), m.out.Probes, "this node's own contact point is asked like any other")
	reply := Reply{Cluster: "market", Node: node(hostA), Wire: wire.Spoken(), ClusterID: 5,
		Seeds: []peer.Addr{node(hostA).Addr}}
	m.Probed(m.now, contact(hostA), reply, "")
	m.Drain(&m.out)
	require.Equal(t, &Join{Seeds: []peer.Addr{node(hostA).Addr}}, m.out.Join)
	m.at(2 * second)
	require.Nil(t, m.out.Join)
	reply.Seeds = []peer.Addr{node(hostB).Addr, node(hostA).Addr}
	m.Probed(m.now, contact(hostA), reply, "")
	m.Drain(&m.out)
	require.Equal(t, reply.Seeds, m.out.Join.Seeds)
	require.False(t, m.Asked(m.now, Ask{Cluster: "market", From: node(hostB), Attempt: 1, Wants: true}).Granted)
}

// Neither too many points, nor too many seeds, nor a node without a name change anything (SEC-5).
func TestBadInput(t *testing.T) {
	m := try(t, hostA, Config{Expected: 3})
	m.see(hostA, hostB)
	m.LookedUp(m.now, make([]peer.Addr, MaxPoints+1), "")
	require.Len(t, m.Explain(m.now).Points, 2)
	require.Contains(t, m.Explain(m.now).LookupFailed, "at most 256")
	bad := Reply{Cluster: "market", Node: node(hostB), Wire: wire.Spoken(), ClusterID: 5, Seeds: make([]peer.Addr, 6)}
	m.Probed(m.now, contact(hostB), bad, "")
	m.Probed(m.now, contact(hostB), Reply{Cluster: "market"}, "")
	m.Probed(m.now, contact("10.9.9.9"), Reply{Cluster: "market", Node: node(hostC)}, "")
	require.Zero(t, m.Explain(m.now).Points[1].Reply.ClusterID)
	require.False(t, m.Asked(m.now, Ask{Cluster: "market", From: node(hostB), Wants: true}).Granted, "attempt 0")
	m.Drain(&m.out)
	require.Nil(t, m.out.Join)
}

// wish is a decider of somebody's own.
type wish Decision

func (w wish) Decide(Info) Decision { return Decision(w) }

// A decider of one's own may choose, within the rules: members of this name that are named, promises of enough nodes
// (BOOT-6).
func TestDecider(t *testing.T) {
	stranger := peer.MustAddr("10.9.9.9:1")
	for _, c := range []struct {
		name string
		wish Decision
		hold Hold
	}{
		{"seeds that nobody names", Decision{Action: JoinCluster, Seeds: []peer.Addr{stranger}}, HoldDecider},
		{"what does not exist", Decision{Action: actions}, HoldDecider},
		{"waits", Decision{Hold: HoldUnstable, Detail: "for luck"}, HoldUnstable},
		{"waits without a word", Decision{}, HoldDecider},
		{"forms before the margin", Decision{Action: FormCluster}, HoldClaiming},
	} {
		m := try(t, hostC, Config{Expected: 3, Decider: wish(c.wish)})
		m.see(hostA, hostB, hostC)
		m.at(second)
		m.holds(c.hold)
		require.Nil(t, m.out.Join, c.name)
	}
	m := try(t, hostA, Config{Expected: 3, Decider: wish{Action: FormCluster}})
	m.see(hostA)
	m.at(second)
	m.holds(HoldDecider)
	m = try(t, hostA, Config{Expected: 1, NeverForm: true, Decider: wish{Action: FormCluster}})
	m.see(hostA)
	m.at(second)
	m.holds(HoldDecider)
}
