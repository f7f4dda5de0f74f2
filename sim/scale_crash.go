// The part "crash": a host falls silent, who notices when, and when everybody knows.

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
)

// percentile returns the p-th percentile (nearest rank) of sorted values.
func percentile(sorted []time.Duration, p int) time.Duration {
	at := (len(sorted)*p + 99) / 100
	return sorted[max(at, 1)-1]
}

// crashes crashes one host after the other, each at a random moment of a converged cluster, and has it downed and
// removed before the next.
func (r *scaleRun) crashes() error {
	n := r.cfg.Crashes
	if n == 0 {
		n = 100
		if r.cfg.Nodes > 300 {
			n = 50
		}
	}
	n = min(n, r.cfg.Nodes-2)
	var first, all []time.Duration
	spread := time.Duration(0)
	for k := range n {
		if err := r.settle(); err != nil {
			return err
		}
		r.c.advance(time.Duration(r.c.rng.Int64N(int64(time.Second))))
		f, a, err := r.crashOne()
		if err != nil {
			return err
		}
		first, all, spread = append(first, f), append(all, a), max(spread, a-f)
		r.say("crash %d of %d: first %v, all %v", k+1, n, f, a)
	}
	slices.Sort(first)
	slices.Sort(all)
	r.out.Crashes = n
	r.out.CrashFirstP50, r.out.CrashFirstP99 = seconds(percentile(first, 50)), seconds(percentile(first, 99))
	r.out.CrashAllP50, r.out.CrashAllP99 = seconds(percentile(all, 50)), seconds(percentile(all, 99))
	r.out.CrashSpread = seconds(spread)
	return nil
}

// crashOne crashes a random node and returns how long it took until one and until all had published that it is
// unreachable.
func (r *scaleRun) crashOne() (first, all time.Duration, err error) {
	c := r.c
	victim := -1
	for victim < 0 || !c.nodes[victim].alive {
		victim = c.rng.IntN(len(c.nodes))
	}
	id, began := c.nodes[victim].id, c.now
	c.crash(victim)
	live, know, gone := 0, 0, 0
	for _, s := range c.nodes {
		if s.alive {
			live++
		}
	}
	c.onEvent = func(_ int, e *membership.Event) {
		switch {
		case e.Member.ID != id:
		case e.Kind == membership.UnreachableMember:
			if know++; know == 1 {
				first = c.now - began
			}
		case e.Kind == membership.MemberRemoved:
			gone++
		}
	}
	defer func() { c.onEvent = nil }()
	if !c.until(scaleLimit, func() bool { return know >= live }) {
		return 0, 0, fmt.Errorf("%w: after %v only %d of %d know of a crash", ErrScale, scaleLimit, know, live)
	}
	all = c.now - began
	for i, s := range c.nodes {
		if s.alive {
			c.do(i, membership.DownCommand{ID: id})
			break
		}
	}
	if !c.until(scaleLimit, func() bool { return gone >= live }) {
		return 0, 0, fmt.Errorf("%w: after %v only %d of %d forgot a downed node", ErrScale, scaleLimit, gone, live)
	}
	c.expect(c.want - 1)
	return first, all, nil
}
