// The run: node processes, callers outside of them, faults, and what came of it.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/lab/cuts"
)

// nodes is how many processes there are.
const nodes = 5

// config says what is run.
type config struct {
	For   time.Duration
	Seed  uint64
	Rate  float64
	Only  []string
	Break string
	Out   string
	Keep  bool

	Child    cli.Options
	Progress *cli.Progress
}

// validate returns all faults joined, or nil.
func (c *config) validate() error {
	var errs cli.Faults
	errs.Must(c.For > 0 && c.For <= time.Hour, "--minutes must be more than 0 and at most 60")
	errs.Must(c.Rate >= 1 && c.Rate <= 5000, "--rate must be 1 to 5000")
	_, err := kindsOf(c.Only)
	errs.Must(err == nil, "%v", err)
	return errs.Err()
}

// errBroken is wrapped by the error of a run that has broken a law.
var errBroken = errors.New("a law is broken")

// Result is the last line.
type Result struct {
	Seed       uint64         `json:"seed"`
	Seconds    float64        `json:"seconds"`
	Writes     int            `json:"writes"`      // acknowledged, of all three stores
	Lost       int            `json:"lost"`        // marks of sets that were acknowledged, and are not read at the end
	StaleReads int            `json:"stale_reads"` // of sets: they began behind an acknowledgement that they lack
	Unread     int            `json:"unread"`      // keys and shards that could not be read at the end
	Refused    int            `json:"refused"`     // writes that had no effect, and were answered so
	Crashed    int            `json:"crashed"`     // processes that ended by themselves, or did not start, without a reason
	Replaced   int            `json:"replaced"`    // disks that were emptied since they were damaged
	Left       int            `json:"left"`        // disks that handed on what they had, and left for good
	Needed     int            `json:"needed"`      // disks that others needed still when their nodes left, or would not let go
	Siblings   uint64         `json:"siblings"`    // reads that found several values
	Repairs    uint64         `json:"repairs"`
	Exchanged  uint64         `json:"exchanged"`
	Hints      int            `json:"hints"`   // the most that waited at once
	Entries    uint64         `json:"entries"` // of fenced records
	Copied     uint64         `json:"copied"`  // shards of fenced records
	P50        float64        `json:"p50_ms"`  // of acknowledged writes
	P99        float64        `json:"p99_ms"`
	Faults     map[string]int `json:"faults"`
	Registers  judgement      `json:"registers"`
	Fenced     judgement      `json:"fenced"`
}

// verdict says what must not be.
func (r *Result) verdict() error {
	if r.Lost+r.StaleReads+r.Unread+r.Crashed+r.Needed > 0 || !r.Registers.Judged || !r.Fenced.Judged {
		return errBroken
	}
	if r.Writes == 0 || r.Fenced.Steps == 0 || r.Registers.Steps == 0 {
		return fmt.Errorf("%w: %d writes", errBroken, r.Writes)
	}
	return nil
}

// harness is one run.
type harness struct {
	cfg   config
	dir   string
	zero  time.Duration
	clock cli.Clock
	net   *cuts.Network
	slots []*slot

	mu       sync.Mutex
	crashed  int
	replaced int
	left     int
	needed   int
	hints    int
	timeline *os.File
}

const wholeTime = 3 * time.Minute // until all nodes see all others, and lack nothing

// run runs it.
func run(ctx context.Context, cfg config) (*Result, error) {
	h := &harness{cfg: cfg, zero: cli.MachineTime()}
	h.clock = cli.NewClock(h.zero)
	if err := h.prepare(); err != nil {
		return nil, err
	}
	defer h.net.Close()
	r, err := h.run(ctx)
	_ = h.timeline.Close()
	if err == nil && !cfg.Keep {
		list, _ := filepath.Glob(filepath.Join(h.dir, "*"))
		for _, f := range list {
			if filepath.Base(f) != "timeline.txt" {
				_ = os.RemoveAll(f)
			}
		}
	}
	return r, err
}

// prepare makes the folder and the network.
func (h *harness) prepare() (err error) {
	if h.dir, err = filepath.Abs(filepath.Join(h.cfg.Out, fmt.Sprintf("data-%d", h.cfg.Seed))); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(h.dir), os.MkdirAll(h.dir, 0o755)); err != nil {
		return err
	}
	if h.timeline, err = os.Create(filepath.Join(h.dir, "timeline.txt")); err != nil {
		return err
	}
	for i := range nodes {
		h.slots = append(h.slots, &slot{h: h, number: i})
	}
	h.net, err = cuts.Lay(2 * nodes) // two for each: slot.place
	return err
}

