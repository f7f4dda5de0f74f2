// Large: a stream of large messages beside other traffic.

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith"
)

// LargeBytes is the payload of one large message of a stream: 64 MiB.
const LargeBytes = 64 << 20

// LargeResult is what a stream moved.
type LargeResult struct {
	Messages uint64
	Bytes    uint64 // payload of messages that were taken, and of the last one so far as it was sent
	Took     time.Duration
}

// Large sends large messages, one behind the other, to one entity of region until ctx ends, which gives the last one
// up.
func Large(ctx context.Context, region *kith.Region) (LargeResult, error) {
	var r LargeResult
	payload := make([]byte, LargeBytes) // opTell: count
	id := IDs(1)[0]
	begin := time.Now()
	for ctx.Err() == nil {
		part := 0
		err := region.TellBulk(ctx, id, payload, func(sent, _ int) { part = sent })
		if err == nil {
			r.Messages++
			part = len(payload)
		} else if ctx.Err() == nil {
			return r, fmt.Errorf("large message %d: %w", r.Messages+1, err)
		}
		r.Bytes += uint64(part)
	}
	r.Took = time.Since(begin)
	return r, nil
}
