// Conformance: the reference's scenario of the decider, with its values, for the decider and for the machine.

package formation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// F-M2: three are required, the margin is 5 s, contact points A (10.0.0.2), B (.3) and C (.4), this node is A where
// nothing else is said (BOOT-3, BOOT-4, BOOT-5).
func TestConformanceJoinDecider(t *testing.T) {
	all := answers(hostA, hostB, hostC)
	for _, c := range []struct {
		name   string
		self   string
		never  bool
		points []Observed
		stable time.Duration
		want   Decision
	}{
		{"one observation with seeds", hostA, false, with(all[1:2], 0, member(5, hostB)), 0,
			Decision{Action: JoinCluster, Seeds: []peer.Addr{node(hostB).Addr}}},
		{"all empty, changed 2 s ago", hostA, false, all, 2 * time.Second, Decision{Hold: HoldUnstable}},
		{"only A and B known", hostA, false, all[:2], 6 * time.Second, Decision{Hold: HoldTooFew}},
		{"A, B and C known, only A and B answered", hostA, false, with(all, 2, silent), 6 * time.Second,
			Decision{Hold: HoldTooFew}},
		{"all answered, changed 6 s ago", hostA, false, all, 6 * time.Second, Decision{Action: FormCluster}},
		{"the same, new clusters off", hostA, true, all, 6 * time.Second, Decision{Hold: HoldNeverForm}},
		{"the same on 10.0.0.3", hostB, false, all, 6 * time.Second, Decision{Hold: HoldNotLowest}},
	} {
		d := LowestAddress{}.Decide(Info{Self: node(c.self), Required: 3, Margin: 5 * time.Second, Stable: c.stable,
			Known: true, NeverForm: c.never, Points: c.points})
		require.Equal(t, d.Action == KeepLooking, d.Detail != "", c.name)
		d.Detail = ""
		require.Equal(t, c.want, d, c.name)
	}
}

// F-M2 over time. Stricter than the reference: what would join itself there, after the margin, asks B and C for their
// promise here, and forms the cluster with both (BOOT-4, BOOT-7).
func TestConformanceJoinDeciderOverTime(t *testing.T) {
	abc := []string{hostA, hostB, hostC}
	m := try(t, hostA, Config{Required: 3, Margin: 5 * second})
	m.see(abc[:2]...)
	m.until(10*second, abc[:2]...)
	m.holds(HoldTooFew)
	m.LookedUp(m.now, contacts(abc...), "")
	m.Drain(&m.out)
	m.holds(HoldTooFew)
	changed := m.now
	m.until(changed+2*second, abc...)
	m.holds(HoldUnstable)
	require.Nil(t, m.out.Join)
	m.until(changed+6*second, abc...)
	m.holds(HoldClaiming)
	require.Nil(t, m.out.Join, "the reference joins itself now")
	for _, host := range abc[1:] {
		require.Nil(t, m.out.Join)
		r := answers(host)[0].Reply
		m.Answered(m.now, contact(host), Answer{Reply: r, Granted: true, Attempt: 1})
		m.Drain(&m.out)
	}
	require.True(t, m.out.Join.Form)

	for name, m := range map[string]*tried{
		"new clusters off": try(t, hostA, Config{Required: 3, Margin: 5 * second, NeverForm: true}),
		"on 10.0.0.3":      try(t, hostB, Config{Required: 3, Margin: 5 * second}),
	} {
		m.see(abc...)
		m.until(6*second, abc...)
		m.holds(map[bool]Hold{true: HoldNeverForm, false: HoldNotLowest}[m.cfg.NeverForm])
		require.Zero(t, m.claim.attempt, name)
	}
}