// line writes a line of the timeline.
func (h *harness) line(format string, args ...any) {
	text := fmt.Sprintf("%8.3f %s", h.clock.Now().Seconds(), fmt.Sprintf(format, args...))
	h.mu.Lock()
	_, _ = fmt.Fprintln(h.timeline, text)
	h.mu.Unlock()
	h.cfg.Progress.Printf("%s", text)
}

// run lives the life of the cluster.
func (h *harness) run(ctx context.Context) (*Result, error) {
	h.line("seed %d, %d nodes", h.cfg.Seed, nodes)
	living, die := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer die()
	for _, s := range h.slots {
		busy.Go(func() { s.supervise(living) })
	}
	if err := h.whole(ctx, wholeTime); err != nil {
		return nil, err
	}
	c := newCallers(h)
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	c.begin()
	f := newFaults(h)
	failed := f.run(ctx)
	h.line("the traffic ends")
	c.end()
	r := &Result{Seed: h.cfg.Seed, Faults: f.came}
	var sets map[string]map[int64]bool
	if failed == nil {
		r.Unread, sets = c.readAll(ctx)
	}
	h.statuses(ctx)
	die()
	busy.Wait()
	return r, errors.Join(failed, h.account(r, c, sets))
}

// account holds what was read against what was answered.
func (h *harness) account(r *Result, c *callers, sets map[string]map[int64]bool) error {
	r.Seconds, r.Writes, r.Refused = h.clock.Now().Seconds(), c.writes, c.refused
	r.Crashed, r.Replaced, r.Left, r.Needed, r.Hints = h.crashed, h.replaced, h.left, h.needed, h.hints
	for _, s := range h.slots {
		for _, x := range []*status{&s.before, &s.last} {
			r.Siblings += x.Siblings.Conflicted
			r.Repairs += x.Siblings.Repairs + x.Registers.Repairs
			r.Exchanged += x.Siblings.Exchanged + x.Registers.Exchanged
			r.Entries, r.Copied = r.Entries+x.Registers.Entries, r.Copied+x.Registers.Copied
		}
	}
	r.P50, r.P99 = float64(c.times.ValueAtQuantile(50))/1000, float64(c.times.ValueAtQuantile(99))/1000
	staleReads, lost := stale(c.adds, c.looks, sets)
	r.StaleReads, r.Lost = staleReads, len(lost)
	r.Registers, r.Fenced = judge(c.registers), judge(c.fenced)
	for _, a := range lost {
		h.line("VIOLATION: mark %d of set %s, acknowledged at %.3f, is lost", a.Mark, a.Key, a.To.Seconds())
	}
	for _, name := range slices.Concat(r.Registers.violating, r.Fenced.violating) {
		h.line("VIOLATION: the history of %s is not linearizable", name)
		for _, s := range slices.Concat(c.registers, c.fenced) {
			if s.Register == name {
				h.line("  %.6f to %.6f: caller %d writes %d reads %d: %s", s.From.Seconds(), s.To.Seconds(), s.Caller, s.Write,
					s.Read, s.Outcome)
			}
		}
	}
	if err := r.verdict(); err != nil {
		return fmt.Errorf("%w; timeline, logs and disks are in %s", err, h.dir)
	}
	return nil
}

// whole waits until all nodes see all others Up, and their disks lack nothing.
func (h *harness) whole(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := fleet.Until(ctx, 200*time.Millisecond, func(ctx context.Context) ([]status, error) {
		return h.statuses(ctx), nil
	}, func(all []status) bool {
		return !slices.ContainsFunc(all, func(s status) bool {
			return s.Up != nodes || s.Others > 0 || s.Registers.Disks != nodes || s.Siblings.Disks != nodes ||
				s.Registers.Lacking+s.Siblings.Lacking > 0
		})
	})
	if err != nil {
		return fmt.Errorf("the cluster is not whole: %w: %+v", err, h.statuses(context.WithoutCancel(ctx)))
	}
	return nil
}

// statuses returns what the processes say; nothing where there is none, or it does not answer.
func (h *harness) statuses(ctx context.Context) []status {
	all := make([]status, nodes)
	_ = fleet.Each(h.slots, func(i int, s *slot) error { // what does not answer shows
		if l := s.current(); l != nil && l.child.CallWithin(ctx, time.Second, "status", cli.None{}, &all[i]) == nil {
			s.counted(l, &all[i])
		}
		return nil
	})
	hints := 0
	for i := range all {
		hints += all[i].Registers.Hints + all[i].Siblings.Hints
	}
	h.mu.Lock()
	h.hints = max(h.hints, hints)
	h.mu.Unlock()
	return all
}
