// Route: what one remote Tell costs its sender, and making homes known before anything is timed.

package bench

import (
	"context"
	"encoding/binary"
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
	_, err := Counted(ctx, region, n)
	return err
}

// Counted is Flush, and returns how many messages have reached the entities' handlers, as their answers say.
func Counted(ctx context.Context, region *kith.Region, n int) (uint64, error) {
	ids := IDs(n)
	errs, counts := make([]error, min(flushers, n)), make([]uint64, min(flushers, n))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += len(errs) {
				var count uint64
				count, errs[w] = flush(ctx, region, ids[i])
				counts[w] += count
			}
		})
	}
	wg.Wait()
	var sum uint64
	for _, n := range counts {
		sum += n
	}
	return sum, errors.Join(errs...)
}

// flushers is how many entities are asked at a time.
const flushers = 16

// flush asks one entity until it answers with its count.
func flush(ctx context.Context, region *kith.Region, id string) (uint64, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		count, err := region.Ask(one, id, []byte{opFlush})
		cancel()
		switch {
		case err == nil && len(count) == 8:
			return binary.LittleEndian.Uint64(count), nil
		case errors.Is(err, kith.ErrSettingsDiffer):
			return 0, err
		case err == nil:
			return 0, fmt.Errorf("flush %s: %d bytes came back: no entity of this program", id, len(count))
		}
		select {
		case <-time.After(10 * time.Millisecond): // its home is not settled yet, or its mailbox is full
		case <-ctx.Done():
			return 0, fmt.Errorf("flush %s: %w: %w", id, ctx.Err(), err)
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
		if _, err := flush(ctx, region, ids[0]); err != nil { // behind the burst: the link is empty then
			return nil, err
		}
	}
	slices.Sort(times)
	slices.Sort(allocs)
	return Figures{"route_ns": median(times), "route_allocs": median(allocs)}, nil
}
