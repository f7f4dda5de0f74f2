//go:build !race

// raceEnabled tells tests of allocations that the race detector is off.

package e2e_test

const raceEnabled = false
