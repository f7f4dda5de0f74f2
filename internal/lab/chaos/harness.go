// The harness: forms the cluster, lets rounds of faults come over it until the time is over, and makes the report.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/core/node"
)

// Config says what is run.
type Config struct {
	Nodes    int           // at least 3
	Seed     uint64        // of the faults
	For      time.Duration // no round begins later
	Rounds   int           // at most so many; zero: as many as there is time for
	Kinds    []Kind        // only these; none: all
	Moves    bool          // in place of what the seed draws: EveryMove
	Net      string        // one of Nets
	Dir      string        // of timeline, logs and journals; made anew
	Load     Load
	Proof    bool        // kith.Config.Sharding.ProcessDeathIsProof
	Unproven bool        // kith.Config.Sharding.NoLockProof
	Trace    bool        // nodes log at level debug
	Admin    bool        // nodes serve admin interfaces
	Child    cli.Options // how a child is started: Path, Args, Env
	Progress *cli.Progress
	Sessions Sessions

	Patience    cluster.Patience // kith.Config.Patience
	StableAfter time.Duration    // kith.Config.Resolver.StableAfter
}

// Trial says what Failover and Partition have in common: rounds of cases, each in a cluster of its own.
type Trial struct {
	Nodes  int // at least 3, of each cluster
	Rounds int // of each case
	// StableAfter is kith.Config.Resolver.StableAfter; zero: the default.
	StableAfter time.Duration
	Patience    cluster.Patience // kith.Config.Patience
	Dir         string           // a folder for each cluster is made anew in it
	Load        Load
	Child       cli.Options // how a child is started: Path, Args, Env
	Progress    *cli.Progress
	Sessions    Sessions
}

// trials tries each case as often as it is to be, and again where a cluster is uneven. took gets what came of it,
// violations and all.
func trials[C ~string, T any](t *Trial, cases []C, try func(C, *harness) (T, error), of func(C) Config,
	took func(c C, round int, r T)) error {
	for _, c := range cases {
		for round := range t.Rounds {
			var r T
			err := errUneven
			for again := 0; errors.Is(err, errUneven) && again <= unevenMost; again++ {
				cfg := of(c)
				cfg.Nodes, cfg.Seed, cfg.Load, cfg.Trace, cfg.StableAfter = t.Nodes, 1, t.Load, true, t.StableAfter
				cfg.Patience = t.Patience
				cfg.Child, cfg.Progress, cfg.Sessions = t.Child, t.Progress, t.Sessions
				cfg.Dir = filepath.Join(t.Dir, fmt.Sprintf("%s-%d", c, round+1))
				h := newHarness(cfg)
				if err = h.prepare(); err == nil {
					r, err = try(c, h)
				}
			}
			if err != nil && !errors.Is(err, ErrViolation) { // the result reports violations
				return fmt.Errorf("%s, round %d: %w", c, round+1, err)
			}
			took(c, round, r)
		}
	}
	return nil
}

// errUneven is returned for a cluster in which a process to be lost owns too little: the first node may have been given
// all shards before the others had registered. Another one is formed then, unevenMost times.
var errUneven = errors.New("who is to be lost owns less than half of its share")

const unevenMost = 9

// costs forms the cluster, has live do with it what it wants, and returns what that cost.
func costs(ctx context.Context, h *harness, live func(context.Context) error) (c cost, err error) {
	err = h.run(ctx, live)
	h.tell(h.book.read(h.clock.Now(), true))
	h.mu.Lock()
	for i := range h.rounds {
		h.rounds[i].until = h.clock.Now()
	}
	c.sums, c.verdict = h.book.total(h.rounds), h.book.rule.verdict
	c.harmed = h.found.panics + h.found.twins + h.found.downed
	h.mu.Unlock()
	_, c.fenced = h.store.counts()
	return c, err
}

// ErrViolation is returned when something was found; the result says what.
var ErrViolation = errors.New("chaos found violations")

