// Control messages in the simulator: a full window, and checkers that must cry out (FD-4).

package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// TestFullWindow: with a window of two messages and segments that do not arrive for a while, most of what the
// coordinator has to say finds no room. It is refused, counted, and said again when there is: every home is found, and
// nobody is given up for it.
func TestFullWindow(t *testing.T) {
	var types []*world.EntityType
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		types = append(types, &world.EntityType{Type: entity.Type{Name: name, Shards: 4, Mode: entity.Inline, New: silent}})
	}
	w := formed(t, 3, setup.Config{Courier: node.CourierConfig{Messages: 2}}, types...)
	checks(w).CalmMail = true
	w.Net.Swallows = func(_, _ int, kind wire.Kind) bool { return kind == wire.KindSegment }
	want := func() (missing int) {
		for _, h := range w.Hosts {
			for _, r := range h.Process.Regions {
				missing += r.Homeless()
			}
		}
		return missing
	}
	for _, h := range w.Hosts {
		for _, r := range h.Process.Regions {
			for n := range r.Type.Shards {
				h.Process.Do(shard.WantCommand{Type: r.ID, Shards: []route.ShardID{route.ShardID(n)}})
			}
		}
	}
	w.Advance(5 * time.Second)
	first := w.Hosts[0].Process
	require.Positive(t, first.Node.Courier().Full)
	require.LessOrEqual(t, first.Node.Courier().Outstanding, 4, "two to each of two")
	w.Net.Swallows = nil
	require.True(t, w.Until(20*time.Second, func() bool { return want() == 0 }), "%d homes are not known", want())
	require.True(t, w.Until(5*time.Second, func() bool { return checks(w).Undelivered() == "" }))
	require.Empty(t, checks(w).Violations)
}

// TestCourierCheckerCriesOut: each of its rules, broken once.
func TestCourierCheckerCriesOut(t *testing.T) {
	w := formed(t, 2, setup.Config{})
	a, b := w.Hosts[0].Process, w.Hosts[1].Process
	post := func(seq uint64, body string) {
		p := courier.Segment{From: a.ID.Inc, To: b.ID.Inc, Seq: seq, Kind: wire.KindHomes, Body: []byte(body)}
		checks(w).Posted(a, &peer.Mail{To: b.ID, Kind: wire.KindSegment, Body: courier.AppendSegment(nil, &p)})
	}
	hear := func(body string) {
		checks(w).Received(b, &node.Received{From: a.ID, Kind: wire.KindHomes, Body: []byte(body)})
	}
	begin := func() {
		checks(w).Violations, checks(w).streams = nil, map[pairKey]*sentMessages{}
		post(1, "one")
		post(2, "two")
		post(1, "one")
		require.Contains(t, checks(w).Undelivered(), "2 of 2 control messages of n1 to n2")
		hear("one")
		require.Empty(t, checks(w).Violations)
	}
	for name, broken := range map[string]func(){
		"twice":             func() { hear("one") },
		"out of order":      func() { post(3, "three"); hear("three") },
		"never sent":        func() { hear("two"); hear("three") },
		"another message":   func() { post(2, "zwei") },
		"a number left out": func() { post(4, "four") },
		"no segment":        func() { checks(w).Posted(a, &peer.Mail{To: b.ID, Kind: wire.KindSegment, Body: []byte{1}}) },
	} {
		begin()
		broken()
		require.Len(t, checks(w).Violations, 1, name)
		require.Equal(t, "courier", checks(w).Violations[0].Rule)
	}
	begin()
	hear("two")
	require.Empty(t, checks(w).Undelivered())
	require.Empty(t, checks(w).Violations)
}

// TestWhoMayBeGivenUp: a living peer over a path that is closed, and never over one that is open; each is judged once,
// at its observer.
func TestWhoMayBeGivenUp(t *testing.T) {
	w := formed(t, 3, setup.Config{})
	a, b, other := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
	member, ok := a.View.Member(b.ID)
	require.True(t, ok)
	said := func(p *world.Process, kind membership.EventKind) int {
		checks(w).Violations = nil
		checks(w).quarantined(p, &membership.Event{Kind: kind, Member: member, By: a.ID, Why: "it is deaf"})
		return len(checks(w).Violations)
	}
	require.Zero(t, said(a, membership.MemberQuarantined), "nobody says that mail is calm")
	checks(w).CalmMail = true
	require.Equal(t, 1, said(a, membership.MemberQuarantined))
	require.Zero(t, said(other, membership.MemberQuarantined))
	require.Equal(t, 1, said(a, membership.SelfSuspected))
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		w.Net.Cuts[way[0]][way[1]] = true
		require.Zero(t, said(a, membership.MemberQuarantined))
		require.Equal(t, 1, said(a, membership.SelfSuspected))
		w.Net.Cuts[way[0]][way[1]] = false
	}
	b.Crash(false)
	require.Zero(t, said(a, membership.MemberQuarantined))
}
