// lab storm: random simulated clusters under random faults, every promise checked at every step.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/hosting"
	"github.com/kith-io/kith/internal/sim/storm"
)

// seedsCmd is the flags of what runs seeds.
type seedsCmd struct {
	Seeds    int    `default:"500" help:"How many seeds, 1 to 10000000; each runs twice."`
	First    uint64 `default:"0" help:"${first_help}"`
	Workers  int    `default:"0" help:"${workers_help}"`
	TraceDir string `type:"path" help:"Where traces of failing seeds are written; default: the temporary directory."`
	JSON     bool   `name:"json" help:"Print nothing but the last line."`
	Progress bool   `help:"Show progress although stderr is not a terminal."`
}

// faults returns what is wrong with them.
func (c *seedsCmd) faults() (errs cli.Faults) {
	errs.Must(c.Seeds >= 1 && c.Seeds <= 10_000_000, "--seeds must be 1 to 10000000")
	errs.Must(c.Workers >= 0, "--workers is negative")
	errs.Must(c.Workers <= env.MaxWorkers, "--workers must be at most %d", env.MaxWorkers)
	errs.Must(c.Seeds <= 0 || c.First <= math.MaxUint64-uint64(c.Seeds), "--first is too large for so many seeds")
	return errs
}

// Validate is called by the parser.
func (c *seedsCmd) Validate() error {
	errs := c.faults()
	return errs.Err()
}

// stormCmd is the flags of lab storm.
type stormCmd struct {
	seedsCmd
	Without []string `placeholder:"DRAW,..." help:"${without_help}"`
	Once    bool     `help:"Run each seed once: twice as many seeds, no proof that a seed repeats itself."`
}

// Validate is called by the parser.
func (c *stormCmd) Validate() error {
	errs := c.faults()
	for _, what := range c.Without {
		errs.Must(slices.Contains(storm.Draws(), what), "--without: %q is none of %s", what,
			strings.Join(storm.Draws(), ", "))
	}
	return errs.Err()
}

var (
	errViolations = errors.New("promises were broken")
	errCutShort   = errors.New("interrupted")
)

// stormGC and stormMemory are the collector's settings. Most storms hold a few tens of megabytes, so collecting seldom
// saves a third of the time. Some hold 200 MB, and would grow to ten times as much: from stormMemory bytes a worker on
// it collects as often as that asks for.
const (
	stormGC     = 1000
	stormMemory = 384 << 20
)

// stormEvery is how often progress is shown.
const stormEvery = time.Second

// Run runs the storm; a violation makes it fail.
func (c *stormCmd) Run(e *env.Env) error { return c.report(e, c.storms(e, false)) }

// storms runs the seeds, heavy storms or not, and shows how far they are. A first interrupt has it return what was
// found so far, a second one ends the program.
func (c *stormCmd) storms(e *env.Env, heavy bool) storm.Result {
	shows, stop, end := c.begins(e)
	defer end()
	cfg := storm.Config{Seeds: c.Seeds, First: c.First, Workers: c.Workers, TraceDir: c.TraceDir,
		Without: c.Without, Heavy: heavy, Once: c.Once, Stop: stop, Progress: shows}
	if !heavy {
		cfg.Instances = hosting.Bring
	}
	return storm.Run(cfg)
}

// begins prepares for seeds, and returns a function that takes how far they are, what is closed by an interrupt, and
// what is to be called in the end.
func (c *seedsCmd) begins(e *env.Env) (shows func(storm.Progress), stop <-chan struct{}, end func()) {
	c.collectSeldom()
	c.pick(e.Stderr)
	ctx, end := cli.Interruptible()
	context.AfterFunc(ctx, end)
	progress := cli.NewProgress(e.Stderr, c.Progress)
	begin := time.Now()
	shown := begin
	shows = func(p storm.Progress) {
		if time.Since(shown) < stormEvery && p.Done < p.Seeds {
			return
		}
		shown = time.Now()
		progress.Printf("%d of %d seeds  %.1f /s  %d violations", p.Done, p.Seeds,
			float64(p.Done)/time.Since(begin).Seconds(), p.Violations)
	}
	return shows, ctx.Done(), end
}

