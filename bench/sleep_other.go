// Sleeping as exactly as Go's timers are, where nothing better is at hand.

//go:build !linux

package bench

import "time"

func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
