// Tests of topics in storms: no rule is broken, and each is noticed when it is (REP-2).

package hosting

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/storm"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/topic"
)

// runsTopics runs storms with topics, from a seed on, and returns what was violated.
func runsTopics(t *testing.T, seeds int, seed uint64) (found []string) {
	t.Helper()
	began := false
	defer func(was func() func([]byte) [][]byte) { spoils = was }(spoils)
	if was := spoils; was != nil {
		spoils = func() func([]byte) [][]byte { began = true; return was() }
	} else {
		spoils = func() func([]byte) [][]byte { began = true; return nil }
	}
	for ; seeds > 0; seed++ {
		if !storm.DrawsInstances(seed, nil) {
			continue
		}
		began = false
		res := storm.Run(storm.Config{Seeds: 1, First: seed, TraceDir: t.TempDir(), Instances: Bring})
		if began {
			seeds--
		}
		for _, f := range res.Failures {
			for _, v := range f.Violations {
				found = append(found, v.String())
			}
		}
	}
	return found
}

// TestTopicsInStorms: what the subscribers of a storm get they get once, in order, and lose by count (REP-2).
func TestTopicsInStorms(t *testing.T) {
	judged, read, missed := 0, 0, uint64(0)
	pressed = func(x *press) { judged, read, missed = judged+1, read+x.read, missed+x.missed }
	defer func() { pressed = nil }()
	require.Empty(t, runsTopics(t, 1, 10))
	require.Positive(t, judged)
	t.Logf("%d storms were judged in the end; subscribers got %d messages, and missed %d", judged, read, missed)
	require.Positive(t, missed)
}

// TestLongTopicsInStorms is the same for more seeds.
func TestLongTopicsInStorms(t *testing.T) {
	long.Test(t)
	require.Empty(t, runsTopics(t, 30, 2000))
}

// TestLongSpoiledLinks: a link that repeats frames changes nothing for subscribers. One that loses some, and numbers
// those behind them as if they had never been, is found (REP-2).
func TestLongSpoiledLinks(t *testing.T) {
	long.Test(t)
	defer func() { spoils = nil }()
	spoils = func() func([]byte) [][]byte { return func(f []byte) [][]byte { return [][]byte{f, f} } }
	require.Empty(t, runsTopics(t, 1, 10))
	spoils = func() func([]byte) [][]byte {
		return func(f []byte) [][]byte {
			n := binary.LittleEndian.Uint64(f[9:])
			if n%3 == 0 {
				return nil
			}
			binary.LittleEndian.PutUint64(f[9:], n-n/3)
			return [][]byte{f}
		}
	}
	require.Contains(t, strings.Join(runsTopics(t, 1, 10), "; "), "topic-count")
}

// TestPressCriesOut: each rule is noticed when it is broken.
func TestPressCriesOut(t *testing.T) {
	self := peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}
	other := peer.ID{Addr: peer.MustAddr("10.0.0.2:1"), Inc: 1}
	for rule, breaks := range map[string]func(x *press, h *host, get func(nth int, missed uint64)){
		"topic-once":  func(_ *press, _ *host, get func(int, uint64)) { get(0, 0); get(0, 0) },
		"topic-order": func(_ *press, _ *host, get func(int, uint64)) { get(1, 0); get(0, 0) },
		"topic-count": func(_ *press, _ *host, get func(int, uint64)) { get(0, 0); get(2, 0) },
		"of 3 more":   func(_ *press, _ *host, get func(int, uint64)) { get(0, 3) },
		"topic-message": func(x *press, h *host, get func(int, uint64)) {
			delete(x.tried[way{h, self, "a"}], 1)
			get(1, 0)
		},
		"topic-link": func(x *press, h *host, _ func(int, uint64)) {
			x.crosses(h, other, textOf(0))
			x.crosses(h, other, textOf(0))
		},
	} {
		n, w := &noted{}, &world.World{}
		h := &host{p: &world.Process{Alive: true, World: w, ID: self}}
		x := &press{c: &cast{stage: n, w: w, seen: newSeen()}, tried: map[way]map[int]int{}}
		for nth := range 3 {
			x.issues = append(x.issues, issue{by: h, topic: "a", to: map[peer.ID]bool{}})
			x.tries(way{h, self, "a"}, nth)
		}
		r := x.newReader(h, "a", false)
		breaks(x, h, func(nth int, missed uint64) {
			r.gets(&topic.Message{From: self, Payload: textOf(nth), Missed: missed})
		})
		require.Contains(t, strings.Join(n.rules, "; "), rule)
	}
}

// TestLostBehindTheLast: what was lost behind the last message that a subscriber got is not news of what is published
// later, though the next message tells of it (REP-2).
func TestLostBehindTheLast(t *testing.T) {
	n, w := &noted{}, &world.World{}
	p := &world.Process{Alive: true, World: w, ID: peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}}
	h := &host{p: p}
	x := &press{c: &cast{stage: n, w: w, seen: newSeen(), of: map[*world.Process]*host{p: h}},
		tried: map[way]map[int]int{}}
	send := func() *topic.Message {
		nth := len(x.issues)
		x.issues = append(x.issues, issue{by: h, topic: "a", to: map[peer.ID]bool{}})
		x.tries(way{h, p.ID, "a"}, nth)
		return &topic.Message{From: p.ID, Payload: textOf(nth)}
	}
	r, hosts := x.newReader(h, "a", false), []*world.Process{p}
	send()
	require.Zero(t, r.unheard(hosts), "one that got nothing of a publisher")
	first := send()
	first.Missed = 1
	r.gets(first)
	require.Zero(t, r.unheard(hosts))
	send()
	send()
	require.Equal(t, 2, r.unheard(hosts), "both were lost")
	next := send()
	next.Missed = 2
	r.gets(next)
	require.Zero(t, r.unheard(hosts), "the next message tells of both")
	require.Empty(t, n.rules)
}
