// Signals: what ends a command that does something for long (OPS-2).

package cli

import (
	"context"
	"os/signal"
	"syscall"
)

// Interruptible returns the context of a command, which ends with the first SIGINT or SIGTERM. After stop the next one
// ends the process.
func Interruptible() (ctx context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}
