// Tests of the agenda: a step looks at the types that it has touched and at those that are due, and at no other.

package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// checkAgenda demands behind every step that types at which no step looks have nothing to do, and are due when they
// say; so each test of this package is one of the agenda, those of chaos before all.
func (n *testNode) checkAgenda() {
	m, w := n.m, n.w
	first, refused, unsure := least{}, 0, 0
	for _, id := range m.agenda.order {
		t := m.types[id]
		var d least
		if g := t.region; g != nil {
			d.add(g.next())
			d.add(measureAt(m, t))
			refused += bit(g.refused != nil)
			unsure += bit(g.refused == nil && !g.joined && !g.to.IsZero())
			require.Empty(w.t, append(g.started, g.stopped...), "answers of type %s wait for nothing", id)
		}
		if c := t.coord; c != nil {
			d.add(c.next())
			require.True(w.t, t.planned.touched || len(c.moves.rounds.plan) == 0 && c.moves.rounds.began == 0,
				"a round of type %s waits for nothing", id)
			for _, p := range c.clients {
				require.Zero(w.t, len(p.outGone)+len(p.outHomes)+len(p.outHost)+len(p.outStop)+len(p.outMove))
			}
		}
		require.Equal(w.t, d.at, t.planned.due, "type %s is due", id)
		first.add(d.at)
	}
	require.Equal(w.t, first.at, m.agenda.next())
	require.Equal(w.t, refused, m.agenda.refused)
	require.Equal(w.t, unsure, m.agenda.unsure)
}

// What one type needs costs no look at others, however many there are: only what the step touches, and what is due.
func TestStepLooksAtFewTypes(t *testing.T) {
	w := startWorld(t, 2)
	const types = 300
	settings := func(i int) Settings { return Settings{Name: fmt.Sprintf("type-%d", i), Shards: 4} }
	for i := range types {
		w.registerAll(settings(i))
	}
	w.pass(30 * time.Second)
	for _, n := range w.nodes {
		m := n.m
		require.Len(t, m.agenda.order, types)
		require.Empty(t, m.agenda.touched)
		typeOf(m, settings(7).ID())
		m.agenda.touchDue(w.now)
		require.Len(t, m.agenda.rising(), 1, "nothing else is due in a cluster at rest")
		m.end()
	}
	w.nodes[1].want(settings(8), 1)
	w.flow()
	w.agree(settings(8), 1)
}

// However types become due, the first is known, and those that are due are found.
func TestAgendaOrder(t *testing.T) {
	var a agenda
	all := make([]*typ, 50)
	for i := range all {
		all[i] = &typ{}
	}
	x := uint32(1)
	for range 5000 {
		x = x*1664525 + 1013904223
		a.move(all[x>>8%uint32(len(all))], time.Duration(x>>20%40))
		var first least
		now := time.Duration(x >> 12 % 40)
		due := 0
		for _, t := range all {
			first.add(t.planned.due)
			due += bit(t.planned.due != 0 && t.planned.due <= now)
		}
		require.Equal(t, first.at, a.next())
		a.touchDue(now)
		require.Len(t, a.touched, due)
		a.settle(func(*typ) bool { return false })
	}
}
