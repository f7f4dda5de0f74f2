//go:build !race

// raceEnabled tells tests of allocations that the race detector is off.

package kith_test

const raceEnabled = false
