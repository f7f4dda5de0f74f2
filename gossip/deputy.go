// Deputies: with which probability a round also goes to an unreachable node and to a deputy, which heals partitions
// that are in the views only (GOS-9).

package gossip

import "math/rand/v2"

// ToUnreachable returns, in millionths, with which probability a round also goes to a random unreachable node, when
// this node sees so many others live and unreachable: unreachable/(live+1), at most 1. Nobody unreachable: 0.
func ToUnreachable(unreachable, live int) int {
	if unreachable <= 0 {
		return 0
	}
	return min(Million, Million*unreachable/(live+1))
}

// ToDeputy returns, in millionths, with which probability a round also goes to a random deputy, when the target of the
// round was none, or fewer nodes are live than there are deputies: deputies/(live+unreachable), at most 1. Zero when
// the round reached a deputy already.
func ToDeputy(deputies, live, unreachable int, reached bool) int {
	switch {
	case deputies <= 0 || reached && live >= deputies:
		return 0
	case live+unreachable <= deputies:
		return Million
	}
	return Million * deputies / (live + unreachable)
}

// Chance draws whether something of the given probability, in millionths, happens. Zero draws nothing.
func Chance(rng *rand.Rand, probability int) bool {
	return probability > 0 && rng.IntN(Million) < probability
}
