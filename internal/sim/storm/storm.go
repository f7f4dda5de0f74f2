// Storm: many random clusters under random faults, each run twice, every promise checked at every step.

package storm

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/wire"
)

// Config says how many seeds a storm runs, and where it starts.
type Config struct {
	Seeds   int      // how many, at least 1
	First   uint64   // the first seed; the others follow
	Workers int      // seeds run at a time; zero means one per processor
	Without []string // what seeds do not draw, of what StormDraws names
	Heavy   bool     // storms for the account: see heavy
	Once    bool     // each seed runs once, and nobody sees whether it repeats itself
	// Instances, if not nil, makes the instances of storms that draw some, before their first process starts.
	Instances func(*Stage) Instances
	TraceDir  string // where the trace of a failing seed is written; empty means the temporary directory
	// Patience is how long one seed may take in real time; zero means ten minutes. One that does not end has violated the
	// rule "hang", its trace is where all goroutines stand, and it is left behind.
	Patience time.Duration
	// Progress, when it is set, is called after each seed, in seed order, from one goroutine at a time.
	Progress func(Progress)
	// Stop ends the storm when it is closed: no other seed begins, those that have begun come to their end, and the result
	// is what a storm of these few finds.
	Stop <-chan struct{}
}

// Progress is how far a storm has come.
type Progress struct {
	Done, Seeds, Violations int
	Seed                    uint64
}

// Ran is which seeds of a storm ran.
type Ran struct {
	Seeds   int    `json:"seeds"`
	First   uint64 `json:"first"`
	Stopped bool   `json:"stopped,omitempty"` // by Config.Stop: they are fewer than were asked for
	Once    bool   `json:"once,omitempty"`    // as Config.Once says
}

// Result is what a storm found. Its JSON is the last line of `make storm`.
type Result struct {
	Ran
	Steps        uint64  `json:"steps"`         // events of the first run of each seed
	ClusterHours float64 `json:"cluster_hours"` // virtual time of the first run of each seed
	Violations   int     `json:"violations"`
	TraceHash    string  `json:"trace_hash"` // over the traces of all seeds, in seed order
	WallSeconds  float64 `json:"wall_seconds"`

	Delivered int `json:"delivered"` // of them, given to a handler
	Refused   int `json:"refused"`   // refused by their receiver, counted and reported to the sender
	Failed    int `json:"failed"`    // given up by their sender: parked too long, peer removed, node stopped
	InFlight  int `json:"in_flight"` // lost with a connection
	Crashed   int `json:"crashed"`   // lost with the process that held them
	Untold    int `json:"untold"`    // of these, sent by processes that live on and have heard nothing of it
	Late      int `json:"late"`      // delivered by owners that did not know that they are down
	Fenced    int `json:"fenced"`    // writes of such owners that the store refused
	NotTold   int `json:"not_told"`  // times that such an owner lived on beside its successor
	Faults    int `json:"faults"`
	Timers    int `json:"timers"`       // that came
	Early     int `json:"timers_early"` // of them, before their time
	Well      int `json:"well"`         // how often a cluster was well, from when on a core of it may be obliged to live
	Obliged   int `json:"obliged"`      // of these, how often a healthy core had to outlive others
	Survived  int `json:"survived"`     // of these, how often it was left alone, and had come to rest by itself

	// Bound95 is the number of violations per cluster-hour that a storm without any rules out at 95 %: 3 / hours.
	Bound95  float64 `json:"violations_per_hour_95,omitempty"`
	CalmMax  float64 `json:"calm_max_s"`           // the longest that a cluster took to come right when faults ended
	CoreRuns int     `json:"core_runs"`            // seeds in which a core was healed first
	CoreMax  float64 `json:"core_max_s,omitempty"` // the longest that such a core took

	Plane world.PlaneCounts `json:"plane"` // what was met of the data plane beyond the fast path

	Account

	Options string `json:"options,omitempty"` // what the seed decided, when there was only one

	Failing
}

// Account is the sum over all messages of all seeds: accepted = handled + reported + lost, and what is lacking.
type Account struct {
	Accepted   int                 `json:"accepted"`             // from senders: tells and asks
	Handled    int                 `json:"handled"`              // given to a handler
	Reported   int                 `json:"reported"`             // not handled, and reported to their senders
	Lost       map[check.Cause]int `json:"lost"`                 // by the reason that the docs name
	Difference int                 `json:"difference"`           // accepted less all of these
	Lacking    map[check.Cause]int `json:"lacking,omitempty"`    // the difference, by what is known of it
	Twice      int                 `json:"handled_and_reported"` // reported as perhaps lost, and known elsewhere
	Forms      map[string]int      `json:"forms"`                // accepted, by form and mode
	Moves      int                 `json:"moves"`                // of shards, from owner to owner
}

