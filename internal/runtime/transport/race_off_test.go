//go:build !race

// Whether the race detector is on.

package transport

const raceEnabled = false
