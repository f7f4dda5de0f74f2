// Logging: a limit on how often one kind of fault is logged.

package transport

import (
	"log/slog"
	"sync"
	"time"
)

// faultEvery is how often faults of one reason are logged.
const faultEvery = time.Second

// faults logs what peers do wrong, at most once a second per reason, with the number left out since.
type faults struct {
	log     *slog.Logger
	mu      sync.Mutex
	last    map[string]time.Time // by reason: a fixed, small set
	skipped map[string]uint64
}

func (f *faults) warn(reason string, args ...any) {
	now := time.Now()
	f.mu.Lock()
	if f.last == nil {
		f.last, f.skipped = map[string]time.Time{}, map[string]uint64{}
	}
	if at, seen := f.last[reason]; seen && now.Sub(at) < faultEvery {
		f.skipped[reason]++
		f.mu.Unlock()
		return
	}
	skipped := f.skipped[reason]
	f.last[reason] = now
	delete(f.skipped, reason)
	f.mu.Unlock()
	f.log.Warn("connection fault: "+reason, append(args, "not_logged", skipped)...)
}
