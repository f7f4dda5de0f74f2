// Stalls: one process after the other stands still for a moment under load, and the run counts processes that end for
// it.

package chaos

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
)

// StallsConfig says how long, and how often.
type StallsConfig struct {
	Trial                 // Rounds and Dir's folders are not used
	For     time.Duration // in all
	Longest time.Duration // a stall takes half of it to all of it; at least 2 ms
	Every   time.Duration // from the begin of one stall to that of the next
	Seed    uint64
}

// StallsResult is the last line of stalls.
type StallsResult struct {
	Nodes    int              `json:"nodes"`
	Patience cluster.Patience `json:"patience"`
	Longest  float64          `json:"longest_s"`
	Seconds  float64          `json:"seconds"`
	Stalls   int              `json:"stalls"`
	Ended    int              `json:"ended"` // processes that the others gave up, or that gave themselves up
	Toll
}

// Stalls makes one process of a cluster under load stand still again and again until ctx ends or the time is over. The
// error wraps ErrViolation when two owned an entity, or a message was lost that no end explains; that processes end is
// what is measured.
func Stalls(ctx context.Context, cfg StallsConfig) (*StallsResult, error) {
	r := &StallsResult{Nodes: cfg.Nodes, Patience: cfg.Patience, Longest: cfg.Longest.Seconds()}
	h := newHarness(Config{Nodes: cfg.Nodes, Seed: 1, Load: cfg.Load, Net: direct, Patience: cfg.Patience,
		StableAfter: cfg.StableAfter, Child: cfg.Child, Progress: cfg.Progress, Dir: filepath.Join(cfg.Dir, "cluster")})
	if err := h.prepare(); err != nil {
		return nil, err
	}
	began := cli.MachineTime()
	c, err := costs(ctx, h, func(ctx context.Context) error {
		h.stallAll(ctx, &cfg, r)
		return nil
	})
	r.Seconds = *inSeconds(cli.MachineTime() - began)
	r.Toll.add(&c, 0)
	return r, h.close(err, c.verdict.Double+c.verdict.Back+c.verdict.Twice+c.unexplained())
}

// stallAll stops one process after the other, and lets it go on.
func (h *harness) stallAll(ctx context.Context, cfg *StallsConfig, r *StallsResult) {
	all := make([]int, cfg.Nodes)
	lives := make([]*life, cfg.Nodes)
	for i, s := range h.slots {
		all[i], lives[i] = i, s.current()
	}
	f := struck{Fault{Kind: Pause, Victims: cfg.Nodes, For: cfg.For}, all}
	at := h.clock.Now()
	h.mu.Lock()
	h.rounds = append(h.rounds, past{Round: Round{Number: 1, Faults: []Fault{f.Fault}}, faults: []struck{f}, from: at})
	h.mu.Unlock()
	rng := rand.New(rand.NewPCG(cfg.Seed, 0))
	look := func() {
		for i, s := range h.slots {
			if l := s.current(); l != nil && l != lives[i] {
				if lives[i] != nil {
					r.Ended++
				}
				lives[i] = l
			}
		}
	}
	for end := at + cfg.For; h.clock.Now() < end && ctx.Err() == nil; {
		begin := h.clock.Now()
		if l := h.slots[rng.IntN(cfg.Nodes)].current(); l != nil && l.running() {
			d := cfg.Longest/2 + time.Duration(rng.Int64N(int64(cfg.Longest/2)))
			over := h.book.pausedFrom(l.sender, begin)
			l.signal(syscall.SIGSTOP)
			cli.Pause(ctx, d)
			over(h.clock.Now())
			l.signal(syscall.SIGCONT)
			r.Stalls++
		}
		cli.Pause(ctx, cfg.Every-(h.clock.Now()-begin))
		look()
		cfg.Progress.Printf("%v of %v: %d stalls, %d ended", (h.clock.Now() - at).Round(time.Second), cfg.For, r.Stalls,
			r.Ended)
	}
	cli.Pause(ctx, paceOf(cfg.Nodes, cfg.Patience, cfg.StableAfter).takeover) // what was begun comes to its end
	look()
	if why, ok := h.well(ctx, 0, wellBound); !ok {
		h.line.printf("not well in the end: %s", why)
	}
}
