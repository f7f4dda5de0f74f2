// The clock that processes of one machine share, where no monotonic one is at hand: wall time.

//go:build !linux

package bench

import "time"

func sharedClock() int64 { return time.Now().UnixNano() }
