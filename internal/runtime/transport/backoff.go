// Back-off: how long to wait before the next dial, as a function of failures and a random number.

package transport

import (
	"math/bits"
	"math/rand/v2"
	"time"
)

// steadyAfter is how long a connection must have lasted for its loss to be answered by dialling at once.
const steadyAfter = time.Second

// pauseAfter is the pause after so many failures in a row: none without one, then least, doubled with each further one
// up to most, of which the random number, drawn evenly from all, chooses from the upper half: peers that lost the same
// node do not dial it in step.
func pauseAfter(failures int, least, most time.Duration, random uint64) time.Duration {
	if failures <= 0 {
		return 0
	}
	whole := min(least, most)
	for ; failures > 1 && whole < most; failures-- {
		if whole > most/2 {
			whole = most
			break
		}
		whole *= 2
	}
	half := whole / 2
	draw, _ := bits.Mul64(random, uint64(half)+1)
	return whole - half + time.Duration(draw)
}

// failuresAfter is the count of failures when a connection has broken after it stood for so long: one that held makes
// the next dial a first one again, one that breaks as soon as it stands is another failure.
func failuresAfter(failures int, stood time.Duration) int {
	if stood >= steadyAfter {
		return 0
	}
	return failures + 1
}

// backoff is pauseAfter with the transport's settings.
func (c *Config) backoff(failures int) time.Duration {
	return pauseAfter(failures, c.BackoffMin, c.BackoffMax, rand.Uint64())
}
