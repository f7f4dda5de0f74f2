// Tests of the rules of availability: whom a strategy obliges to live, what the checker says when they do not.

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
)

// watched returns n formed nodes that are well, and whose faults the checker is told of from now on.
func watched(t *testing.T, n int, cfg Config) *world {
	w := formed(t, n, cfg)
	checks(w).core.watch(checks(w))
	checks(w).core.take()
	return w
}

// severs cuts hosts off from all others, numbered from 0.
func severs(w *world, hosts ...int) {
	for a := range w.hosts {
		for b := range w.hosts {
			for _, h := range hosts {
				w.net.cuts[a][b] = w.net.cuts[a][b] || (a == h) != (b == h)
			}
		}
	}
	checks(w).core.links()
}

func crash(w *world, host int) { w.hosts[host].proc.crash(host%2 == 0) }

func pair(w *world, a, b int) {
	w.net.cuts[a][b] = true
	checks(w).core.links()
}

// mended cuts two hosts off from each other and ends all cuts.
func mended(w *world, a, b int) {
	severs(w, a, b)
	w.net.heal()
	checks(w).core.links()
}

// TestWhomAStrategyObliges: healthy members who have heard each other all the time, when they live by the strategy
// whoever of the others counts (MEM-10).
func TestWhomAStrategyObliges(t *testing.T) {
	strategy := func(s node.Strategy) node.Resolver { return node.Resolver{Strategy: s, QuorumSize: 3} }
	majority := strategy(node.ResolverKeepMajority)
	for name, k := range map[string]struct {
		r    node.Resolver
		do   func(w *world)
		want string // hosts from 1
	}{
		"nothing happened":        {majority, func(*world) {}, "12345"},
		"a crash":                 {majority, func(w *world) { crash(w, 1) }, "1345"},
		"two crashes":             {majority, func(w *world) { crash(w, 1); crash(w, 4) }, "134"},
		"three crashes":           {majority, func(w *world) { crash(w, 1); severs(w, 3, 4) }, ""},
		"a cut":                   {majority, func(w *world) { severs(w, 0, 1) }, "345"},
		"a cut that is mended":    {majority, func(w *world) { mended(w, 0, 1) }, "345"},
		"a pair":                  {majority, func(w *world) { pair(w, 0, 1) }, "345"},
		"somebody in between":     {majority, func(w *world) { pair(w, 0, 1); pair(w, 0, 2); pair(w, 0, 3) }, ""},
		"a pause":                 {majority, func(w *world) { w.hosts[0].proc.pause(time.Minute) }, "2345"},
		"a brief one":             {majority, func(w *world) { w.hosts[0].proc.pause(brief) }, "12345"},
		"who leaves":              {majority, func(w *world) { w.leave(w.hosts[2].proc) }, "1245"},
		"who comes back counts":   {majority, func(w *world) { w.start(1, nil); severs(w, 0, 1) }, ""},
		"a quorum":                {strategy(node.ResolverStaticQuorum), func(w *world) { severs(w, 0, 1) }, "345"},
		"too many for the quorum": {strategy(node.ResolverStaticQuorum), func(w *world) { w.start(1, nil) }, ""},
		"beside the oldest":       {strategy(node.ResolverKeepOldest), func(w *world) { severs(w, 2, 3, 4) }, "12"},
		"without the oldest":      {strategy(node.ResolverKeepOldest), func(w *world) { crash(w, 0) }, ""},
		"the lease for the last":  {strategy(node.ResolverLeaseMajority), func(w *world) { crash(w, 4) }, "1234"},
		"the lease for somebody":  {strategy(node.ResolverLeaseMajority), func(w *world) { severs(w, 4) }, ""},
		"all go":                  {strategy(node.ResolverDownAll), func(w *world) { severs(w, 4) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := watched(t, 5, Config{Resolver: k.r})
			k.do(w)
			var names strings.Builder
			for _, p := range checks(w).core.obliged() {
				fmt.Fprint(&names, p.idx+1)
			}
			require.Equal(t, k.want, names.String())
		})
	}
}

