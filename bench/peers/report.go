// The report: rows of medians, each beside the limits and our own figure of the same rounds.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/bench"
)

// row is one peer at one work. What was not measured is absent.
type row struct {
	peer, version, work string
	figures             bench.Figures
}

// MarshalJSON writes the row flat.
func (w row) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(w.figures)
	if err != nil {
		return nil, err
	}
	flat := map[string]any{}
	if err := json.Unmarshal(b, &flat); err != nil {
		return nil, err
	}
	flat["peer"], flat["work"] = w.peer, w.work
	if w.version != "" {
		flat["version"] = w.version
	}
	return json.Marshal(flat)
}

// report is the last line.
type report struct {
	Rounds      int     `json:"rounds"`
	WallSeconds float64 `json:"wall_seconds"`
	Rows        []row   `json:"rows"`
}

// The rows that ratios are taken against, by work: what is ours, and what of ours stands beside it under another name.
var (
	oursAt   = map[string]string{encode: "kith", decode: "kith"}
	workerAt = map[string]bool{"tell_64": true, "tell_1k": true, "ask_1_p1": true, "ask_1_p2": true, "ask_256": true}
)

const (
	oursInline = "kith-inline"
	oursPoll   = "kith-poll"
	oursWorker = "kith-worker"
)

// newReport takes medians over the rounds. Ratios are medians of each round's ratio.
func newReport(rounds []round, versions map[string]string, wall time.Duration) *report {
	out := &report{Rounds: len(rounds), WallSeconds: math.Round(wall.Seconds())}
	gathered := map[rowWork][]bench.Figures{}
	for _, one := range rounds {
		for key, m := range one {
			if m.version != "" {
				versions[key.peer] = m.version
			}
			gathered[key] = append(gathered[key], figures(one, key, m))
		}
	}
	for key, all := range gathered {
		f := bench.Medians(all)
		spread := bench.Spreads(all)[leading(key.work)]
		f.Set("min", spread.Min)
		f.Set("max", spread.Max)
		out.Rows = append(out.Rows, row{key.peer, versions[key.peer], key.work, f})
	}
	slices.SortFunc(out.Rows, func(a, b row) int {
		if a.work != b.work {
			return slices.Index(workNames(), a.work) - slices.Index(workNames(), b.work)
		}
		x, y := a.figures[leading(a.work)], b.figures[leading(b.work)]
		if lessIsBetter(a.work) {
			x, y = y, x
		}
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return out
}

// leading is the figure that a work is about: min and max are its, and ratios are taken of it.
func leading(name string) string {
	switch {
	case name == encode || name == decode:
		return "ns"
	case workNamed(name).latency:
		return "p50_us"
	}
	return "rate"
}

func lessIsBetter(name string) bool { return leading(name) != "rate" }

func workNamed(name string) work {
	for _, w := range works {
		if w.name == name {
			return w
		}
	}
	return work{name: name}
}

// value is the leading figure of one measurement.
func value(name string, m measured) float64 {
	switch leading(name) {
	case "ns":
		return m.nanos
	case "p50_us":
		return m.result.P50
	}
	return m.rate
}

// figures are those of one row in one round.
func figures(one round, key rowWork, m measured) bench.Figures {
	f := bench.Figures{}
	if key.work == encode || key.work == decode {
		f.Set("ns", m.nanos)
	} else if key.work == "bulk" {
		f.Set("rate", m.rate) // bytes per second
	} else {
		f.Set("rate", m.rate)
	}
	if m.result.P50 > 0 {
		f.Set("p50_us", m.result.P50)
		f.Set("p99_us", m.result.P99)
	}
	if m.allocs >= 0 && key.work != "bulk" {
		f.Set("allocs", m.allocs)
	}
	if m.lost > 0 {
		f.Set("lost", float64(m.lost))
	}
	limits(f, one, key, m)
	if key.work != "bulk" {
		beside(f, one, key, m)
	}
	return f
}

// limits sets of_raw and of_bulk. Both say what part of the limit a rate reaches; of_raw of a latency says how many
// times raw TCP's it is.
func limits(f bench.Figures, one round, key rowWork, m measured) {
	if limit, ok := one[rowWork{raw, key.work}]; ok && key.peer != raw {
		f.Set("of_raw", value(key.work, m)/value(key.work, limit))
		if lessIsBetter(key.work) {
			f.Set("p99_of_raw", m.result.P99/limit.result.P99)
		}
	}
	w := workNamed(key.work)
	if bulk, ok := one[rowWork{raw, "bulk"}]; ok && len(w.name) > 4 && w.name[:4] == "tell" {
		f.Set("of_bulk", m.rate*float64(w.size+bench.IDBytes)/bulk.rate)
	}
}

// beside sets how many times better ours is: ratio for our inline entities (or our codec), ratio_worker for our worker
// entities, ratio_call for our asks by callback beside the peer's waiting callers, and ratio_poll for our asks with
// loops that poll. Below one, the peer is better.
func beside(f bench.Figures, one round, key rowWork, m measured) {
	times := func(name, peer, work string) {
		o, ok := one[rowWork{peer, work}]
		if !ok {
			return
		}
		if lessIsBetter(key.work) {
			f.Set(name, value(key.work, m)/value(work, o))
		} else {
			f.Set(name, value(work, o)/value(key.work, m))
		}
	}
	mine := oursAt[key.work]
	if mine == "" {
		mine = oursInline
	}
	times("ratio", mine, key.work)
	if workerAt[key.work] {
		times("ratio_worker", oursWorker, key.work)
	}
	if key.work == "ask_256" {
		times("ratio_call", oursInline, "call_256")
	}
	if key.work == "ask_1_p2" {
		times("ratio_poll", oursPoll, key.work)
	}
}

// table shows the rows on w.
func (r *report) table(w io.Writer, on bool) {
	if !on {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "work\tpeer\tfigure\tleast\tgreatest\tp99 us\tallocs\tof raw\tof bulk\tours\tworker\tcall\tpoll\t\n")
	for _, row := range r.Rows {
		f := row.figures
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g\t%.4g\t", row.work, row.peer, f[leading(row.work)], f["min"], f["max"])
		for _, name := range []string{"p99_us", "allocs", "of_raw", "of_bulk", "ratio", "ratio_worker", "ratio_call", "ratio_poll"} {
			if v, ok := f[name]; ok {
				fmt.Fprintf(t, "%.3g\t", v)
			} else {
				fmt.Fprint(t, "-\t")
			}
		}
		fmt.Fprint(t, "\n")
	}
	_ = t.Flush()
}
