// Leave: disks go for good, one by one, until none is left of those that were there; each hands on first what it has.

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// handOnTime is how long a disk may take until no other one needs it: another node may be down for a while meanwhile.
const handOnTime = 3 * time.Minute

// needs is what a disk is needed for; nothing: for nothing.
type needs struct{ What string }

// needed returns what an error of a drain or a leave says of disks, or the error where it is another one.
func needed(err error) (needs, error) {
	if errors.Is(err, kith.ErrDisksNeeded) {
		return needs{err.Error()}, nil
	}
	return needs{}, err
}

// drain makes the disks of the node hand on their data, and returns what they are still needed for after a time.
func (c *child) drain(ctx context.Context, within time.Duration) (needs, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return needed(c.node.Drain(ctx))
}

// leave makes the node leave. If it was not drained before, its disks hand on their data now.
func (c *child) leave(ctx context.Context, _ cli.None) (needs, error) {
	return needed(c.node.Leave(ctx))
}

// handsOn draws whether each leave of the next process is for good; else it drains before.
func (s *slot) handsOn() bool {
	return rand.New(rand.NewPCG(s.h.cfg.Seed, uint64(s.number*nodes+s.disks))).IntN(2) == 0
}

// leave has disk after disk leave. Meanwhile another node is killed, in one of two.
func (f *faults) leave(ctx context.Context, order []int) bool {
	rng := rand.New(rand.NewPCG(f.draws.rng.Uint64(), 3))
	for k, i := range order {
		s, l := f.h.slots[i], f.h.slots[i].current()
		if l == nil {
			f.h.line("VIOLATION: %s does not run", s.name())
			return false
		}
		beside, last := -1, time.Duration(rng.IntN(3000))*time.Millisecond
		if rng.IntN(2) == 0 {
			beside = order[(k+1+rng.IntN(len(order)-1))%len(order)]
		}
		moves, pause := rng.IntN(2), time.Duration(rng.IntN(2000))*time.Millisecond
		hands := s.handsOn()
		f.h.line("%s leaves for good: it drains %v, killed meanwhile n%d, another address %v", s.name(), !hands, beside+1,
			moves == 1)
		over := make(chan struct{})
		s.mu.Lock()
		s.between = func() {
			_ = os.RemoveAll(s.disk())
			s.mu.Lock()
			s.at = (s.at + moves) % 2
			s.mu.Unlock()
			s.disks++
			close(over)
		}
		s.mu.Unlock()
		go func() {
			if beside >= 0 && cli.Pause(ctx, pause) {
				f.kill(beside, last, nil)
			}
		}()
		if !f.goes(ctx, s, l, !hands) {
			s.mu.Lock()
			s.between = nil // its disk is looked at
			s.mu.Unlock()
			return false
		}
		select {
		case <-over:
		case <-ctx.Done():
			return false
		}
		if f.h.whole(ctx, wholeTime) != nil {
			return false // asked again by the caller
		}
		f.h.line("%s has an empty disk, and lacks nothing", s.name())
	}
	return true
}

// goes has a node drain until its disk is not needed any more, and leave.
func (f *faults) goes(ctx context.Context, s *slot, l *life, drains bool) bool {
	var n needs
	var err error
	failed := func() bool {
		f.h.line("VIOLATION: %s leaves for good: %v %s", s.name(), err, n.What)
		f.h.mu.Lock()
		f.h.needed++
		f.h.mu.Unlock()
		return false
	}
	for end := f.h.clock.Now() + handOnTime; drains; drains = n.What != "" {
		n = needs{}
		if err = l.child.CallWithin(ctx, handOnTime, "drain", 5*time.Second, &n); err != nil || f.h.clock.Now() > end {
			return failed()
		}
		if n.What != "" {
			f.h.line("%s: %s", s.name(), n.What)
		}
	}
	if err = l.child.CallWithin(ctx, handOnTime+time.Minute, "leave", cli.None{}, &n); err != nil || n.What != "" {
		return failed()
	}
	f.h.mu.Lock()
	f.h.left++
	f.h.mu.Unlock()
	_ = l.child.Close(closeTime)
	return true
}
