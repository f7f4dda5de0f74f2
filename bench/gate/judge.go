// Judge: from measurements to ratios, their medians and spread, and the verdict.

package main

import (
	"math"
	"slices"
)

// Bounds of the verdict.
const (
	lowRatio   = 0.95 // a pair below it, times the row's price, speaks against the row
	leastPairs = 5    // with fewer nothing is said to have failed
)

// spread is a median, with the least and the most.
type spread struct{ Median, Least, Most float64 }

// spreadOf returns the spread of values, at least one.
func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// needed is how many of the pairs have to be low for a row to fail: six of seven, in proportion.
func needed(pairs int) int { return (6*pairs + 6) / 7 }

// figure is what became of one row. In all ratios more is better, whatever the row measures.
type figure struct {
	name       string
	pairs      int
	head, base float64            // medians of the values
	headMore   map[string]float64 // medians of what stands beside
	baseMore   map[string]float64
	ratio      spread
	cpu        *spread // nil when it was not measured
	price      float64 // what the row keeps of the base's speed when all else is equal; 1 for all
	low        int     // how many pairs were below lowRatio of that
}

// failed is the verdict.
func (f *figure) failed() bool { return f.pairs >= leastPairs && f.low >= needed(f.pairs) }

// compare returns the rows of the head that were measured beside another build, of a commit, in the order of allRows.
func compare(samples []sample, other, commit string) []figure {
	var out []figure
	for _, r := range allRows {
		heads, bases := of(samples, headName, r.name), of(samples, other, r.name)
		f := figure{name: r.name, price: priceOf(r.name, commit), headMore: medians(heads), baseMore: medians(bases)}
		var ratios, cpus, headValues, baseValues []float64
		for pair, hs := range heads {
			bs := bases[pair]
			if len(hs) != len(bs) { // it was interrupted
				continue
			}
			h, b := together(hs), together(bs)
			ratio := h.Value / b.Value
			if r.less {
				ratio = 1 / ratio
			}
			if ratio < lowRatio*f.price {
				f.low++
			}
			ratios, headValues, baseValues = append(ratios, ratio), append(headValues, h.Value), append(baseValues, b.Value)
			if h.CPU > 0 && b.CPU > 0 {
				cpus = append(cpus, b.CPU/h.CPU)
			}
		}
		if len(ratios) == 0 {
			continue
		}
		f.pairs, f.ratio = len(ratios), spreadOf(ratios)
		f.head, f.base = spreadOf(headValues).Median, spreadOf(baseValues).Median
		if len(cpus) > 0 {
			s := spreadOf(cpus)
			f.cpu = &s
		}
		out = append(out, f)
	}
	return out
}

// of returns the measurements of one row of one build by their pairs.
func of(samples []sample, build, row string) map[int][]sample {
	out := map[int][]sample{}
	for _, s := range samples {
		if s.Build == build && s.Row == row {
			out[s.Pair] = append(out[s.Pair], s)
		}
	}
	return out
}

// together makes one measurement of those of one pair, which lasted equally long.
func together(all []sample) (sum sample) {
	for _, s := range all {
		sum.Value += s.Value / float64(len(all))
		sum.CPU += s.CPU * s.Value / float64(len(all))
	}
	sum.CPU /= sum.Value
	return sum
}

// medians returns the medians of the figures beside a row.
func medians(pairs map[int][]sample) map[string]float64 {
	all := map[string][]float64{}
	for _, samples := range pairs {
		for _, s := range samples {
			for name, v := range s.More {
				all[name] = append(all[name], v)
			}
		}
	}
	out := map[string]float64{}
	for name, values := range all {
		out[name] = spreadOf(values).Median
	}
	return out
}

// mean is the geometric mean of the rows' medians.
func mean(rows []figure) float64 {
	var medians []float64
	for _, f := range rows {
		medians = append(medians, f.ratio.Median)
	}
	return geometric(medians)
}

// meanCPU is the same of processor time, of the rows that have it: zero when none has.
func meanCPU(rows []figure) float64 {
	var medians []float64
	for _, f := range rows {
		if f.cpu != nil {
			medians = append(medians, f.cpu.Median)
		}
	}
	if len(medians) == 0 {
		return 0
	}
	return geometric(medians)
}

func geometric(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
