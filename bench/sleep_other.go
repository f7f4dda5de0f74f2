// Sleeping as exactly as Go's timers are, where nothing better is at hand.

//go:build !linux

package bench

import "time"

type sleeper struct{}

func newSleeper() (*sleeper, error) { return &sleeper{}, nil }

func (s *sleeper) until(at time.Time) error {
	time.Sleep(time.Until(at))
	return nil
}

func (s *sleeper) close() {}
