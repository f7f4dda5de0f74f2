// Loads: one goroutine that tells, goroutines that ask, and messages that go round a ring.

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// payloadBytes is the length of every payload.
const payloadBytes = 64

// askLimit is the time limit of an ask.
const askLimit = 10 * time.Second

type loadArgs struct {
	Type     string
	Entities int           // that are sent to in turn
	Asks     int           // asks under way, a goroutine for each; zero: tells, of one goroutine
	For      time.Duration // how long
}

// load sends for a while; it fails when a message was not accepted or not answered.
func (p *program) load(a loadArgs) (none, error) {
	t, err := p.of(a.Type)
	if err != nil {
		return none{}, err
	}
	ids := make([]string, a.Entities)
	for i := range ids {
		ids[i] = entityID(i)
	}
	var over atomic.Bool
	timer := time.AfterFunc(a.For, func() { over.Store(true) })
	defer timer.Stop()
	if a.Asks == 0 {
		return none{}, tell(t.region, ids, &over)
	}
	errs := make(chan error, a.Asks)
	var wg sync.WaitGroup
	for k := range a.Asks {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := ask(t.region, ids, k*len(ids)/a.Asks, &over); err != nil {
				over.Store(true)
				errs <- err
			}
		}()
	}
	wg.Wait()
	close(errs)
	return none{}, <-errs
}

func tell(region *kith.Region, ids []string, over *atomic.Bool) error {
	ctx := context.Background()
	payload := make([]byte, payloadBytes)
	for {
		for _, id := range ids {
			if over.Load() {
				return nil
			}
			if err := region.TellWait(ctx, id, payload); err != nil {
				return fmt.Errorf("tell: %w", err)
			}
		}
	}
}

func ask(region *kith.Region, ids []string, from int, over *atomic.Bool) error {
	payload, into := make([]byte, payloadBytes), make([]byte, payloadBytes)
	payload[0] = opAsk
	for i := from; !over.Load(); i++ {
		if _, err := region.AskWithin(askLimit, ids[i%len(ids)], payload, into[:0]); err != nil {
			return fmt.Errorf("ask: %w", err)
		}
	}
	return nil
}

type ringArgs struct {
	Type          string
	Entities, Run int // how many entities stand in the ring, how many messages go round at a time
	For           time.Duration
}

// ring lets messages go round for a while.
func (p *program) ring(a ringArgs) (none, error) {
	t, err := p.of(a.Type)
	if err != nil {
		return none{}, err
	}
	payload := make([]byte, payloadBytes)
	payload[0] = opRing
	t.sink.stopped.Store(false)
	for i := range a.Run {
		if err := t.region.TellWait(context.Background(), entityID(i*a.Entities/a.Run), payload); err != nil {
			return none{}, fmt.Errorf("ring: %w", err)
		}
	}
	time.Sleep(a.For)
	t.sink.stopped.Store(true)
	return none{}, nil
}
