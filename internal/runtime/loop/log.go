// Logging: gnet's logger over slog.

package loop

import (
	"context"
	"fmt"
	"log/slog"
)

// gnetLogger adapts slog to gnet: its own logger would print to stdout. What gnet calls fatal is an error here: it
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
