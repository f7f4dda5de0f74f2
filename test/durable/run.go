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
)

// config says what is run.
type config struct {
	Engine      string
	For         time.Duration
	Seed        uint64
	Nodes       int
	Accounts    int
	Rate        float64
	Only        []string
	StableAfter time.Duration
	Idle        time.Duration
	Break       string
	Out         string
	Keep        bool

	Child    cli.Options
	Progress *cli.Progress
}

// validate returns all faults joined, or nil.
func (c *config) validate() error {
	var errs cli.Faults
	errs.Must(c.For > 0 && c.For <= time.Hour, "--minutes must be more than 0 and at most 60")
	errs.Must(c.Nodes >= 3 && c.Nodes <= 9, "--nodes must be 3 to 9")
	errs.Must(c.Accounts >= 10 && c.Accounts <= 100_000, "--accounts must be 10 to 100000")
	errs.Must(c.Rate > 0 && c.Rate <= 5000, "--rate must be more than 0 and at most 5000")
	errs.Must(2*c.Rate*c.For.Seconds() <= float64(c.Accounts)*maxEntries/4,
		"--rate, --minutes and --accounts: an account would have more than %d entries", maxEntries/4)
	errs.Must(c.Engine != quorumEngine || c.Break != breakUnbound, "--break=unbound: the disks of the nodes have no way "+
		"past the fence")
	errs.Must(c.StableAfter >= 2*time.Second && c.StableAfter <= time.Minute, "--stable-after must be 2s to 1m")
	errs.Must(c.Idle >= 0 && c.Idle <= time.Hour, "--idle must be 0 to 1h")
	_, err := kindsOf(c.Engine, c.Only)
	errs.Must(err == nil, "%v", err)
	return errs.Err()
}

// errBroken is wrapped by the error of a run that has broken a law.
var errBroken = errors.New("a law is broken")

// Result is the last line.
type Result struct {
	Engine    string  `json:"engine"`
	Disk      string  `json:"disk"` // where the store lies: plain, or tmpfs, which flushes nothing
	Seed      uint64  `json:"seed"`
	Seconds   float64 `json:"seconds"`
	Nodes     int     `json:"nodes"`
	Accounts  int     `json:"accounts"`
	Transfers int     `json:"transfers"` // with both changes known as done
	laws
	Unfinished int               `json:"unfinished"` // transfers with a second change that is not done
	Repeated   int               `json:"repeated"`   // changes that were asked again
	Refused    int               `json:"refused"`    // asks that had no effect, and were answered so
	NotSent    int               `json:"not_sent"`   // transfers that were due while too many were under way
	Unanswered int               `json:"unanswered"` // accounts that could not be read through the nodes at the end
	Unsent     int               `json:"unsent"`     // accounts with messages or letters that have not arrived at the end
	Unfired    int               `json:"unfired"`    // accounts that have not been reminded of something at the end
	Stopped    []string          `json:"stopped"`    // types that a node had stopped at the end: the store went back
	Left       int               `json:"left"`       // disks that handed on what they had, and left for good
	Needed     int               `json:"needed"`     // disks that others would not let go, or needed when their nodes had left
	Crashed    int               `json:"crashed"`    // processes that ended by themselves with a crash
	Faults     map[string]int    `json:"faults"`
	Skipped    map[string]string `json:"skipped,omitempty"` // faults that cannot be had here, and why
	P50        float64           `json:"p50_ms"`            // of transfers, from when they were due
	P99        float64           `json:"p99_ms"`
	CalmP50    float64           `json:"calm_p50_ms"` // of those that no fault was near
	CalmP99    float64           `json:"calm_p99_ms"`
	Register   judgement         `json:"register"`
}

// verdict says what must not be.
func (r *Result) verdict() error {
	var errs []error
	if r.broken() || !r.Register.Judged || r.Unanswered+r.Unsent+r.Unfired+r.Needed+r.Crashed+len(r.Stopped) > 0 {
		errs = append(errs, errBroken)
	}
	if r.Transfers == 0 || r.Letters == 0 {
		errs = append(errs, fmt.Errorf("%w: %d transfers were made, %d letters stored", errBroken, r.Transfers, r.Letters))
	}
	return errors.Join(errs...)
}

