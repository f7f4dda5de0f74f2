// The parts "crash" and "kill": a host falls silent, or a process dies on a host that lives; which node notices when,
// and when everybody knows.

package scale

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
	first, all, spread, err := r.deaths("crash", r.c.crash)
	if err != nil {
		return err
	}
	r.out.Crashes = len(all)
	r.out.CrashFirstP50, r.out.CrashFirstP99 = seconds(percentile(first, 50)), seconds(percentile(first, 99))
	r.out.CrashAllP50, r.out.CrashAllP99 = seconds(percentile(all, 50)), seconds(percentile(all, 99))
	r.out.CrashSpread = seconds(spread)
	return nil
}

// kills is the same for processes on hosts that live on and refuse connections.
func (r *scaleRun) kills() error {
	_, all, _, err := r.deaths("kill", r.c.kill)
	if err != nil {
		return err
	}
	r.out.Kills = len(all)
	r.out.KillAllP50, r.out.KillAllP99 = seconds(percentile(all, 50)), seconds(percentile(all, 99))
	return nil
}

// deaths lets nodes die one by one; how each of them dies is given. The times until the first and until all others have
// published it come sorted; spread is the longest between the two.
func (r *scaleRun) deaths(word string, die func(i int)) (first, all []time.Duration, spread time.Duration, err error) {
	n := r.cfg.Crashes
	if n == 0 {
		switch n = 100; {
		case r.cfg.Nodes > builtAbove:
			n = 1
		case r.cfg.Nodes > 300:
			n = 50
		}
	}
	n = min(n, r.c.want/2)
	for k := range n {
		if err := r.awaitQuiet(); err != nil {
			return nil, nil, 0, err
		}
		r.c.advance(time.Duration(r.c.rng.Int64N(int64(time.Second))))
		f, a, err := r.oneDies(die)
		if err != nil {
			return nil, nil, 0, err
		}
		first, all, spread = append(first, f), append(all, a), max(spread, a-f)
		r.say("%s %d of %d: first %v, all %v", word, k+1, n, f, a)
	}
	slices.Sort(first)
	slices.Sort(all)
	return first, all, spread, nil
}

// oneDies lets a random node die and returns how long it took until one and until all others had published that it is
// unreachable.
func (r *scaleRun) oneDies(die func(i int)) (first, all time.Duration, err error) {
	c := r.c
	victim := -1
	for victim < 0 || !c.nodes[victim].alive {
		victim = c.rng.IntN(len(c.nodes))
	}
	id, began := c.nodes[victim].id, c.now
	die(victim)
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
		return 0, 0, fmt.Errorf("%w: after %v only %d of %d know of a crash", ErrRun, scaleLimit, know, live)
	}
	all = c.now - began
	for i, s := range c.nodes {
		if s.alive {
			c.do(i, membership.DownCommand{ID: id})
			break
		}
	}
	if !c.until(scaleLimit, func() bool { return gone >= live }) {
		return 0, 0, fmt.Errorf("%w: after %v only %d of %d forgot a downed node", ErrRun, scaleLimit, gone, live)
	}
	c.expect(c.want - 1)
	return first, all, nil
}
