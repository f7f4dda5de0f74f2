// Tests of the verdict: ratios, their spread, which rows fail, when the base moves.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	require.Equal(t, spread{2, 1, 5}, spreadOf([]float64{5, 1, 2}))
	require.Equal(t, spread{2.5, 1, 5}, spreadOf([]float64{5, 1, 2, 3}))
	require.Equal(t, spread{7, 7, 7}, spreadOf([]float64{7}))
}

func TestSixOfSeven(t *testing.T) {
	for _, c := range []struct {
		pairs, low int
		failed     bool
	}{
		{7, 6, true}, {7, 5, false}, {7, 7, true}, {14, 12, true}, {14, 11, false}, {6, 6, true}, {6, 5, false},
		{5, 5, true}, {5, 4, false}, {4, 4, false}, {1, 1, false}, {100, 86, true}, {100, 85, false},
	} {
		f := figure{pairs: c.pairs, low: c.low}
		require.Equal(t, c.failed, f.failed(), "%d of %d", c.low, c.pairs)
	}
}

// measured makes pairs of one row, base and head in turn.
func measured(row string, values ...float64) (all []sample) {
	for i := 0; i < len(values); i += 2 {
		all = append(all, sample{Pair: 1 + i/2, Build: baseName, Row: row, Value: values[i]},
			sample{Pair: 1 + i/2, Build: headName, Row: row, Value: values[i+1]})
	}
	return all
}

func TestMoreIsBetterInEveryRatio(t *testing.T) {
	samples := append(measured("tell-local-inline", 100, 50, 100, 200, 100, 90), measured("memory-1m", 100, 50)...)
	for i := range samples {
		if samples[i].CPU = 30; samples[i].Build == baseName {
			samples[i].CPU = 60
		}
	}
	got := compare(samples, baseName, "abc1234")
	require.Len(t, got, 2)
	tell, memory := got[0], got[1]
	require.Equal(t, "tell-local-inline", tell.name)
	require.Equal(t, spread{0.9, 0.5, 2}, tell.ratio)
	require.Equal(t, 2, tell.low)
	require.Equal(t, 90.0, tell.head)
	require.Equal(t, spread{2, 2, 2}, *tell.cpu)
	require.Equal(t, 3, tell.pairs)
	require.Equal(t, spread{2, 2, 2}, memory.ratio, "half the memory")
	require.InDelta(t, 1.3416, mean(got), 1e-4)
	require.InDelta(t, 2, meanCPU(got), 1e-4)
	require.Zero(t, meanCPU(nil))
	require.Empty(t, compare(samples, fixedName, "abc1234"))
}

// A row with a price fails below 0.95 of that, and beside the commit of the prices alone.
func TestPrices(t *testing.T) {
	const row = "ask1-local-blocking"
	price := prices[row]
	require.Positive(t, price)
	samples := measured(row, 100, 96*price, 100, 94*price, 100, 94)
	for commit, low := range map[string]int{pricedOf: 1, pricedOf + "9": 1, "abc1234": 3} {
		f := compare(samples, baseName, commit)[0]
		require.Equal(t, low, f.low, commit)
	}
	of := map[string]bool{}
	for _, r := range allRows {
		of[r.name] = true
	}
	for row, p := range prices {
		require.True(t, of[row], row)
		require.Less(t, p, 1.0)
		require.Greater(t, p, 0.8, "that is no price but a loss")
	}
}

// A measurement without its other half, as of a run that was interrupted, counts nowhere.
func TestHalfAPair(t *testing.T) {
	samples := measured("ring-inline", 10, 20, 10, 30)
	got := compare(samples[:3], baseName, "abc1234")
	require.Len(t, got, 1)
	require.Equal(t, 1, got[0].pairs)
	require.Equal(t, 2.0, got[0].ratio.Median)
	require.Nil(t, got[0].cpu)
}

func TestFiguresBeside(t *testing.T) {
	samples := measured("shards-100k", 10, 20, 10, 20)
	for i := range samples {
		samples[i].More = map[string]float64{"idle_cores": float64(i)}
	}
	got := compare(samples, baseName, "abc1234")
	require.Equal(t, map[string]float64{"idle_cores": 1}, got[0].baseMore)
	require.Equal(t, map[string]float64{"idle_cores": 2}, got[0].headMore)
}

func TestLastLine(t *testing.T) {
	samples := measured("ring-inline", 10, 20)
	samples = append(samples, sample{Pair: 1, Build: fixedName, Row: "ring-inline", Value: 5})
	r := judge([]build{{Name: headName, Commit: "new"}, {Name: baseName, Commit: "old"},
		{Name: fixedName, Commit: "ea35bf4"}}, samples)
	text, err := json.Marshal(r.line())
	require.NoError(t, err)
	row := `"rows":[{"row":"ring-inline","pairs":1,"ratio":%d,"least":%[1]d,"most":%[1]d,"low":0,"head":20,"base":%d}]`
	require.JSONEq(t, `{"commit":"new","base":"old",`+fmt.Sprintf(row, 2, 10)+`,"mean":2,"failed":[],`+
		`"fixed":{"base":"ea35bf4",`+fmt.Sprintf(row, 4, 5)+`,"mean":4}}`, string(text))
	var table strings.Builder
	r.table(&table)
	require.Regexp(t, `(?m)^ring-inline +1 +10 +20 +2\.000`, table.String())
	require.Regexp(t, `(?m)^ring-inline +1 +5 +20 +4\.000`, table.String())
}

// verdict judges seven equal pairs of one row.
func verdict(ratio float64, commit string) *report {
	var values []float64
	for range 7 {
		values = append(values, 100, 100*ratio)
	}
	return judge([]build{{Name: headName, Commit: commit}, {Name: baseName, Commit: "old"}},
		measured("ring-worker", values...))
}

func TestLowRowsFailByName(t *testing.T) {
	require.NoError(t, verdict(0.96, "new").err())
	require.ErrorContains(t, verdict(0.94, "new").err(), "ring-worker")
	require.Equal(t, []string{"ring-worker"}, verdict(0.94, "new").line().Failed)
	require.Equal(t, []string{}, verdict(1, "new").line().Failed)
}

func TestTheBaseStays(t *testing.T) {
	require.ErrorContains(t, verdict(0.99, "new").mayAdvance(), "ring-worker")
	require.ErrorContains(t, verdict(1, "new+").mayAdvance(), "changes")
	require.NoError(t, verdict(1, "new").mayAdvance())
	few := judge([]build{{Name: headName, Commit: "new"}, {Name: baseName}}, measured("ring-worker", 1, 2))
	require.ErrorContains(t, few.mayAdvance(), "1 pairs")
}

// Two measurements of a pair count as one that lasted as long as both: CPU time is of all their messages.
func TestThereAndBack(t *testing.T) {
	require.Equal(t, sample{Value: 200, CPU: 25}, together([]sample{{Value: 100, CPU: 10}, {Value: 300, CPU: 30}}))
	all := append(measured("ring-inline", 10, 20), measured("ring-inline", 30, 20)...)
	got := compare(all, baseName, "abc1234")
	require.Equal(t, 1, got[0].pairs)
	require.Equal(t, 1.0, got[0].ratio.Median)
	require.Empty(t, compare(all[:3], baseName, "abc1234"), "it was interrupted")
	order := ""
	for _, b := range thereAndBack([]build{{Name: "a"}, {Name: "b"}, {Name: "c"}}) {
		order += b.Name
	}
	require.Equal(t, "cbaabc", order)
}
