// Lateness of the machine: what a process sees of it that has nothing to do.

package rolling

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith/internal/cli"
)

// napTime is how long each of the naps is by which the lateness is measured.
const napTime = 2 * time.Millisecond

// naps naps until ctx ends, and then sends how much longer the naps took than they should have: processes that wait for
// a core, or a machine that stands still, make asks slow whatever the cluster does.
func naps(ctx context.Context) <-chan *hdrhistogram.Histogram {
	over := make(chan *hdrhistogram.Histogram, 1)
	go func() {
		late := newTimes().took
		for {
			begin := time.Now()
			if !cli.Pause(ctx, napTime) {
				over <- late
				return
			}
			_ = late.RecordValue(min(max(0, int64(time.Since(begin)-napTime)), int64(time.Minute)))
		}
	}()
	return over
}
