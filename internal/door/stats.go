// Statistics of node run: one line of JSON on stderr at a pace, on SIGUSR1, or both.

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/door"
	"github.com/kith-io/kith/latency"
)

// statsLine is what is printed behind the word stats. Durations are in nanoseconds.
type statsLine struct {
	At      time.Time
	Node    string
	Seconds float64     // since the line before, or the start: what rates and latencies cover
	Types   []typeLine  // of each registered type
	Stats   *kith.Stats // since the start of the node
}

// typeLine is the rate and the latencies of one type.
type typeLine struct {
	Type             string
	HandledPerSecond float64
	Handler, Ask     *quantiles `json:",omitempty"` // absent when nothing was timed
}

// quantiles are of the samples of Config.Latency.
type quantiles struct {
	Samples                             int64
	Min, Mean, P50, P90, P99, P999, Max time.Duration
}

// reporter prints the statistics of a node.
type reporter struct {
	to     io.Writer
	node   *kith.Node
	times  *latency.Recorder
	last   time.Time
	before map[string]uint64 // messages handled at the last line, by type
	asked  chan os.Signal
}

// newReporter makes one that listens for SIGUSR1 from here on, which would end the process otherwise.
func newReporter(to io.Writer) *reporter {
	r := &reporter{to: to, times: latency.New(), before: map[string]uint64{}, asked: make(chan os.Signal, 1)}
	signal.Notify(r.asked, syscall.SIGUSR1)
	return r
}

// run prints a line every so often (zero: never), and on each SIGUSR1, until ctx ends.
func (r *reporter) run(ctx context.Context, every time.Duration) {
	defer signal.Stop(r.asked)
	var tick <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
		case <-tick:
		}
		if err := door.Line(r.to, "stats", r.line(time.Now())); err != nil {
			fmt.Fprintln(r.to, "node: statistics:", err)
		}
	}
}

// line gathers one line. Rates and latencies are of the time since the one before.
func (r *reporter) line(now time.Time) statsLine {
	stats := r.node.Stats()
	l := statsLine{At: now.UTC(), Node: r.node.ID().String(), Seconds: now.Sub(r.last).Seconds(), Stats: &stats}
	taken := map[string]*typeLine{}
	for _, t := range stats.Types {
		l.Types = append(l.Types, typeLine{Type: t.Name, HandledPerSecond: float64(t.Handled-r.before[t.Name]) / l.Seconds})
		r.before[t.Name] = t.Handled
	}
	for i := range l.Types {
		taken[l.Types[i].Type] = &l.Types[i]
	}
	for _, s := range r.times.Take() {
		t := taken[s.Type]
		if t == nil {
			continue // cannot be: the node told of it
		}
		q := &quantiles{s.Count, s.Min, s.Mean, s.P50, s.P90, s.P99, s.P999, s.Max}
		if s.Measure == kith.AskTime {
			t.Ask = q
		} else {
			t.Handler = q
		}
	}
	r.last = now
	return l
}
