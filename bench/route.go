// Route: what one remote Tell costs its sender, and making homes known before anything is timed.

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith"
)

// Flush asks the first n entities of a sink until each has answered. Their homes are known then, they exist, all that
// this process sent to them before has been handled or refused, and their counts are exact.
func Flush(ctx context.Context, region *kith.Region, n int) error {
	ids := IDs(n)
	errs := make([]error, min(flushers, n))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += len(errs) {
				errs[w] = flush(ctx, region, ids[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// flushers is how many entities are asked at a time.
const flushers = 16

func flush(ctx context.Context, region *kith.Region, id string) error {
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := region.Ask(one, id, []byte{opFlush})
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond): // its home is not settled yet, or its mailbox is full
		case <-ctx.Done():
			return fmt.Errorf("flush %s: %w: %w", id, ctx.Err(), err)
		}
	}
}

// The bursts that Route times: short enough to fit the link's bound, which drains before the next.
const (
	routeBurst  = 4096
	routeBursts = 100
)

// Route returns route_ns and route_allocs: the median cost of one Tell to an entity on another node, from the call to
// its return, over bursts of one goroutine. The link is drained between the bursts and written out beside them, so
// this is what a caller sees, lock and neighbours included.
func Route(ctx context.Context, region *kith.Region) (Figures, error) {
	ids := IDs(1000)
	if err := Flush(ctx, region, len(ids)); err != nil {
		return nil, err
	}
	payload := make([]byte, PayloadBytes)
	times, allocs := make([]float64, 0, routeBursts), make([]float64, 0, routeBursts)
	for range routeBursts {
		before := Now()
		begin := time.Now()
		for i := range routeBurst {
			if err := region.Tell(ids[i%len(ids)], payload); err != nil {
				if errors.Is(err, kith.ErrLinkFull) {
					return nil, fmt.Errorf("a burst of %d messages does not fit the link: %w", routeBurst, err)
				}
				return nil, err
			}
		}
		took := time.Since(begin)
		spent, _ := Now().Per(before, routeBurst)
		times, allocs = append(times, float64(took)/routeBurst), append(allocs, spent)
		if err := flush(ctx, region, ids[0]); err != nil { // behind the burst: the link is empty then
			return nil, err
		}
	}
	slices.Sort(times)
	slices.Sort(allocs)
	return Figures{"route_ns": median(times), "route_allocs": median(allocs)}, nil
}