// harness is one run.
type harness struct {
	cfg   config
	dir   string
	zero  time.Duration
	clock cli.Clock
	back  backend
	slots []*slot

	mu       sync.Mutex
	senders  int
	crashed  int
	left     int
	needed   int
	silent   int      // entities of shards that were never used, which did not answer
	kept     []stored // where the store is the nodes' disks: what they had before the last one ended
	timeline *os.File
}

// How long things may take.
const (
	formTime  = 2 * time.Minute // until all nodes see all others
	drainTime = 2 * time.Minute // until what is under way at the end is known
	breakTime = 5 * time.Second // the same where a mistake is planted: what has stopped for good is not waited for
	openTime  = 2 * time.Minute // until all accounts are opened
)

// drain is how long is waited for what is under way at the end.
func (c *config) drain() time.Duration {
	if c.Break != "" {
		return breakTime
	}
	return drainTime
}

// run runs it.
func run(ctx context.Context, cfg config) (*Result, error) {
	h := &harness{cfg: cfg, zero: cli.MachineTime()}
	h.clock = cli.NewClock(h.zero)
	if err := h.prepare(); err != nil {
		return nil, err
	}
	r, err := h.run(ctx)
	if x := h.back.close(); err == nil {
		err = x
	}
	_ = h.timeline.Close()
	if err == nil && !cfg.Keep {
		h.sweep()
	}
	return r, err
}

// prepare makes the folder and the store.
func (h *harness) prepare() (err error) {
	if h.dir, err = filepath.Abs(filepath.Join(h.cfg.Out, fmt.Sprintf("durable-%d", h.cfg.Seed))); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(h.dir), os.MkdirAll(h.dir, 0o755)); err != nil {
		return err
	}
	if h.timeline, err = os.Create(filepath.Join(h.dir, "timeline.txt")); err != nil {
		return err
	}
	for i := range h.cfg.Nodes {
		h.slots = append(h.slots, &slot{h: h, number: i})
	}
	h.back, err = newBackend(h)
	return err
}