func (a *Account) add(o *check.Accounts, moves int) {
	sum := check.Accounts{Accepted: a.Accepted, Handled: a.Handled, Reported: a.Reported, Lost: a.Lost, Open: a.Lacking,
		Twice: a.Twice, Forms: a.Forms}
	sum.Add(o)
	*a = Account{Accepted: sum.Accepted, Handled: sum.Handled, Reported: sum.Reported, Lost: sum.Lost,
		Difference: sum.Difference(), Lacking: sum.Open, Twice: sum.Twice, Forms: sum.Forms, Moves: a.Moves + moves}
}

// MaxFailures bounds how many failing seeds of a storm are kept with their traces.
const MaxFailures = 10

// seedResult is what the two runs of one seed came to.
type seedResult struct {
	run        runResult
	violations []check.Violation
	trace      string
}

// start has workers run the seeds and returns where the result of each comes: closed for one that nobody begins any
// more.
func start(cfg *Config) []chan seedResult {
	workers := cfg.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	results := make([]chan seedResult, cfg.Seeds)
	for i := range results {
		results[i] = make(chan seedResult, 1)
	}
	var mu sync.Mutex
	at := 0
	next := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		select {
		case <-cfg.Stop:
			return 0, false
		default:
		}
		at++
		return at - 1, at <= cfg.Seeds
	}
	var busy sync.WaitGroup
	for range min(workers, cfg.Seeds) {
		busy.Go(func() {
			for i, ok := next(); ok; i, ok = next() {
				results[i] <- patiently(cfg, func() seedResult { return runSeed(cfg.First+uint64(i), cfg) })
			}
		})
	}
	go func() {
		busy.Wait()
		for i := at; i < cfg.Seeds; i++ {
			close(results[i])
		}
	}()
	return results
}

// Run runs the seeds, in parallel, and combines what they found in seed order: the result depends on the seeds alone
// but for the wall time.
func Run(cfg Config) Result {
	began := time.Now()
	results := start(&cfg)
	out := Result{Ran: Ran{First: cfg.First, Once: cfg.Once}}
	digest := xxhash.New()
	for i := range results {
		seed := cfg.First + uint64(i)
		r, ok := <-results[i]
		if !ok {
			out.Stopped = true
			break
		}
		out.Seeds++
		if cfg.Seeds == 1 {
			out.Options = r.run.options
		}
		out.add(seed, r, &cfg, digest)
		if cfg.Progress != nil {
			cfg.Progress(Progress{Done: i + 1, Seeds: cfg.Seeds, Violations: out.Violations, Seed: seed})
		}
	}
	out.TraceHash = fmt.Sprintf("%016x", digest.Sum64())
	if out.Violations == 0 && out.ClusterHours > 0 {
		out.Bound95 = 3 / out.ClusterHours
	}
	out.WallSeconds = time.Since(began).Seconds()
	return out
}

// add takes the result of the next seed.
func (s *Result) add(seed uint64, r seedResult, cfg *Config, digest *xxhash.Digest) {
	run := &r.run
	_, _ = digest.Write(wire.AppendU64(nil, run.hash))
	s.Steps += run.steps
	s.ClusterHours += run.virtual.Hours()
	s.Delivered += run.fates[world.FateDelivered]
	s.Refused += run.fates[world.FateRefused]
	s.Failed += run.fates[world.FateFailed]
	s.InFlight += run.fates[world.FateInFlight]
	s.Crashed += run.crashed
	s.Untold += run.untold
	s.Late += run.fates[world.FateLate]
	s.Fenced += run.fenced
	s.Timers += run.timers.fired
	s.Early += run.timers.check.Early
	s.NotTold += run.notTold
	s.Faults += run.faults
	s.Well += run.bases
	s.Obliged += run.obliged
	s.Survived += run.rested
	s.Plane.Add(&run.plane)
	s.Account.add(run.accounts, run.moves)
	s.CalmMax = max(s.CalmMax, run.calm.Seconds())
	if run.core > 0 {
		s.CoreRuns++
		s.CoreMax = max(s.CoreMax, run.core.Seconds())
	}
	s.Violations += max(run.total, len(r.violations))
	s.Failing.Add(seed, r.violations)
	if len(r.violations) == 0 || len(s.Failures) >= MaxFailures {
		return
	}
	verb := "storm"
	if cfg.Heavy {
		verb = "accounts"
	}
	dir, replay := cfg.TraceDir, fmt.Sprintf("make %s SEEDS=1 FIRST=%d", verb, seed)
	if dir == "" {
		dir = os.TempDir()
	}
	if len(cfg.Without) > 0 {
		replay += " ARGS=--without=" + strings.Join(cfg.Without, ",")
	}
	path := filepath.Join(dir, fmt.Sprintf("kith-%s-%d.txt", verb, seed))
	if err := os.WriteFile(path, []byte(r.trace), 0o600); err != nil {
		path = err.Error()
	}
	s.Failures = append(s.Failures, Failure{Seed: seed, Options: run.options, Violations: r.violations, Trace: path,
		Replay: replay})
}

