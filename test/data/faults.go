// Faults: a seed draws them; one comes, and then the cluster gets whole again.

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// The kinds of faults.
const (
	faultKill  = "kill"  // kill -9 of one node or two, which are started again
	faultPower = "power" // all processes end at once, and files lose what was not synced
	faultStop  = "stop"  // SIGSTOP, then SIGCONT
	faultCut   = "cut"   // one node or two are cut off from the others
	faultEmpty = "empty" // a node is killed, and comes back with an empty disk
	faultFull  = "full"  // a disk is full
	faultTorn  = "torn"  // a node is killed, and a table of its disk is cut in two
	faultBit   = "bit"   // a node is killed, and a bit of a table of its disk flips
	faultLeave = "leave" // all disks leave for good, one by one; each has a node with an empty disk after it
	faultNone  = "none"  // nothing happens for a while
)

// kindsOf returns the kinds in the order in which they are drawn from, or those of them that are wanted.
func kindsOf(only []string) ([]string, error) {
	all := []string{faultKill, faultPower, faultStop, faultCut, faultEmpty, faultFull, faultTorn, faultBit, faultLeave}
	if len(only) == 0 {
		return all, nil
	}
	all = append(all, faultNone)
	for _, k := range only {
		if !slices.Contains(all, k) {
			return nil, fmt.Errorf("--only: %q is none of %s", k, strings.Join(all, ", "))
		}
	}
	return only, nil
}

// fault is one round.
type fault struct {
	kind  string
	order []int         // of nodes
	many  int           // how many are hit: of those that lose a disk fewer than W at once
	last  time.Duration // how long it lasts
	rest  time.Duration // of calm before it
}

// draws draws faults: of a deck of all kinds, shuffled anew when it is used up.
type draws struct {
	rng   *rand.Rand
	kinds []string
	deck  []string
}

func newDraws(seed uint64, kinds []string) *draws {
	return &draws{rng: rand.New(rand.NewPCG(seed, 0)), kinds: kinds}
}

// next returns the next fault.
func (d *draws) next() fault {
	if len(d.deck) == 0 {
		d.deck = slices.Clone(d.kinds)
		d.rng.Shuffle(len(d.deck), func(i, k int) { d.deck[i], d.deck[k] = d.deck[k], d.deck[i] })
	}
	between := func(low, high int) time.Duration { return time.Duration(low+d.rng.IntN(high-low+1)) * time.Millisecond }
	f := fault{kind: d.deck[0], order: d.rng.Perm(nodes), rest: between(500, 2000), last: between(500, 5000), many: 1}
	d.deck = d.deck[1:]
	switch f.kind {
	case faultKill, faultCut:
		f.many += d.rng.IntN(2)
	case faultLeave:
		f.many = nodes
	}
	return f
}

// faults has them come.
type faults struct {
	h     *harness
	draws *draws
	came  map[string]int
}

func newFaults(h *harness) *faults {
	kinds, _ := kindsOf(h.cfg.Only) // checked before
	return &faults{h: h, draws: newDraws(h.cfg.Seed, kinds), came: map[string]int{}}
}

// run lets fault after fault come until the time is over.
func (f *faults) run(ctx context.Context) error {
	end := f.h.clock.Now() + f.h.cfg.For
	for {
		next := f.draws.next()
		if !cli.Pause(ctx, min(next.rest, max(0, end-f.h.clock.Now()))) {
			return context.Cause(ctx)
		}
		if f.h.clock.Now() >= end {
			return nil
		}
		hit := next.order[:next.many]
		f.h.line("fault: %s of nodes %v, %.1f s", next.kind, hit, next.last.Seconds())
		if f.one(ctx, next.kind, hit, next.last) {
			f.came[next.kind]++
		}
		if err := f.h.whole(ctx, wholeTime); err != nil {
			return fmt.Errorf("%s: %w", next.kind, err)
		}
		f.h.line("the cluster is whole")
	}
}

// one causes a fault, and waits until it is over. It reports whether there was something to harm.
func (f *faults) one(ctx context.Context, kind string, hit []int, last time.Duration) bool {
	switch kind {
	case faultKill:
		for _, i := range hit {
			f.kill(i, last, nil)
		}
		cli.Pause(ctx, last)
	case faultPower:
		f.power(ctx, last)
	case faultStop:
		if l := f.h.slots[hit[0]].current(); l != nil {
			_ = l.child.Process().Signal(syscall.SIGSTOP)
			cli.Pause(ctx, last)
			_ = l.child.Process().Signal(syscall.SIGCONT)
		}
	case faultCut:
		var cut []int
		for _, i := range hit {
			cut = append(cut, f.h.slots[i].place())
		}
		f.h.net.Cut(cut...)
		cli.Pause(ctx, last)
		f.h.net.Cut()
	case faultFull:
		mark := f.h.slots[hit[0]].disk() + fullMark
		_ = os.WriteFile(mark, nil, 0o600)
		cli.Pause(ctx, last)
		_ = os.Remove(mark)
	case faultEmpty, faultTorn, faultBit:
		return f.harm(ctx, kind, f.h.slots[hit[0]])
	case faultLeave:
		return f.leave(ctx, hit)
	case faultNone:
		cli.Pause(ctx, last)
	}
	return true
}

// kill kills a node. between is done while no process runs.
func (f *faults) kill(victim int, rest time.Duration, between func()) {
	s := f.h.slots[victim]
	s.mu.Lock()
	l := s.now
	s.rest, s.between = rest, between
	s.mu.Unlock()
	if l != nil {
		l.child.Kill()
	}
}

// power ends all processes as a loss of power does: none starts before the last has ended.
func (f *faults) power(ctx context.Context, last time.Duration) {
	var all sync.WaitGroup
	first := f.h.slots[0]
	first.mu.Lock()
	first.forms = true
	first.mu.Unlock()
	for _, s := range f.h.slots {
		if l := s.current(); l != nil {
			all.Go(func() {
				s.held.Lock()
				defer s.held.Unlock()
				_ = l.child.CallWithin(ctx, time.Second, "power", cli.None{}, nil)
				l.child.Kill()
				cli.Pause(ctx, last)
			})
		}
	}
	all.Wait()
}

// settled is how long the owners of shards have for putting a new disk into the place of one that is lost: five rounds,
// and copies.
const settled = 8 * time.Second

// harm kills a node, and changes its disk. Another one is harmed no sooner than this one's replicas are whole.
func (f *faults) harm(ctx context.Context, kind string, s *slot) bool {
	over, what := make(chan struct{}), "an empty disk"
	rng := rand.New(rand.NewPCG(f.draws.rng.Uint64(), 2))
	f.kill(s.number, 0, func() {
		defer close(over)
		if kind == faultEmpty {
			_ = os.RemoveAll(s.disk())
			return
		}
		s.mu.Lock()
		s.damaged = true
		s.mu.Unlock()
		what = damage(s.disk(), kind == faultTorn, rng)
	})
	select {
	case <-over:
	case <-ctx.Done():
		return false
	}
	f.h.line("%s: %s", s.name(), cmp.Or(what, "nothing to harm"))
	_ = f.h.whole(ctx, wholeTime) // asked again by who calls
	f.h.line("%s lacks nothing; owners have %v for its shards of records", s.name(), settled)
	cli.Pause(ctx, settled)
	return what != ""
}
