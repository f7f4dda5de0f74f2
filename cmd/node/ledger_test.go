// Tests of the ledger: planted losses, duplicates and reorderings must all be found (issue "what it must show", SHD-9).

package main

import (
	"math/rand/v2"
	"testing"

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
			var x track
			for _, s := range c.seqs {
				x.add(s)
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
		var x track
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
			x.add(s)
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
	var x track
	for s := uint64(1); s <= 4*maxRuns; s++ {
		x.add(2 * s)
	}
	require.Equal(t, maxRuns, len(x.Runs))
	require.Equal(t, uint64(4*maxRuns), x.received())
	require.Equal(t, uint64(3*maxRuns), x.GivenUp)
	x.add(8*maxRuns - 3) // fills a gap that is still open
	require.Equal(t, maxRuns-1, len(x.Runs))
	require.Equal(t, uint64(4*maxRuns+1), x.received())
	got := compare(sentCounts{1: {"a": 8 * maxRuns}}, one(1, "a", x))
	require.Equal(t, tally{Sent: 8 * maxRuns, Delivered: 4*maxRuns + 1, Lost: 4*maxRuns - 1, Reordered: 1}, got)
}

func one(sender uint32, id string, t track) report { return report{id: {sender: t}} }

func TestCompareFindsPlantedFaults(t *testing.T) {
	sent := sentCounts{1: {"a": 10}}
	runs := func(r ...run) track { return track{Runs: r} }
	for _, c := range []struct {
		name    string
		sent    sentCounts
		reports []report
		want    tally
	}{
		{"all came", sent, []report{one(1, "a", runs(run{1, 10}))}, tally{Sent: 10, Delivered: 10}},
		{"none came", sent, nil, tally{Sent: 10, Lost: 10}},
		{"a gap", sent, []report{one(1, "a", runs(run{1, 4}, run{6, 10}))}, tally{Sent: 10, Delivered: 9, Lost: 1}},
		{"the head is missing", sent, []report{one(1, "a", runs(run{3, 10}))}, tally{Sent: 10, Delivered: 8, Lost: 2}},
		{"the tail is missing", sent, []report{one(1, "a", runs(run{1, 7}))}, tally{Sent: 10, Delivered: 7, Lost: 3}},
		{"the shard moved", sent, []report{one(1, "a", runs(run{7, 10})), one(1, "a", runs(run{1, 6}))},
			tally{Sent: 10, Delivered: 10}},
		{"two nodes got the same", sent, []report{one(1, "a", runs(run{1, 10})), one(1, "a", runs(run{4, 6}))},
			tally{Sent: 10, Delivered: 10, Duplicated: 3}},
		{"never sent", sent, []report{one(1, "a", runs(run{1, 12}))}, tally{Sent: 10, Delivered: 10, Foreign: 2}},
		{"another sender", sent, []report{one(2, "a", runs(run{1, 10}))}, tally{Sent: 10, Lost: 10, Foreign: 10}},
		{"another entity", sent, []report{one(1, "b", runs(run{1, 10}))}, tally{Sent: 10, Lost: 10, Foreign: 10}},
		{"counted by the track", sent, []report{one(1, "a", track{[]run{{1, 10}}, 2, 3, 0})},
			tally{Sent: 10, Delivered: 10, Reordered: 2, Duplicated: 3}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, compare(c.sent, c.reports...)) })
	}
}

func TestLedgerKeepsPagesApart(t *testing.T) {
	l := newLedger()
	for seq := uint64(1); seq <= 5; seq++ {
		l.page("a").add(1, seq)
		l.page("a").add(2, seq)
		l.page("b").add(1, seq)
	}
	l.page("b").add(1, 5)
	require.Equal(t, uint64(16), l.total())
	require.Equal(t, tally{Sent: 15, Delivered: 15, Duplicated: 1},
		compare(sentCounts{1: {"a": 5, "b": 5}, 2: {"a": 5}}, l.report()))
}
