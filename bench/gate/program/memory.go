// Memory: idle entities by the million, and what the process holds for them.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

type fillArgs struct {
	Type     string
	Entities int
}

// fillers is how many goroutines tell at a time, and restTime how long entities rest before their memory is looked at:
// shards let go what they kept for busy ones after a second.
const (
	fillers  = 4
	restTime = 2 * time.Second
)

// fill sends a message to each entity and waits until all have handled theirs and have rested.
func (p *program) fill(a fillArgs) (none, error) {
	t, err := p.of(a.Type)
	if err != nil {
		return none{}, err
	}
	errs := make([]error, fillers)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := w; n < a.Entities && errs[w] == nil; n += fillers {
				errs[w] = t.region.TellWait(context.Background(), entityID(n), []byte{opTell})
			}
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return none{}, err
	}
	for end := time.Now().Add(startLimit); ; time.Sleep(5 * time.Millisecond) {
		s := p.node.Stats()
		if p.idle.handled.Load() == int64(a.Entities) && s.BusyEntities == 0 && s.MailboxBytes == 0 {
			break
		}
		if time.Now().After(end) {
			return none{}, fmt.Errorf("%d of %d messages handled after %v", p.idle.handled.Load(), a.Entities, startLimit)
		}
	}
	time.Sleep(restTime)
	return none{}, nil
}

// heldReply is what the process holds after a collection and a return of memory, in bytes.
type heldReply struct{ Resident uint64 }

func (p *program) held(none) (heldReply, error) {
	runtime.GC()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return heldReply{}, fmt.Errorf("resident memory: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return heldReply{}, errors.New("resident memory: /proc/self/statm is not as known")
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	return heldReply{pages * uint64(os.Getpagesize())}, err
}
