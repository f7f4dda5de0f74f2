// Storms: many seeds, each run twice, and what they found together.

package durables

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/storm"
	"github.com/kith-io/kith/wire"
)

// Config says which seeds run.
type Config struct {
	Seeds    int    // how many, at least 1
	First    uint64 // the first seed; the others follow
	Workers  int    // seeds run at a time; zero means one per processor
	TraceDir string // where the trace of a failing seed is written; empty means the temporary directory
	// Patience is how long one seed may take in real time; zero means ten minutes. One that does not end has violated the
	// rule "hang", and is left behind.
	Patience time.Duration
	// Progress, when it is set, is called after each seed, in seed order.
	Progress func(storm.Progress)
	// Stop ends the storm when it is closed: no other seed begins.
	Stop <-chan struct{}
}

// Result is what a storm found. Its JSON is the last line of `make storm-durable`.
type Result struct {
	storm.Ran
	Violations  int     `json:"violations"`
	TraceHash   string  `json:"trace_hash"` // over the traces of all seeds, in seed order
	Hours       float64 `json:"cluster_hours"`
	WallSeconds float64 `json:"wall_seconds"`
	Counts
	SettleMax float64 `json:"settle_max_s"` // the longest until all had come right when the faults had ended
	FireMax   float64 `json:"fire_max_s"`   // the longest that a reminder came behind its time or the end of the faults

	Options string `json:"options,omitempty"` // what the seed decided, when there was only one
	storm.Failing
}

// Counts are what seeds drew, and what came of it, in the first run of each.
type Counts struct {
	Nodes  int `json:"nodes"`
	Faults int `json:"faults"`
	// Late counts owners that handled messages when their shards lived elsewhere, since two sides had downed each other: a
	// known gap of resolvers (docs/split-brain.md), for which there are fences.
	Late int `json:"late_owners"`
	StoreCounts

	Asked    int `json:"asked"`    // messages from outside
	Acked    int `json:"acked"`    // of them: acknowledged
	Open     int `json:"open"`     // with an outcome that nobody learnt
	Rejected int `json:"rejected"` // refused by the handler
	Repeated int `json:"repeated"` // attempts beside the first one, and questions by a key that was answered
	Panics   int `json:"panics"`   // of handlers

	Sent        int `json:"sent"`        // messages between entities
	Delivered   int `json:"delivered"`   // of them: handled
	Refunded    int `json:"refunded"`    // reported as not handled
	Undelivered int `json:"undelivered"` // reported as perhaps handled

	Reminders int `json:"reminders"` // that were set
	Fired     int `json:"fired"`     // times that they came
	Cancelled int `json:"cancelled"` // by a word, or with their entity
	Deleted   int `json:"deleted"`   // entities
}

// StoreCounts are those of stores.
type StoreCounts struct {
	StoreFaults int    `json:"store_faults"` // times that the way to a store changed
	StoreCalls  uint64 `json:"store_calls"`
	StoreLost   uint64 `json:"store_lost"`       // of them: calls that did not arrive
	StoreMute   uint64 `json:"store_unanswered"` // answers that did not
	StoreAgain  uint64 `json:"store_again"`      // copies of commits that came once more
	Claims      int    `json:"claims"`
	Commits     int    `json:"commits"` // that the store carried out
	Writes      int    `json:"writes"`
	Fenced      int    `json:"fenced"`    // claims and commits that the fence refused
	Upgraded    int    `json:"upgraded"`  // records of the older schema that the newer one replaced
	WentBack    int    `json:"went_back"` // stores
}

func (c *Counts) add(o *Counts) {
	c.Nodes, c.Faults, c.Late = c.Nodes+o.Nodes, c.Faults+o.Faults, c.Late+o.Late
	c.Asked, c.Acked, c.Open = c.Asked+o.Asked, c.Acked+o.Acked, c.Open+o.Open
	c.Rejected, c.Repeated, c.Panics = c.Rejected+o.Rejected, c.Repeated+o.Repeated, c.Panics+o.Panics
	c.Sent, c.Delivered = c.Sent+o.Sent, c.Delivered+o.Delivered
	c.Refunded, c.Undelivered = c.Refunded+o.Refunded, c.Undelivered+o.Undelivered
	c.Reminders, c.Fired, c.Cancelled = c.Reminders+o.Reminders, c.Fired+o.Fired, c.Cancelled+o.Cancelled
	c.Deleted += o.Deleted
	c.StoreCounts.add(&o.StoreCounts)
}

