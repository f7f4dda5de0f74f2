// Leave: disks go for good, one by one, until none is left of those that were there; each hands on first what it has.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// How long a drain may take, while another node may be down for a while; and how often it is asked for.
const (
	handOnTime = 3 * time.Minute
	askDrain   = 5 * time.Second
)

// waits is what a drain waits for; nothing: it is over.
type waits struct{ What string }

// drain drains the node, and returns what that waits for still after a time.
func (c *child) drain(ctx context.Context, within time.Duration) (waits, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err, moves := c.node.Drain(ctx), (*kith.DrainError)(nil)
	if errors.Is(err, kith.ErrDisksNeeded) || errors.As(err, &moves) {
		return waits{err.Error()}, nil
	}
	return waits{}, err
}

// needs counts a disk that would not go, or that went too soon.
func (h *harness) needs(format string, args ...any) {
	h.line(format, args...)
	h.mu.Lock()
	h.needed++
	h.mu.Unlock()
}

// leave has disk after disk leave. Meanwhile another node is killed, in one of two. In the end shards are asked that
// nobody has used before.
func (f *faults) leave(ctx context.Context, x fault) error {
	rng := rand.New(rand.NewPCG(f.draws.rng.Uint64(), 3))
	for k, i := range x.order {
		s, moves, killed, text := f.h.slots[i], rng.IntN(2), rng.IntN(2) == 0, ""
		other := x.order[(k+1+rng.IntN(len(x.order)-1))%len(x.order)]
		after, rest := time.Duration(rng.IntN(3000))*time.Millisecond, time.Duration(rng.IntN(3000))*time.Millisecond
		if killed {
			text = fmt.Sprintf(", n%d is killed meanwhile", other+1)
			time.AfterFunc(after, func() { f.kill(other, rest) })
		}
		f.h.line("%s leaves for good%s, and one comes at another address: %v", s.name(), text, moves == 1)
		if err := f.goes(ctx, s, moves); err != nil {
			return err
		}
		if err := f.h.whole(ctx, wholeTime); err != nil {
			return err
		}
		f.h.line("%s has an empty disk, and lacks nothing", s.name())
	}
	n := f.c.fresh(ctx, fmt.Sprint("unused", f.came[faultLeave]))
	f.h.silent += n
	f.h.line("%d registers of unused shards do not answer", n)
	return ctx.Err()
}

// goes has a node drain until nothing is left, and leave; another one comes.
func (f *faults) goes(ctx context.Context, s *slot, moves int) error {
	l := s.current()
	if l == nil {
		return fmt.Errorf("%s does not run", s.name())
	}
	end := f.h.clock.Now() + handOnTime
	for n := (waits{"nothing yet"}); n.What != ""; {
		n = waits{}
		if err := l.child.CallWithin(ctx, handOnTime, "drain", askDrain, &n); err != nil {
			return err
		}
		if n.What != "" {
			f.h.line("%s: %s", s.name(), n.What)
		}
		if f.h.clock.Now() > end {
			f.h.needs("VIOLATION: %s drains for %v: %s", s.name(), handOnTime, n.What)
			return fmt.Errorf("%w: %s drains for %v", errBroken, s.name(), handOnTime)
		}
	}
	over := make(chan struct{})
	s.mu.Lock()
	s.between = func() {
		_ = os.RemoveAll(f.h.diskOf(s))
		s.mu.Lock()
		s.at, s.disks = (s.at+moves)%2, s.disks+1
		s.mu.Unlock()
		close(over)
	}
	s.mu.Unlock()
	if err := l.child.CallWithin(ctx, 10*time.Second, "leave", cli.None{}, nil); err != nil {
		return err
	}
	select {
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(4 * leaveTime):
		return fmt.Errorf("%s does not end when it leaves", s.name())
	}
	f.h.mu.Lock()
	f.h.left++
	f.h.mu.Unlock()
	return nil
}

// freshTime is how long a shard may take that was never used.
const freshTime = 30 * time.Second

// fresh asks registers that nobody has asked before, in most of the shards, and returns how many do not answer.
func (c *callers) fresh(ctx context.Context, name string) int {
	ctx, cancel := context.WithTimeout(ctx, freshTime)
	defer cancel()
	var silent atomic.Int64
	var busy sync.WaitGroup
	for i := range 4 * shards {
		busy.Go(func() {
			for c.ask(ctx, registerType, fmt.Sprintf("%s-%d", name, i), request[access]{}).Outcome != done {
				if !cli.Pause(ctx, 100*time.Millisecond) {
					silent.Add(1)
					return
				}
			}
		})
	}
	busy.Wait()
	return int(silent.Load())
}
