// Logging: gnet's logger over slog, and a limit on how often one kind of fault is logged.

package transport

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// gnetLogger adapts slog to gnet, whose own logger would print to stdout. What gnet calls fatal is an error here: it
// never ends the process.
type gnetLogger struct{ log *slog.Logger }

func (g gnetLogger) at(level slog.Level, format string, args []any) {
	if g.log.Enabled(context.Background(), level) {
		g.log.Log(context.Background(), level, "gnet: "+fmt.Sprintf(format, args...))
	}
}

// Debugf logs at debug level.
func (g gnetLogger) Debugf(format string, args ...any) { g.at(slog.LevelDebug, format, args) }

// Infof logs at debug level: what gnet finds worth telling is noise to an embedder.
func (g gnetLogger) Infof(format string, args ...any) { g.at(slog.LevelDebug, format, args) }

// Warnf logs at warn level.
func (g gnetLogger) Warnf(format string, args ...any) { g.at(slog.LevelWarn, format, args) }

// Errorf logs at error level.
func (g gnetLogger) Errorf(format string, args ...any) { g.at(slog.LevelError, format, args) }

// Fatalf logs at error level.
func (g gnetLogger) Fatalf(format string, args ...any) { g.at(slog.LevelError, format, args) }

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
