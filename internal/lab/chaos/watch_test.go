// Tests of the watcher: which nodes are hit, and when all is well.

package chaos

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// told returns a harness of three nodes that have just reported a healthy status.
func told(t *testing.T) *harness {
	line, err := newTimeline(filepath.Join(t.TempDir(), "t"), cli.NewClock(cli.MachineTime()-time.Minute), &cli.Progress{})
	require.NoError(t, err)
	h := &harness{cfg: Config{Nodes: 3, Load: Load{Entities: 1}}, clock: line.clock, line: line,
		seeds: []string{"a:1", "b:1", "c:1"}}
	h.book = newBook("", 3, h.cfg.Load)
	h.watcher.h = h
	for i := range h.seeds {
		s := status{Cluster: 7, Up: true, Leader: "b:1", Oldest: "c:1", Hosted: []int{5, 2, 1}[i]}
		for _, addr := range h.seeds {
			s.Members = append(s.Members, seen{Addr: addr, Status: kith.Up.String()})
		}
		l := &life{slot: i, last: s, at: h.clock.Now()}
		h.slots = append(h.slots, &nodeSlot{h: h, number: i, addr: h.seeds[i], now: l})
	}
	return h
}

func TestVictims(t *testing.T) {
	h := told(t)
	order := []int{2, 1, 0}
	for _, c := range []struct {
		f    Fault
		want []int
	}{
		{Fault{First: Owner, Victims: 1}, []int{0}},
		{Fault{First: Leader, Victims: 1}, []int{1}},
		{Fault{First: Coordinator, Victims: 2}, []int{2, 1}},
		{Fault{First: Seed, Victims: 2}, []int{0, 2}},
		{Fault{First: Anybody, Victims: 1}, []int{2}},
		{Fault{First: Leader, Victims: 3}, []int{1, 2, 0}},
		{Fault{First: Leader}, nil},
	} {
		c.f.Order = order
		require.Equal(t, c.want, h.watcher.victims(c.f), c.f)
	}
	for _, s := range h.slots { // nobody reports anything: the node that the seed says
		s.now = nil
	}
	require.Equal(t, []int{2}, h.watcher.victims(Fault{First: Leader, Victims: 1, Order: order}))
}

// All is well when all see all Up and reachable in one cluster, lately.
func TestWhenAllAgree(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(h *harness, l *life)
		why  string
	}{
		{"all well", func(*harness, *life) {}, ""},
		{"one does not run", func(h *harness, _ *life) { h.slots[1].now = nil }, "n2 does not run"},
		{"one has ended", func(_ *harness, l *life) { l.end = 1 }, "n2 does not run"},
		{"one is silent", func(h *harness, l *life) { l.at = h.clock.Now() - time.Minute }, "n2 tells nothing"},
		{"one was told off", func(_ *harness, l *life) { l.last.Ended = "downed" }, "n2 has ended: downed"},
		{"one misses another", func(_ *harness, l *life) { l.last.Members = l.last.Members[:2] }, "n2 sees"},
		{"one accuses another", func(_ *harness, l *life) { l.last.Members[0].Unreachable = true }, "UNREACHABLE"},
		{"one is elsewhere", func(_ *harness, l *life) { l.last.Cluster = 8 }, "n2 is in another cluster"},
		{"one sees a joiner", func(_ *harness, l *life) { l.last.Members[2].Status = "joining" }, "n3 joining"},
	} {
		h := told(t)
		c.do(h, h.slots[1].now)
		why, ok := h.watcher.agreed(h.clock.Now() - time.Second)
		require.Equal(t, c.why == "", ok, c.name)
		require.Contains(t, why, c.why, c.name)
	}
}

// A node must have had an answer from every entity, to an ask that it began since.
func TestAnswersFromAll(t *testing.T) {
	b := newBook("", 2, Load{Entities: 1})
	for slot := range b.series {
		for target := range b.series[slot] {
			b.series[slot][target] = answers{seconds(1, 2, 9), 8 * time.Second}
		}
	}
	_, ok := b.answered([]int{0, 1}, 7*time.Second)
	require.True(t, ok)
	b.series[1][2].latest = 6 * time.Second
	why, ok := b.answered([]int{0, 1}, 7*time.Second)
	require.False(t, ok)
	require.Equal(t, "n2 has no answer from i0", why)
	_, ok = b.answered([]int{0}, 7*time.Second)
	require.True(t, ok)
	all := b.silences(seconds(1)[0], seconds(9)[0])
	require.Equal(t, []silence{{0, 0, 2 * time.Second, 7 * time.Second}, {1, 0, 2 * time.Second, 7 * time.Second}}, all)
}

// The nodes with asks that count: those that no fault hit; all, when all were hit.
func TestWhoseAsksCount(t *testing.T) {
	require.Equal(t, []int{0, 2}, unhit([]struck{died(1)}, 3))
	require.Equal(t, []int{0, 1, 2}, unhit([]struck{{Fault{}, []int{0, 1, 2}}}, 3))
}

// The account of a book: journals of two processes, one message each way, one lost for a reason, one reported.
func TestBookSettles(t *testing.T) {
	dir := t.TempDir()
	b := newBook(dir, 2, Load{Entities: 1, Shards: 1})
	shards := make([]uint32, 3)
	lives := []*life{{slot: 0, sender: 1, shards: shards}, {slot: 1, sender: 2, shards: shards}}
	for _, l := range lives {
		require.NoError(t, b.open(l))
	}
	note := func(j *journal, r record) {
		n, err := j.begin()
		require.NoError(t, err)
		j.note(n, r)
	}
	out, in := b.volumes[1].sent, b.volumes[2].handled
	for _, s := range []sent{
		{fate: fateAccepted, from: time.Second},                        // handled
		{fate: fateAccepted, from: 2 * time.Second},                    // lost, unexplained
		{fate: fateAccepted, from: 20 * time.Second},                   // lost for a reason
		{fate: fateRefused, from: 3 * time.Second},                     // never accepted
		{fate: fateFailed, ask: true, from: 4 * time.Second},           // reported to its asker
		{fate: fateAccepted, target: 1, from: 5 * time.Second},         // reported,
		{fate: fateReported, typ: 1, count: 3, from: 6 * time.Second},  // and two that nobody misses
		{fate: fateAnswered, ask: true, from: 7e9, until: 7e9 + 5},     // handled
		{fate: fateAsked, ask: true, target: 2, from: 8 * time.Second}, // under way when its process ended
	} {
		note(out, s.record())
	}
	for _, h := range []handled{{step: stepDone, sender: 1, from: 1e9, until: 2e9},
		{step: stepDone, ask: true, sender: 1, number: 7, from: 7e9, until: 7e9 + 1},
		{step: stepBegun, target: 2, ask: true, sender: 1, number: 8, from: 8e9}} {
		note(in, h.record())
	}
	require.Empty(t, b.read(time.Hour, true))
	lives[1].end = 9 * time.Second
	require.Empty(t, b.read(time.Hour, true), "the call that the end cut short is known now")
	rounds := []past{{faults: []struck{died(1)}, from: 15 * time.Second, until: 30 * time.Second}}
	got := b.total(rounds)
	require.Equal(t, sums{Accepted: 7, Handled: 3, Reported: 2, Lost: 2, Unexplained: 1, Over: 2,
		By: map[cause]int{onTheWay: 1}}, got)
	require.Equal(t, 1, rounds[0].accepted)
	require.Equal(t, 1, rounds[0].lost)
	b.close()
}
