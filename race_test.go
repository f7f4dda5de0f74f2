//go:build race

// raceEnabled tells tests of allocations that the race detector is on.

package kith_test

const raceEnabled = true