// TestAvailabilityCriesOut: a healthy majority that stops, goes or stands still breaks a rule, whatever brought it
// there (MEM-10).
func TestAvailabilityCriesOut(t *testing.T) {
	stops := func(cause membership.Cause) *node.Decision { return &node.Decision{Cause: cause} }
	for name, k := range map[string]struct {
		want []string
		do   func(w *world, a, lost *proc)
	}{
		"it stops": {[]string{"obliged"}, func(w *world, a, _ *proc) {
			checks(w).core.decided(a, stops(membership.CauseResolver))
		}},
		"who is lost stops": {nil, func(w *world, _, lost *proc) {
			checks(w).core.decided(lost, stops(membership.CauseResolver))
		}},
		"it suspends": {[]string{"obliged"}, func(w *world, a, _ *proc) {
			checks(w).core.still[a.id] = w.now - 6*time.Second
			a.suspend(&node.Suspend{On: true, Why: "a reason"})
		}},
		"it suspends while somebody who lives may confirm": {nil, func(w *world, a, lost *proc) {
			w.until(time.Minute, func() bool { return a.view.Unreachable.Has(lost.id) })
			w.advance(2 * time.Second)
			checks(w).core.still[a.id] = w.now - 8*time.Second
			v, was := *a.view, *a.view
			v.Accusations = append(slices.Clone(v.Accusations), membership.Accusation{Observer: lost.id, Subject: lost.id})
			checks(w).core.hears(a, &v, &was)
			w.now += checks(w).core.spread(a) - 1
			a.suspend(&node.Suspend{On: true, Why: "one more does not hear it"})
		}},
		"it suspends while it may be indirectly connected": {nil, func(w *world, a, lost *proc) {
			w.until(time.Minute, func() bool { return a.view.Unreachable.Has(lost.id) })
			w.advance(time.Second)
			checks(w).core.still[a.id] = w.now - 8*time.Second
			checks(w).core.back[membership.Accusation{Observer: w.hosts[2].proc.id, Subject: lost.id}] = true
			a.suspend(&node.Suspend{On: true, Why: "another hears one who is lost"})
		}},
		"it suspends for a moment": {nil, func(w *world, a, _ *proc) {
			checks(w).core.still[a.id] = w.now - time.Second
			a.suspend(&node.Suspend{On: true, Why: "its picture has just changed"})
		}},
		"it suspends, having slept": {nil, func(w *world, a, _ *proc) {
			checks(w).core.still[a.id] = w.now - 8*time.Second
			a.pause(brief)
			a.suspend(&node.Suspend{On: true, Why: "it overslept a decision"})
		}},
		"it is downed by its own": {[]string{"obliged"}, func(w *world, a, _ *proc) {
			downs(w, w.hosts[0].proc, a)
		}},
		"it is downed by the lost": {nil, func(w *world, a, lost *proc) { downs(w, lost, a) }},
		"it ends": {[]string{"obliged"}, func(w *world, a, _ *proc) {
			checks(w).core.ends(a, &membership.Ended{Kind: membership.EndIsolated})
		}},
		"a picture that moves": {nil, func(w *world, a, _ *proc) {
			checks(w).core.still[a.id] = w.now - time.Second
			checks(w).core.decided(a, stops(membership.CauseUnstable))
		}},
		"a picture that stands still": {[]string{"obliged"}, func(w *world, a, _ *proc) {
			checks(w).core.still[a.id] = w.now - 6*time.Second
			checks(w).core.decided(a, stops(membership.CauseUnstable))
		}},
		"nobody decides": {[]string{"progress"}, func(w *world, _, _ *proc) {
			w.now += w.takeover() + progressBound
			checks(w).core.look()
		}},
		"it decides": {nil, func(w *world, _, _ *proc) {
			w.advance(w.takeover() + progressBound)
			checks(w).core.look()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watched(t, 5, Config{})
			severs(w, 4)
			w.advance(6 * time.Second)
			require.Empty(t, checks(w).violations)
			if k.want != nil && k.want[0] == "progress" {
				for _, p := range w.running() {
					feignDeaf(p) // no deadline comes any more
				}
			}
			k.do(w, w.hosts[1].proc, w.hosts[4].proc)
			var rules []string
			for _, v := range checks(w).violations {
				rules = append(rules, v.Rule)
			}
			require.Equal(t, k.want, rules, "%v", checks(w).violations)
		})
	}
}

// TestTwoSurvivorsAtAnyTime: two sides that have downed each other are asked whether both live for as long as both run,
// not only when the takeover time ends (MEM-10).
func TestTwoSurvivorsAtAnyTime(t *testing.T) {
	w := formed(t, 2, Config{Resolver: resolverOff})
	a, b := w.hosts[0].proc, w.hosts[1].proc
	a.pause(w.takeover() + 10*time.Second)
	checks(w).buried[reportKey{a.id, b.id}], checks(w).buried[reportKey{b.id, a.id}] = true, true
	w.after(w.takeover(), func() { checks(w).bothLive(a, b) })
	w.net.cuts[0][1], w.net.cuts[1][0] = true, true
	w.advance(w.takeover() + 5*time.Second)
	require.Empty(t, checks(w).violations)
	feignAwake(a)
	feignSuspended(b, false)
	w.advance(sidesEvery)
	require.Len(t, checks(w).violations, 1)
	require.Equal(t, "two-survivors", checks(w).violations[0].Rule)
}
