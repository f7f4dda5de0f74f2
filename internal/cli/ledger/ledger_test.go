// Tests of ledgers: planted losses, duplicates and reorderings must all be found (issue "what it must show", SHD-9).

package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrackFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name                  string
		seqs                  []uint64
		received, reord, dupl uint64
		runs                  int
	}{
		{"nothing", nil, 0, 0, 0, 0},
		{"in order", []uint64{1, 2, 3}, 3, 0, 0, 1},
		{"the first lost", []uint64{2, 3}, 2, 0, 0, 1},
		{"one lost", []uint64{1, 3}, 2, 0, 0, 2},
		{"two swapped", []uint64{1, 3, 2, 4}, 4, 1, 0, 1},
		{"one far behind", []uint64{2, 3, 4, 5, 1}, 5, 1, 0, 1},
		{"twice", []uint64{1, 1, 2}, 2, 0, 1, 1},
		{"twice, late", []uint64{1, 2, 3, 2}, 3, 0, 1, 1},
		{"gap filled from the left", []uint64{1, 5, 2}, 3, 1, 0, 2},
		{"gap filled from the right", []uint64{1, 5, 4}, 3, 1, 0, 2},
		{"gap filled in the middle", []uint64{1, 5, 3}, 3, 1, 0, 3},
		{"gap filled twice", []uint64{1, 3, 2, 2}, 3, 1, 1, 1},
		{"backwards", []uint64{3, 2, 1}, 3, 2, 0, 1},
		{"zero is no number", []uint64{0, 1, 0}, 1, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x Track
			for _, s := range c.seqs {
				x.add(s, 0)
			}
			require.Equal(t, c.received, x.received(), "received")
			require.Equal(t, c.reord, x.Reordered, "reordered")
			require.Equal(t, c.dupl, x.Duplicated, "duplicated")
			require.Len(t, x.Runs, c.runs)
		})
	}
}

// Any order of any multiset gives the counts that a plain set gives.
func TestTrackAgainstASet(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var x Track
		seen := map[uint64]bool{}
		var high, reord, dupl uint64
		for range 200 {
			s := 1 + r.Uint64N(60)
			switch {
			case seen[s]:
				dupl++
			case s < high:
				reord++
			}
			seen[s] = true
			high = max(high, s)
			x.add(s, 0)
		}
		require.Equal(t, uint64(len(seen)), x.received(), seed)
		require.Equal(t, reord, x.Reordered, seed)
		require.Equal(t, dupl, x.Duplicated, seed)
		for i := 1; i < len(x.Runs); i++ {
			require.Greater(t, x.Runs[i].Lo, x.Runs[i-1].Hi+1, "runs touch, seed %d", seed)
		}
	}
}

func TestTrackIsBounded(t *testing.T) {
	var x Track
	for s := uint64(1); s <= 4*MaxRuns; s++ {
		x.add(2*s, 0)
	}
	require.Equal(t, MaxRuns, len(x.Runs))
	require.Equal(t, uint64(4*MaxRuns), x.received())
	require.Equal(t, uint64(3*MaxRuns), x.GivenUp)
	x.add(8*MaxRuns-3, 0) // fills a gap that is still open
	require.Equal(t, MaxRuns-1, len(x.Runs))
	require.Equal(t, uint64(4*MaxRuns+1), x.received())
	got := Compare(SentCounts{1: {"a": 8 * MaxRuns}}, one(1, "a", x))
	require.Equal(t, Tally{Sent: 8 * MaxRuns, Delivered: 4*MaxRuns + 1, Lost: 4*MaxRuns - 1, Reordered: 1}, got)
}

func span(lo, hi uint64) Run { return Run{Lo: lo, Hi: hi} }

func one(sender uint32, id string, t Track) Report { return Report{id: {sender: t}} }

func TestCompareFindsPlantedFaults(t *testing.T) {
	sent := SentCounts{1: {"a": 10}}
	runs := func(r ...Run) Track { return Track{Runs: r} }
	at := func(lo, hi uint64, first, last time.Duration) Report {
		return one(1, "a", runs(Run{lo, hi, first, last}))
	}
	for _, c := range []struct {
		name    string
		sent    SentCounts
		reports []Report
		want    Tally
	}{
		{"all came", sent, []Report{one(1, "a", runs(span(1, 10)))}, Tally{Sent: 10, Delivered: 10}},
		{"none came", sent, nil, Tally{Sent: 10, Lost: 10}},
		{"a gap", sent, []Report{one(1, "a", runs(span(1, 4), span(6, 10)))}, Tally{Sent: 10, Delivered: 9, Lost: 1}},
		{"the head is missing", sent, []Report{one(1, "a", runs(span(3, 10)))}, Tally{Sent: 10, Delivered: 8, Lost: 2}},
		{"the tail is missing", sent, []Report{one(1, "a", runs(span(1, 7)))}, Tally{Sent: 10, Delivered: 7, Lost: 3}},
		{"the shard moved", sent, []Report{one(1, "a", runs(span(7, 10))), one(1, "a", runs(span(1, 6)))},
			Tally{Sent: 10, Delivered: 10}},
		{"two nodes got the same", sent, []Report{one(1, "a", runs(span(1, 10))), one(1, "a", runs(span(4, 6)))},
			Tally{Sent: 10, Delivered: 10, Duplicated: 3}},
		{"never sent", sent, []Report{one(1, "a", runs(span(1, 12)))}, Tally{Sent: 10, Delivered: 10, Foreign: 2}},
		{"another sender", sent, []Report{one(2, "a", runs(span(1, 10)))}, Tally{Sent: 10, Lost: 10, Foreign: 10}},
		{"another entity", sent, []Report{one(1, "b", runs(span(1, 10)))}, Tally{Sent: 10, Lost: 10, Foreign: 10}},
		{"in order on two nodes", sent, []Report{at(1, 6, 1, 5), at(7, 10, 5, 9)},
			Tally{Sent: 10, Delivered: 10}},
		{"overtaken on another node", sent, []Report{at(1, 6, 1, 5), at(7, 10, 4, 9)},
			Tally{Sent: 10, Delivered: 10, Reordered: 1}},
		{"to and fro", sent, []Report{one(1, "a", runs(Run{1, 2, 1, 2}, Run{7, 10, 7, 9})), at(3, 6, 3, 6)},
			Tally{Sent: 10, Delivered: 10}},
		{"to and fro too soon", sent, []Report{one(1, "a", runs(Run{1, 2, 1, 2}, Run{7, 10, 5, 9})),
			at(3, 6, 3, 6)}, Tally{Sent: 10, Delivered: 10, Reordered: 1}},
		{"counted by the track", sent, []Report{one(1, "a", Track{[]Run{span(1, 10)}, 2, 3, 0})},
			Tally{Sent: 10, Delivered: 10, Reordered: 2, Duplicated: 3}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Compare(c.sent, c.reports...)) })
	}
}

func TestLedgerKeepsPagesApart(t *testing.T) {
	l := New(func() time.Duration { return 0 })
	for seq := uint64(1); seq <= 5; seq++ {
		l.Page("a").Add(1, seq)
		l.Page("a").Add(2, seq)
		l.Page("b").Add(1, seq)
	}
	l.Page("b").Add(1, 5)
	require.Equal(t, uint64(16), l.Total())
	require.Equal(t, Tally{Sent: 15, Delivered: 15, Duplicated: 1},
		Compare(SentCounts{1: {"a": 5, "b": 5}, 2: {"a": 5}}, l.Report()))
}