// patiently runs a seed for no longer than it may take: what turns within one step no bound on steps can end. A panic
// is a violation as others are, and the other seeds go on.
func patiently(cfg *Config, run func() seedResult) seedResult {
	patience := cmp.Or(cfg.Patience, 10*time.Minute)
	done := make(chan seedResult, 1)
	go func() {
		defer func() {
			if why := recover(); why != nil {
				done <- broken("panic", string(debug.Stack()), "%v", why)
			}
		}()
		done <- run()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		return r
	case <-timer.C:
	}
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return broken("hang", string(stacks), "not over after %v", patience)
}

// broken is the result of a seed with a run that came to nothing.
func broken(rule, trace, format string, args ...any) seedResult {
	return seedResult{run: runResult{accounts: &check.Accounts{}}, trace: trace,
		violations: []check.Violation{{Rule: rule, Text: fmt.Sprintf(format, args...)}}}
}

// runSeed runs one seed twice and compares, or once; a seed that fails runs once more, with a readable trace.
func runSeed(seed uint64, cfg *Config) seedResult {
	run := func(text bool) *storm { return makeStorm(seed, cfg, text) }
	first := run(false).run()
	second := first
	if !cfg.Once {
		second = run(false).run()
	}
	r := seedResult{run: first, violations: first.violations}
	if first.hash != second.hash || first.records != second.records {
		r.violations = append(r.violations, check.Violation{Rule: "determinism", Text: fmt.Sprintf(
			"two runs of seed %d differ: %d records %016x, %d records %016x", seed, first.records, first.hash,
			second.records, second.hash)})
		r.trace = partOfTraces(run(true), run(true))
		return r
	}
	if len(r.violations) > 0 {
		r.trace = run(true).run().trace
	}
	return r
}

// partOfTraces runs two storms of a seed with text and returns both traces from a little before their difference.
func partOfTraces(a, b *storm) string {
	a.run()
	b.run()
	x, y := a.w.TraceLines(), b.w.TraceLines()
	at := 0
	for at < len(x) && at < len(y) && x[at] == y[at] {
		at++
	}
	from := max(0, at-200)
	out := "first run:\n"
	for _, l := range x[from:min(at+20, len(x))] {
		out += l + "\n"
	}
	out += "second run:\n"
	for _, l := range y[from:min(at+20, len(y))] {
		out += l + "\n"
	}
	return out
}

// MaxFailingSeeds bounds how many failing seeds a storm lists by number.
const MaxFailingSeeds = 200

// Failing is what a storm says of all seeds that broke a promise.
type Failing struct {
	Failures []Failure `json:"failures,omitempty"` // the first ten, in full

	FailingSeeds int            `json:"failing_seeds"`           // how many
	SeedsFailing []uint64       `json:"seeds_failing,omitempty"` // the first MaxFailingSeeds of them, in order
	Rules        map[string]int `json:"rules,omitempty"`         // in how many of them each rule was broken
}

// Failure is one seed that broke a promise.
type Failure struct {
	Seed       uint64            `json:"seed"`
	Options    string            `json:"options"` // what the seed decided
	Violations []check.Violation `json:"violations"`
	Replay     string            `json:"replay"` // the command that runs it again
	Trace      string            `json:"trace"`  // the file with its trace
}

// Add counts a seed, if it broke a rule.
func (f *Failing) Add(seed uint64, list []check.Violation) {
	if len(list) == 0 {
		return
	}
	f.FailingSeeds++
	if len(f.SeedsFailing) < MaxFailingSeeds {
		f.SeedsFailing = append(f.SeedsFailing, seed)
	}
	if f.Rules == nil {
		f.Rules = map[string]int{}
	}
	seen := map[string]bool{}
	for _, v := range list {
		if !seen[v.Rule] {
			seen[v.Rule] = true
			f.Rules[v.Rule]++
		}
	}
}
