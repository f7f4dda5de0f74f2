// Lateness: what a process sees of its machine that has nothing to do.

package rolling

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// napTime is how long each of the naps is by which the lateness is measured.
const napTime = 2 * time.Millisecond

// naps is how much longer naps took than they should have: a process that waits for a core, or a machine that stands
// still, makes asks slow whatever the cluster does.
type naps struct {
	mu   sync.Mutex
	late *hdrhistogram.Histogram
}

// take naps until ctx ends.
func (n *naps) take(ctx context.Context) {
	for begin := time.Now(); cli.Pause(ctx, napTime); begin = time.Now() {
		n.mu.Lock()
		_ = n.late.RecordValue(min(max(0, int64(time.Since(begin)-napTime)), int64(time.Minute)))
		n.mu.Unlock()
	}
}

// told reports how late naps were since the last time.
func (n *naps) told() *hdrhistogram.Histogram {
	n.mu.Lock()
	defer n.mu.Unlock()
	late := n.late
	n.late = fleet.NewTimes()
	return late
}
