// Choose: which members to gossip to, biased towards those that have not seen the current version (GOS-6).

package gossip

import (
	"math/rand/v2"
	"slices"
)

// Million is the scale of probabilities here: they are integers, so that no platform rounds them differently.
const Million = 1_000_000

// PerMillion converts a probability from 0 to 1 into millionths, rounded.
func PerMillion(p float64) int { return int(p*Million + 0.5) }

// DifferentView returns, in millionths, with which probability a round prefers a peer outside the seen set in a
// cluster of n members: p up to low members, p/10 from three times low on, on a straight line in between.
func DifferentView(n, p, low int) int {
	high := 3 * low
	switch {
	case n <= low:
		return p
	case n >= high:
		return p / 10
	}
	return p - (p-p/10)*(n-low)/(high-low)
}

// Choose returns the position of the target among n candidates, or -1 when valid allows none. With probability
// prefer (in millionths) it comes from those for which unseen says true, unless there are none; otherwise from all.
func Choose(rng *rand.Rand, n, prefer int, valid, unseen func(i int) bool) int {
	if rng.IntN(Million) < prefer {
		if i := pick(rng, n, func(i int) bool { return valid(i) && unseen(i) }); i >= 0 {
			return i
		}
	}
	return pick(rng, n, valid)
}

// Drawing blindly and looking whether it is allowed costs a few draws however many candidates there are; a pass over
// all costs a draw for each that is allowed. Few candidates, and draws that keep missing, take the pass. Both are
// uniform, and so is the one after the other.
const (
	blindAbove = 64 // candidates
	blindDraws = 16 // tries for each that is wanted
)

// pick draws uniformly among the positions that are allowed; nothing is allocated.
func pick(rng *rand.Rand, n int, allowed func(i int) bool) int {
	if n > blindAbove {
		for range blindDraws {
			if i := rng.IntN(n); allowed(i) {
				return i
			}
		}
	}
	chosen, found := -1, 0
	for i := range n {
		if !allowed(i) {
			continue
		}
		found++
		if rng.IntN(found) == 0 {
			chosen = i
		}
	}
	return chosen
}

// Sample appends at most k distinct positions among those of n that are allowed, drawn uniformly, to into.
func Sample(rng *rand.Rand, n, k int, allowed func(i int) bool, into []int) []int {
	if k <= 0 {
		return into
	}
	base := len(into)
	if n > blindAbove && k <= blindAbove {
		for range blindDraws * k {
			i := rng.IntN(n)
			if !allowed(i) || slices.Contains(into[base:], i) {
				continue
			}
			if into = append(into, i); len(into)-base == k {
				return into
			}
		}
		into = into[:base]
	}
	found := 0
	for i := range n {
		if !allowed(i) {
			continue
		}
		found++
		if len(into)-base < k {
			into = append(into, i)
		} else if j := rng.IntN(found); j < k {
			into[base+j] = i
		}
	}
	return into
}
