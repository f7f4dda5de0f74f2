// Statistics of a node that runs: one line of JSON at a pace, on SIGUSR1, or both.

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/latency"
)

// StatsFlags are the flags of a command with a node that reports its statistics.
type StatsFlags struct {
	StatsEvery   time.Duration `default:"0s" help:"Print statistics as JSON on stderr that often; 0: only on SIGUSR1."`
	LatencyEvery int           `default:"64" help:"Time one of so many handler calls and asks; 1: all, 0: none."`
}

// Faults returns what is wrong with the flags.
func (f StatsFlags) Faults() (errs Faults) {
	errs.Must(f.StatsEvery == 0 || f.StatsEvery >= 100*time.Millisecond, "--stats-every must be at least 100ms, or 0")
	errs.Must(f.LatencyEvery >= 0 && f.LatencyEvery <= 1<<20, "--latency-every must be 0 to 1048576")
	return errs
}

// StatsLine is what is printed behind the word stats. Durations are in nanoseconds.
type StatsLine struct {
	At      time.Time
	Node    string
	Seconds float64     // since the line before, or the start: what rates and latencies cover
	Types   []TypeLine  // of each registered type
	Stats   *kith.Stats // since the start of the node
}

// TypeLine is the rate and the latencies of one type.
type TypeLine struct {
	Type             string
	HandledPerSecond float64
	Handler, Ask     *Quantiles `json:",omitempty"` // absent when nothing was timed
}

// Quantiles are of the samples of Config.Latency.
type Quantiles struct {
	Samples                             int64
	Min, Mean, P50, P90, P99, P999, Max time.Duration
}

// Reporter prints the statistics of a node.
type Reporter struct {
	to     io.Writer
	node   *kith.Node
	times  *latency.Recorder
	last   time.Time
	before map[string]uint64 // messages handled at the last line, by type
	asked  chan os.Signal
	pace   chan time.Duration
}

// NewReporter makes one that listens for SIGUSR1 from here on, which would end the process otherwise.
func NewReporter(to io.Writer) *Reporter {
	r := &Reporter{to: Clean(to), times: latency.New(), before: map[string]uint64{}, asked: make(chan os.Signal, 1),
		pace: make(chan time.Duration, 1)}
	signal.Notify(r.asked, syscall.SIGUSR1)
	return r
}

// Times makes the node that cfg is for time one of so many handler calls and asks; zero: none.
func (r *Reporter) Times(cfg *kith.Config, every int) {
	if every > 0 {
		cfg.Latency, cfg.LatencyEvery = r.times.Record, every
	}
}

// Pace makes Run print every so often from now on.
func (r *Reporter) Pace(every time.Duration) {
	select {
	case <-r.pace:
	default:
	}
	r.pace <- every
}

// Run prints a line about node every so often (zero: never), and on each SIGUSR1, until ctx ends. It may be called
// again, for the next node of the process.
func (r *Reporter) Run(ctx context.Context, node *kith.Node, every time.Duration) {
	r.node, r.last = node, time.Now()
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	paced := func(every time.Duration) {
		if ticker.Stop(); every > 0 {
			ticker.Reset(every)
		}
	}
	paced(every)
	for {
		select {
		case <-ctx.Done():
			return
		case every := <-r.pace:
			paced(every)
			continue
		case <-r.asked:
		case <-ticker.C:
		}
		if err := Line(r.to, "stats", r.line(time.Now())); err != nil {
			fmt.Fprintln(r.to, "statistics:", err)
		}
	}
}

// line gathers one line. Rates and latencies are of the time since the one before.
func (r *Reporter) line(now time.Time) StatsLine {
	stats := r.node.Stats()
	l := StatsLine{At: now.UTC(), Node: r.node.ID().String(), Seconds: now.Sub(r.last).Seconds(), Stats: &stats}
	taken := map[string]*TypeLine{}
	for _, t := range stats.Types {
		l.Types = append(l.Types, TypeLine{Type: t.Name, HandledPerSecond: float64(t.Handled-r.before[t.Name]) / l.Seconds})
		r.before[t.Name] = t.Handled
	}
	for i := range l.Types {
		taken[l.Types[i].Type] = &l.Types[i]
	}
	for _, s := range r.times.Take() {
		t := taken[s.Type]
		if t == nil {
			continue // cannot be: the node reported it
		}
		q := &Quantiles{s.Count, s.Min, s.Mean, s.P50, s.P90, s.P99, s.P999, s.Max}
		if s.Measure == kith.AskTime {
			t.Ask = q
		} else {
			t.Handler = q
		}
	}
	r.last = now
	return l
}
