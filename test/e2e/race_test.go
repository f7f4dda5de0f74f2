//go:build race

// raceEnabled tells tests of allocations that the race detector is on.

package e2e_test

const raceEnabled = true