// sweep removes all but the timeline.
func (h *harness) sweep() {
	list, _ := filepath.Glob(filepath.Join(h.dir, "*"))
	for _, f := range list {
		if filepath.Base(f) != "timeline.txt" {
			_ = os.RemoveAll(f)
		}
	}
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
	h.line("seed %d, %d nodes, %s on %s", h.cfg.Seed, h.cfg.Nodes, h.cfg.Engine, h.back.disk())
	living, die := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer die()
	for _, s := range h.slots { // one by one: all but the first join
		if err := s.start(ctx); err != nil {
			h.killAll()
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		busy.Go(func() { s.supervise(living) })
	}
	if err := h.whole(ctx, formTime); err != nil {
		return nil, err
	}
	c := newCallers(h)
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	h.line("all accounts are opened")
	c.begin()
	f, err := newFaults(h, c)
	if err != nil {
		return nil, err
	}
	failed := f.run(ctx)
	h.line("the traffic ends")
	c.end()
	r := &Result{Engine: h.cfg.Engine, Disk: h.back.disk(), Seed: h.cfg.Seed, Nodes: h.cfg.Nodes,
		Accounts: h.cfg.Accounts, Faults: f.came, Skipped: f.skipped, Stopped: []string{}}
	if failed == nil {
		r.Unanswered = c.readAll(ctx) + h.silent
		h.line("%d accounts could not be read", r.Unanswered)
		failed = errors.Join(h.settle(ctx, r), c.readDead(ctx))
	}
	r.Stopped = append(r.Stopped, h.stopped(ctx)...)
	if h.cfg.Engine == quorumEngine && failed == nil { // while there is somebody to ask
		db, _ := h.bare() // it opens nothing
		h.kept, failed = db.all(ctx)
	}
	die()
	busy.Wait()
	r.Crashed, r.Left, r.Needed = h.crashed, h.left, h.needed
	if h.cfg.Engine == quorumEngine && failed != nil {
		return r, fmt.Errorf("what is stored cannot be read: %w", failed)
	}
	return r, errors.Join(failed, h.account(r, c))
}

// bare opens what is stored without the engine.
func (h *harness) bare() (records, error) {
	if h.cfg.Engine == quorumEngine {
		return &disks{h: h}, nil
	}
	return openBare(h.cfg.Engine, h.back.source())
}

// settle waits until what the accounts have sent, and all letters, have arrived, and until the accounts have been reminded of all.
func (h *harness) settle(ctx context.Context, r *Result) error {
	db, err := h.bare()
	if err != nil {
		return err
	}
	defer db.Close()
	for end := h.clock.Now() + h.cfg.drain(); ; {
		r.Unsent, r.Unfired, err = db.waiting(ctx)
		if err != nil || r.Unsent+r.Unfired == 0 || h.clock.Now() > end || !cli.Pause(ctx, 200*time.Millisecond) {
			h.line("%d accounts and letters wait to be delivered, %d accounts to be reminded", r.Unsent, r.Unfired)
			return err
		}
	}
}

// account reads what is stored, and holds it against the answers.
func (h *harness) account(r *Result, c *callers) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	db, err := h.bare()
	if err != nil {
		return err
	}
	defer db.Close()
	at, err := h.kept, error(nil)
	if h.cfg.Engine != quorumEngine {
		at, err = db.all(ctx)
	}
	if err != nil {
		return fmt.Errorf("what is stored cannot be read: %w", err)
	}
	accounts, err := c.tally(r, at)
	if err != nil {
		return err
	}
	notes, err := journals[note](h, "store-*.notes")
	if err != nil {
		return err
	}
	if c.post.Handled, err = h.handled(); err != nil {
		return err
	}
	r.letters(&c.post)
	r.accounts(c.orders, accounts)
	r.commits(notes, at)
	r.Register = judge(c.steps)
	r.Seconds = h.clock.Now().Seconds()
	for _, s := range r.said {
		h.line("VIOLATION: %s", s)
	}
	for _, s := range r.Register.violatingAt {
		h.line("VIOLATION: the history of register %s is not linearizable", s)
	}
	if err := r.verdict(); err != nil {
		return fmt.Errorf("%w; timeline, logs and store are in %s", err, h.dir)
	}
	return nil
}

// journals reads journals of all processes.
func journals[T any](h *harness, names string) (all []T, err error) {
	files, _ := filepath.Glob(filepath.Join(h.dir, names))
	for _, f := range files {
		list, err := readNotes[T](f)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// whole waits until all nodes see all others Up.
func (h *harness) whole(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := fleet.Until(ctx, 100*time.Millisecond, func(ctx context.Context) ([]status, error) {
		return h.statuses(ctx), nil
	}, func(all []status) bool {
		return !slices.ContainsFunc(all, func(s status) bool {
			return s.Up != h.cfg.Nodes || s.Others > 0 ||
				h.cfg.Engine == quorumEngine && (s.Disk.Disks != h.cfg.Nodes || s.Disk.Lacking > 0)
		})
	})
	if err != nil {
		return fmt.Errorf("the cluster is not whole: %w: %+v", err, h.statuses(context.WithoutCancel(ctx)))
	}
	return nil
}

// statuses returns what the processes say; nothing where there is none, or it does not answer.
func (h *harness) statuses(ctx context.Context) []status {
	all := make([]status, len(h.slots))
	_ = fleet.Each(h.slots, func(i int, s *slot) error { // what does not answer shows
		if l := s.current(); l != nil {
			_ = l.child.CallWithin(ctx, time.Second, "status", cli.None{}, &all[i])
		}
		return nil
	})
	return all
}

// stopped returns what types nodes have stopped.
func (h *harness) stopped(ctx context.Context) (list []string) {
	for i, s := range h.statuses(ctx) {
		if s.Stopped != "" {
			list = append(list, h.slots[i].name()+": "+s.Stopped)
		}
	}
	return list
}

// killAll kills what runs.
func (h *harness) killAll() {
	for _, s := range h.slots {
		if l := s.current(); l != nil {
			l.child.Kill()
		}
	}
}