// pick draws the first seed when none is given, and prints it: seeds that nobody has run, for those that were repaired
// one by one find nothing any more. There is room for those that follow, and there are few digits to type.
func (c *seedsCmd) pick(w io.Writer) {
	if c.First == 0 {
		c.First = 1_000_000_000 + rand.Uint64N(1_000_000_000_000)
		fmt.Fprintf(w, "first seed %d, drawn\n", c.First)
	}
}

// ranSeeds says which seeds have run.
func ranSeeds(r *storm.Ran) string {
	if r.Seeds == 0 {
		return "none"
	}
	often := "twice"
	if r.Once {
		often = "once"
	}
	return fmt.Sprintf("%d to %d, each %s", r.First, r.First+uint64(r.Seeds)-1, often)
}

// collectSeldom gives the collector its settings, but for those that the environment makes.
func (c *seedsCmd) collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(stormGC)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		workers := cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
		debug.SetMemoryLimit(int64(workers) * stormMemory)
	}
}

// report prints what people want to read, then the last line, and returns an error for violations.
func (c *stormCmd) report(e *env.Env, r storm.Result) error {
	if !c.JSON {
		t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "seeds\t%s\n", ranSeeds(&r.Ran))
		fmt.Fprintf(t, "virtual time\t%.1f cluster-hours, %d steps, %d faults\n", r.ClusterHours, r.Steps, r.Faults)
		fmt.Fprintf(t, "messages\t%d accepted, %d handled, %d reported, lost %v, difference %d %v\n", r.Accepted, r.Handled,
			r.Reported, r.Lost, r.Difference, r.Lacking)
		fmt.Fprintf(t, "availability\t%d times well; %d times a core had to outlive others, %d times it came to rest\n",
			r.Well, r.Obliged, r.Survived)
		fmt.Fprintf(t, "violations\t%d\n", r.Violations)
		fmt.Fprintf(t, "came right\twithin %.1f s after the faults, a healed core (%d seeds) within %.1f s\n", r.CalmMax,
			r.CoreRuns, r.CoreMax)
		if r.Bound95 > 0 {
			fmt.Fprintf(t, "95 %% bound\tfewer than %.3g violations per cluster-hour\n", r.Bound95)
		}
		if r.Options != "" {
			fmt.Fprintf(t, "options\t%s\n", r.Options)
		}
		_ = t.Flush()
		tellFailures(e, r.Failures)
		tellFailing(e, &r.Failing)
	}
	if err := cli.Line(e.Stdout, "storm", r); err != nil {
		return err
	}
	return c.verdict(&r.Ran, r.Violations)
}

// verdict returns the error of violations, and of a storm that was cut short.
func (c *seedsCmd) verdict(r *storm.Ran, violations int) error {
	var errs cli.Faults
	errs.Must(violations == 0, "%w: %d violations in %d seeds", errViolations, violations, r.Seeds)
	if r.Stopped {
		errs = append(errs, fmt.Errorf("%w after %d of %d seeds", errCutShort, r.Seeds, c.Seeds))
	}
	return errs.Err()
}

// tellFailures prints the seeds that broke a promise, for people.
func tellFailures(e *env.Env, list []storm.Failure) {
	for _, f := range list {
		fmt.Fprintf(e.Stdout, "seed %d: %d violations, trace %s, replay: %s\n", f.Seed, len(f.Violations), f.Trace, f.Replay)
		fmt.Fprintf(e.Stdout, "  %s\n", f.Options)
		for _, v := range f.Violations {
			fmt.Fprintf(e.Stdout, "  %v\n", v)
		}
	}
}

// tellFailing prints which rules were broken in how many seeds, and the numbers of the seeds.
func tellFailing(e *env.Env, f *storm.Failing) {
	if f.FailingSeeds == 0 {
		return
	}
	fmt.Fprintf(e.Stdout, "failing seeds: %d\n", f.FailingSeeds)
	for _, rule := range slices.Sorted(maps.Keys(f.Rules)) {
		fmt.Fprintf(e.Stdout, "  rule %s: %d seeds\n", rule, f.Rules[rule])
	}
	fmt.Fprintf(e.Stdout, "  %s", strings.Trim(fmt.Sprint(f.SeedsFailing), "[]"))
	if more := f.FailingSeeds - len(f.SeedsFailing); more > 0 {
		fmt.Fprintf(e.Stdout, " and %d more", more)
	}
	fmt.Fprintln(e.Stdout)
}
