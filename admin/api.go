// What all handlers have, and how streams begin.

package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kith-io/kith"
)

// hex writes the id of a cluster as logs do.
func hex(id uint64) string { return fmt.Sprintf("%016x", id) }

// begin writes the head of a stream.
func begin(w http.ResponseWriter) *http.ResponseController {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // those of a request are over long before a stream is
	_ = out.SetWriteDeadline(time.Time{})
	return out
}

// api is the handlers of one node.
type api struct {
	node   *kith.Node
	counts *counters
	goOver func(ctx context.Context, seeds []string) error // Config.Join
	leaves func(ctx context.Context, seeds []string) error // Config.LeaveAndJoin
	unfit  func() string                                   // Config.NotReady
}