// harness is one run.
type harness struct {
	cfg     Config
	dir     string
	sock    string
	zero    time.Duration
	clock   cli.Clock
	line    *timeline
	net     faultDriver
	store   *store
	leases  leases
	book    *journalSet
	slots   []*nodeSlot
	seeds   []string
	watcher watcher
	named   bool // nodes are known by names where that is possible

	mu      sync.Mutex
	senders uint32
	rounds  []past
	active  []*struck // with faults in the network now
	found   found
}

// found is what goes wrong beside the messages.
type found struct {
	panics, twins, downed, unwell, excused int
	moves                                  []moved
	told                                   int            // lines about the rule of one owner
	exits                                  map[string]int // how often processes ended, by exit code
}

// Run runs chaos until ctx ends or the time is over. The error wraps ErrViolation when something was found.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	h := newHarness(cfg)
	h.named = !cfg.Moves && (len(cfg.Kinds) == 0 || contains(cfg.Kinds, DNS))
	if err := h.prepare(); err != nil {
		return nil, err
	}
	err := h.run(ctx, h.live)
	r := h.result()
	return r, h.close(err, r.violations(cfg.Moves))
}

func newHarness(cfg Config) *harness {
	h := &harness{cfg: cfg, dir: cfg.Dir, zero: cli.MachineTime(), found: found{exits: map[string]int{}}}
	h.clock = cli.NewClock(h.zero)
	h.watcher.h = h
	return h
}

// close ends what prepare has made, after all processes have ended, and reports violations if err is nil.
func (h *harness) close(err error, violations int) error {
	if x := errors.Join(h.net.close(), h.store.close(), h.leases.end(), h.line.finish(h.dir, h.seeds)); err == nil {
		err = x
	}
	h.book.close()
	if err == nil && violations > 0 {
		err = fmt.Errorf("%w; timeline and logs are in %s", ErrViolation, h.dir)
	}
	if err == nil {
		h.sweep("n*-*.log")
	}
	h.sweep("sent-*")
	h.sweep("handled-*")
	h.sweep("moves-*")
	return err
}

// sweep removes files that nobody needs any more.
func (h *harness) sweep(pattern string) {
	files, _ := filepath.Glob(filepath.Join(h.dir, pattern))
	for _, f := range files {
		_ = os.Remove(f)
	}
}

// prepare makes everything but the processes.
func (h *harness) prepare() (err error) {
	if err := os.RemoveAll(h.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return err
	}
	if h.dir, err = filepath.Abs(h.dir); err != nil {
		return err
	}
	if h.line, err = newTimeline(filepath.Join(h.dir, "timeline.txt"), h.clock, h.cfg.Progress); err != nil {
		return err
	}
	h.book = newBook(h.dir, h.cfg.Nodes, h.cfg.Load)
	// The path of a socket has about a hundred bytes.
	h.sock = filepath.Join(os.TempDir(), fmt.Sprintf("kith-chaos-%d.sock", os.Getpid()))
	_ = os.Remove(h.sock)
	if h.store, err = newStore(h.sock); err != nil {
		return err
	}
	var why error
	if h.net, why, err = newCarrier(h.cfg.Net, h.cfg.Nodes, h.cfg.Seed); err != nil {
		return errors.Join(err, h.store.close())
	}
	var unnamed error
	if n, ok := h.net.(namer); ok && h.named {
		unnamed = n.byNames()
	}
	comes := func(k Kind) bool { return canCome(h.net, h.cfg.Sessions, k) }
	if kinds := h.cfg.Kinds; len(kinds) > 0 && !slices.ContainsFunc(kinds, comes) {
		return errors.Join(fmt.Errorf("none of %v can come here: %s", kinds, h.net.about()), why, unnamed, h.net.close(),
			h.store.close())
	}
	if h.leases, err = openLeases(&h.cfg, h.dir, h.net); err != nil {
		return errors.Join(err, h.net.close(), h.store.close())
	}
	for i := range h.cfg.Nodes {
		_, advertise, err := h.net.place(i)
		if err != nil {
			return errors.Join(err, h.net.close(), h.store.close())
		}
		h.seeds = append(h.seeds, advertise)
		h.slots = append(h.slots, &nodeSlot{h: h, number: i, addr: advertise})
	}
	h.line.printf("seed %d, %d nodes, %s", h.cfg.Seed, h.cfg.Nodes, h.net.about())
	if s := h.cfg.Sessions; s.on() {
		h.line.printf("nodes hold sessions of %v: %s", s.TTL, s.Store)
	}
	if s := h.cfg.Sessions.Tenure; s.Voters != 0 {
		h.line.printf("nodes have tenures on the word of %d seats, with grants of %v", s.Voters, s.Grant)
	}
	if why != nil {
		h.line.printf("no network namespaces here: %v", why)
	}
	if unnamed != nil {
		h.line.printf("nodes are known by addresses, so dns is left out: %v", unnamed)
	}
	return nil
}