func (c *StoreCounts) add(o *StoreCounts) {
	c.StoreFaults, c.WentBack = c.StoreFaults+o.StoreFaults, c.WentBack+o.WentBack
	c.StoreCalls, c.StoreLost = c.StoreCalls+o.StoreCalls, c.StoreLost+o.StoreLost
	c.StoreMute, c.StoreAgain = c.StoreMute+o.StoreMute, c.StoreAgain+o.StoreAgain
	c.Claims, c.Commits, c.Writes = c.Claims+o.Claims, c.Commits+o.Commits, c.Writes+o.Writes
	c.Fenced, c.Upgraded = c.Fenced+o.Fenced, c.Upgraded+o.Upgraded
}

// outcome is what one run came to.
type outcome struct {
	hash, records uint64
	violations    []check.Violation
	virtual       time.Duration
	counts        Counts
	settle, late  time.Duration
	options       string
	trace         string
}

// Run runs the seeds, several at a time, and combines what they found in their order: the result depends on the seeds
// alone but for the wall time.
func Run(cfg Config) Result {
	began := time.Now()
	workers := cmp.Or(cfg.Workers, runtime.GOMAXPROCS(0))
	out := Result{Ran: storm.Ran{First: cfg.First}}
	digest := xxhash.New()
	results := make(chan chan outcome, workers-1)
	go begin(&cfg, results)
	for at := range results {
		r, seed := <-at, cfg.First+uint64(out.Seeds)
		out.Seeds++
		_, _ = digest.Write(wire.AppendU64(nil, r.hash))
		out.add(seed, &r, &cfg)
		if cfg.Progress != nil {
			cfg.Progress(storm.Progress{Done: out.Seeds, Seeds: cfg.Seeds, Violations: out.Violations, Seed: seed})
		}
	}
	out.Stopped = out.Seeds < cfg.Seeds
	out.TraceHash = fmt.Sprintf("%016x", digest.Sum64())
	out.WallSeconds = time.Since(began).Seconds()
	return out
}

// begin begins one seed after the other, as many at a time as results has room for and one more, and closes it.
func begin(cfg *Config, results chan<- chan outcome) {
	defer close(results)
	for i := range cfg.Seeds {
		select {
		case <-cfg.Stop:
			return
		default:
		}
		one := make(chan outcome, 1)
		results <- one
		go func() { one <- patiently(cfg, cfg.First+uint64(i)) }()
	}
}

// add takes the outcome of the next seed.
func (s *Result) add(seed uint64, r *outcome, cfg *Config) {
	s.Hours += r.virtual.Hours()
	s.SettleMax, s.FireMax = max(s.SettleMax, r.settle.Seconds()), max(s.FireMax, r.late.Seconds())
	s.Violations += len(r.violations)
	s.Counts.add(&r.counts)
	s.Failing.Add(seed, r.violations)
	if cfg.Seeds == 1 {
		s.Options = r.options
	}
	if len(r.violations) == 0 || len(s.Failures) >= storm.MaxFailures {
		return
	}
	path := filepath.Join(cmp.Or(cfg.TraceDir, os.TempDir()), fmt.Sprintf("kith-storm-durable-%d.txt", seed))
	if err := os.WriteFile(path, []byte(r.trace), 0o600); err != nil {
		path = err.Error()
	}
	s.Failures = append(s.Failures, storm.Failure{Seed: seed, Options: r.options, Violations: r.violations, Trace: path,
		Replay: fmt.Sprintf("make storm-durable SEEDS=1 FIRST=%d", seed)})
}

// patiently runs a seed for no longer than it may take. A panic is a violation as others are.
func patiently(cfg *Config, seed uint64) outcome {
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if why := recover(); why != nil {
				done <- broken("panic", string(debug.Stack()), "%v", why)
			}
		}()
		done <- twice(seed)
	}()
	patience := cmp.Or(cfg.Patience, 10*time.Minute)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		return r
	case <-timer.C:
	}
	stacks := make([]byte, 4<<20)
	return broken("hang", string(stacks[:runtime.Stack(stacks, true)]), "not over after %v", patience)
}

// broken is the outcome of a seed with a run that came to nothing.
func broken(rule, trace, format string, args ...any) outcome {
	return outcome{trace: trace, violations: []check.Violation{{Rule: rule, Text: fmt.Sprintf(format, args...)}}}
}

// twice runs one seed twice and compares; a seed that fails runs once more with a trace that people can read.
func twice(seed uint64) outcome {
	first, second := live(seed, false), live(seed, false)
	if first.hash != second.hash || first.records != second.records {
		first.violations = append(first.violations, check.Violation{Rule: "determinism", Text: fmt.Sprintf(
			"two runs of seed %d differ: %d records %016x, %d records %016x", seed, first.records, first.hash,
			second.records, second.hash)})
	}
	if len(first.violations) > 0 {
		first.trace = live(seed, true).trace
	}
	return first
}
