// Report: the table for people and the last line for programs.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kith-io/kith/internal/cli"
)

// report is what came of the measurements.
type report struct {
	builds []build
	sides  []side // the base first
}

// side is the head beside one other build.
type side struct {
	build build
	rows  []figure
}

func judge(builds []build, samples []sample) *report {
	r := &report{builds: builds}
	for _, b := range builds[1:] {
		r.sides = append(r.sides, side{b, compare(samples, b.Name, b.Commit)})
	}
	return r
}

// table prints the rows.
func (r *report) table(w io.Writer) {
	for _, s := range r.sides {
		fmt.Fprintf(w, "%s of %s (%s), more is better in all ratios\n\n", r.builds[0].Commit, s.build.Commit, s.build.Name)
		rows := [][]string{{"row", "pairs", s.build.Commit, r.builds[0].Commit, "ratio", "least", "most", "low",
			"cpu ratio", "least", "most", ""}}
		for _, f := range s.rows {
			cells := []string{f.name, fmt.Sprint(f.pairs), value(f.base), value(f.head), ratio(f.ratio.Median),
				ratio(f.ratio.Least), ratio(f.ratio.Most), fmt.Sprint(f.low)}
			if f.cpu != nil {
				cells = append(cells, ratio(f.cpu.Median), ratio(f.cpu.Least), ratio(f.cpu.Most))
			} else {
				cells = append(cells, "", "", "")
			}
			verdict := ""
			if f.price < 1 {
				verdict = "price " + value(f.price)
			}
			if f.failed() {
				verdict += " FAILED"
			}
			rows = append(rows, append(cells, verdict))
		}
		cli.Table(w, rows...)
		for _, f := range s.rows {
			for _, name := range sorted(f.headMore) {
				fmt.Fprintf(w, "%s: %s %s, then %s\n", f.name, name, value(f.baseMore[name]), value(f.headMore[name]))
			}
		}
		fmt.Fprintf(w, "geometric mean of the medians: %s", ratio(mean(s.rows)))
		if cpu := meanCPU(s.rows); cpu > 0 {
			fmt.Fprintf(w, ", of processor time %s", ratio(cpu))
		}
		fmt.Fprint(w, "\n\n")
	}
}

func sorted(m map[string]float64) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func ratio(v float64) string { return fmt.Sprintf("%.3f", v) }
func value(v float64) string { return fmt.Sprintf("%.4g", v) }

type (
	// gateLine is the last line.
	gateLine struct {
		Commit string `json:"commit"`
		sideLine
		Failed []string  `json:"failed"`
		Fixed  *sideLine `json:"fixed,omitempty"` // beside the fixed commit
	}
	sideLine struct {
		Base    string    `json:"base"`
		Rows    []rowLine `json:"rows"`
		Mean    float64   `json:"mean"`               // geometric, of the medians
		CPUMean float64   `json:"cpu_mean,omitempty"` // the same of processor time
	}
	rowLine struct {
		Row      string             `json:"row"`
		Pairs    int                `json:"pairs"`
		Ratio    float64            `json:"ratio"` // median of the pairs' ratios; more is better
		Least    float64            `json:"least"`
		Most     float64            `json:"most"`
		Price    float64            `json:"price,omitempty"` // what guarantees leave of the base's speed; none: all
		Low      int                `json:"low"`             // pairs below 0.95 of the price
		CPURatio float64            `json:"cpu_ratio,omitempty"`
		CPULeast float64            `json:"cpu_least,omitempty"`
		CPUMost  float64            `json:"cpu_most,omitempty"`
		Head     float64            `json:"head"`
		Base     float64            `json:"base"`
		HeadMore map[string]float64 `json:"head_more,omitempty"`
		BaseMore map[string]float64 `json:"base_more,omitempty"`
	}
)

func (r *report) line() gateLine {
	out := gateLine{Commit: r.builds[0].Commit, sideLine: r.sides[0].line(), Failed: r.failed()}
	if len(r.sides) > 1 {
		s := r.sides[1].line()
		out.Fixed = &s
	}
	return out
}

func (s *side) line() sideLine {
	return sideLine{s.build.Commit, lines(s.rows), round(mean(s.rows)), round(meanCPU(s.rows))}
}

func lines(rows []figure) []rowLine {
	out := []rowLine{}
	for _, f := range rows {
		l := rowLine{Row: f.name, Pairs: f.pairs, Ratio: round(f.ratio.Median), Least: round(f.ratio.Least),
			Most: round(f.ratio.Most), Low: f.low, Head: round(f.head), Base: round(f.base),
			HeadMore: f.headMore, BaseMore: f.baseMore}
		if f.price < 1 {
			l.Price = f.price
		}
		if f.cpu != nil {
			l.CPURatio, l.CPULeast, l.CPUMost = round(f.cpu.Median), round(f.cpu.Least), round(f.cpu.Most)
		}
		out = append(out, l)
	}
	return out
}

// round keeps four decimals.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// failed names the rows that fail against the base.
func (r *report) failed() []string {
	out := []string{}
	for _, f := range r.sides[0].rows {
		if f.failed() {
			out = append(out, f.name)
		}
	}
	return out
}

// err is the verdict.
func (r *report) err() error {
	if failed := r.failed(); len(failed) > 0 {
		return fmt.Errorf("below %v of %s, or of their price, in six of seven pairs: %s", lowRatio, r.sides[0].build.Commit,
			strings.Join(failed, ", "))
	}
	return nil
}

// mayAdvance says why the base stays where it is: nil when every row's median is at least 1.0 of it.
func (r *report) mayAdvance() error {
	var below []string
	for _, f := range r.sides[0].rows {
		switch {
		case f.pairs < leastPairs:
			return fmt.Errorf("the base stays: %s has %d pairs, it needs %d", f.name, f.pairs, leastPairs)
		case f.ratio.Median < 1:
			below = append(below, f.name)
		}
	}
	switch {
	case len(below) > 0:
		return fmt.Errorf("the base stays %s: below 1.0 of it: %s", r.sides[0].build.Commit, strings.Join(below, ", "))
	case strings.HasSuffix(r.builds[0].Commit, changed):
		return errors.New("the base stays: this work tree has changes that are in no commit")
	}
	return nil
}

// advance writes the head's commit to the file of the base if that may move.
func (r *report) advance(say func(string, ...any)) error {
	if err := r.mayAdvance(); err != nil {
		return err
	}
	head := r.builds[0].Commit
	root, err := git(context.Background(), "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	say("the base is %s now", head)
	return os.WriteFile(filepath.Join(root, basePath), []byte(head+"\n"), 0o644)
}