// pace is how long a cluster takes to notice, to decide and to take over.
type pace struct{ silence, stable, takeover time.Duration }

// pace returns that of a cluster with the settings of a trial.
func (t *Trial) pace() pace { return paceOf(t.Nodes, t.Patience, t.StableAfter) }

// paceOf asks the configuration itself, as a node does; zero means the default.
func paceOf(nodes int, p cluster.Patience, stable time.Duration) pace {
	c := node.Config{Patience: p, Resolver: node.Resolver{StableAfter: stable}}.Paced()
	return pace{c.Membership.SilenceBound(), c.Resolver.StableFor(nodes), c.Takeover(nodes)}
}

// The bounds within which everything must be well: after the last fault of a round the time to notice, to decide, to
// take over and to come back; a cluster that was killed as a whole forms anew.
const (
	takeover  = 17 * time.Second
	wellBound = 60*time.Second + takeover
)

var errNeverWell = errors.New("the cluster does not come right even when all processes are started anew")

// run forms the cluster, has live do with it what it wants, and ends it.
func (h *harness) run(ctx context.Context, live func(context.Context) error) error {
	living, die := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer die()
	for _, s := range h.slots {
		busy.Go(func() { s.supervise(living) })
	}
	busy.Go(func() { h.watcher.run(living) })
	if why, ok := h.well(ctx, 0, wellBound); !ok {
		return fmt.Errorf("the cluster did not form: %s", why)
	}
	h.line.printf("the cluster has formed")
	err := live(ctx)
	h.calm(context.Background())
	return err
}

// live lets round after round come.
func (h *harness) live(ctx context.Context) error {
	rounds := h.schedule()
	for n := 0; ctx.Err() == nil && h.clock.Now() < h.cfg.For && (h.cfg.Rounds == 0 || n < h.cfg.Rounds); n++ {
		r, more := rounds()
		if !more {
			return nil
		}
		if !cli.Pause(ctx, r.Steady) {
			return nil
		}
		if err := h.round(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// movesAgain is how often a fault that has missed its phase of a move comes again.
const movesAgain = 2

// schedule returns what yields the rounds of the run: those of the seed, without an end, or each fault of a move, again
// where it has missed its phase.
func (h *harness) schedule() func() (Round, bool) {
	if !h.cfg.Moves {
		rounds := NewRounds(h.cfg.Seed, h.cfg.Nodes, h.cfg.Kinds...)
		if h.cfg.Sessions.on() && len(h.cfg.Kinds) == 0 {
			rounds.WithStore()
		}
		return func() (Round, bool) { return rounds.Next(), true }
	}
	list := EveryMove(h.cfg.Seed, h.cfg.Nodes, h.cfg.Kinds...)
	once, n := len(list), -1
	return func() (Round, bool) {
		if n >= 0 && n < movesAgain*once && !h.met(&list[n].Faults[0]) {
			list = append(list, list[n])
		}
		if n++; n == len(list) {
			return Round{}, false
		}
		r := list[n]
		r.Number = n + 1
		return r, true
	}
}

// met reports whether a fault of a move has come in its phase.
func (h *harness) met(f *Fault) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return met(h.found.moves, f)
}

// calm stops all senders and waits for what is under way.
func (h *harness) calm(ctx context.Context) {
	for _, s := range h.slots {
		if l := s.current(); l != nil {
			_ = l.child.CallWithin(ctx, orderTime, "quiet", cli.None{}, nil)
		}
	}
	cli.Pause(ctx, askTime+time.Second)
}

// nextSender numbers processes.
func (h *harness) nextSender() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.senders++
	return h.senders
}
