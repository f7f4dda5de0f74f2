// Prices: what guarantees cost that the oldest base did not give.

package main

import "strings"

// pricedOf is the commit beside which prices hold.
const pricedOf = "ea35bf4"

// prices are what rows keep of the speed of pricedOf when all else is equal: the rest is the price of what the library
// has promised since. Each was measured by a build without the guarantee beside one with it; docs/contributing/gate.md
// has the table. A row that is not here keeps all.
var prices = map[string]float64{
	"ask256-remote-inline":   0.90, // limits in envelopes, exact begins, an answer counts from the asked node alone
	"ask256-remote-blocking": 0.90,
	"ask1-local-blocking":    0.88, // the clock is read before a handler is called, and when an ask begins
}

// priceOf is what a row keeps beside a commit, 1 for all.
func priceOf(row, commit string) float64 {
	if p, ok := prices[row]; ok && strings.HasPrefix(commit, pricedOf) {
		return p
	}
	return 1
}
