// Figures: named measurements of one round, and their medians over rounds.

package bench

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// UserBytes is what a user asked to move with one message of the tell workload: 64 bytes of payload and 16 of id. "Of
// bulk" figures use it, not our header.
const UserBytes = 80

// Figures holds measurements by name. A figure that was not measured is absent, never zero.
type Figures map[string]float64

// Set stores a figure unless v is no number: a ratio without its baseline stays absent.
func (f Figures) Set(name string, v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		f[name] = v
	}
}

// Ratio stores f[of] / f[by] under name when both were measured and by is not zero.
func (f Figures) Ratio(name, of, by string) {
	a, okA := f[of]
	b, okB := f[by]
	if okA && okB && b != 0 {
		f[name] = a / b
	}
}

// OfBulk stores under name which part of the bytes per second named bulk (in GB/s) the user's bytes of the rate named
// of are.
func (f Figures) OfBulk(name, of, bulk string) {
	rate, okA := f[of]
	gbps, okB := f[bulk]
	if okA && okB && gbps > 0 {
		f[name] = rate * UserBytes / (gbps * 1e9)
	}
}

// Merge adds the figures of g to f; those of g win.
func (f Figures) Merge(g Figures) { maps.Copy(f, g) }

// Names returns the names in order.
func (f Figures) Names() []string { return slices.Sorted(maps.Keys(f)) }

// MarshalJSON writes the figures in the order of their names, four significant digits each; figures of allocations are
// rounded to a thousandth instead, so that the few of the runtime itself do not read as one in a million messages.
func (f Figures) MarshalJSON() ([]byte, error) {
	m := make(map[string]float64, len(f))
	for name, v := range f {
		if strings.Contains(name, "allocs") {
			m[name] = math.Round(v*1000) / 1000
		} else {
			m[name] = significant(v, 4)
		}
	}
	return json.Marshal(m)
}

// significant rounds v to n significant digits.
func significant(v float64, n int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, float64(n)-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Spread is what the rounds gave for one figure.
type Spread struct{ Median, Min, Max float64 }

// Spreads returns, for each figure, median, least and greatest over the rounds that have it.
func Spreads(rounds []Figures) map[string]Spread {
	all := map[string][]float64{}
	for _, r := range rounds {
		for name, v := range r {
			all[name] = append(all[name], v)
		}
	}
	out := make(map[string]Spread, len(all))
	for name, vs := range all {
		slices.Sort(vs)
		out[name] = Spread{median(vs), vs[0], vs[len(vs)-1]}
	}
	return out
}

// Medians returns the median of each figure over the rounds that have it. Ratios are medians of the rounds' ratios:
// both sides of each come from the same seconds.
func Medians(rounds []Figures) Figures {
	f := Figures{}
	for name, s := range Spreads(rounds) {
		f[name] = s.Median
	}
	return f
}

// median takes the sorted vs, at least one.
func median(vs []float64) float64 {
	n := len(vs)
	if n%2 == 1 {
		return vs[n/2]
	}
	return (vs[n/2-1] + vs[n/2]) / 2
}
