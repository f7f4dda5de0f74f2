// Command planted repeats the mutation check: it plants known bugs into the source, one at a time, and demands that the
// storm or a test catches each. A net that catches nothing when there is something to catch is no net.
//
//	go run ./internal/lab/planted [-only NAME,...] [-limit 10m]
//	go run ./internal/lab/planted -list [-only NAME,...]
//
// The second form only prints the list: name, the rules that the bug breaks, place, and whether a storm or which test
// has to catch it.
//
// Nothing in the tree is changed: mutated files are put in place by go build -overlay. Progress goes to standard error;
// the last line on standard output is `planted {json}`. Exit code 1 when a bug got away, 2 when the check itself cannot
// run: an entry with an old text that is gone, a mutation that does not compile, a net that fails without any bug.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cpuLimit is the processor time within which a bug must be caught, builds included.
const cpuLimit = 10 * time.Minute

// summary is the last line.
type summary struct {
	Bugs        int     `json:"bugs"`
	Caught      int     `json:"caught"`
	Missed      int     `json:"missed"`
	WallSeconds float64 `json:"wall_seconds"`
	CPUMax      float64 `json:"cpu_max_s"` // the longest that one bug took to be caught, builds included

	MissedNames []string `json:"missed_names,omitempty"`
}

func main() {
	only := flag.String("only", "", "plant only the bugs of these names, separated by commas")
	limit := flag.Duration("limit", 10*time.Minute, "longest time of one build or run")
	table := flag.Bool("list", false, "only print the list: name, rules, place, and what has to catch it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := moduleRoot(ctx)
	if err == nil && *table {
		printList(os.Stdout, pick(bugs, *only))
	} else if err == nil {
		list := pick(bugs, *only)
		var s summary
		if s, err = checkNets(ctx, root, list, *limit, os.Stderr); err == nil {
			err = finish(os.Stdout, s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		stop()
		os.Exit(2)
	}
}

// finish prints the last line and ends the process with 1 when a bug got away.
func finish(out io.Writer, s summary) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the last line: %w", err)
	}
	fmt.Fprintf(out, "planted %s\n", line)
	if s.Missed > 0 {
		os.Exit(1)
	}
	return nil
}

// printList writes the list as a table.
func printList(out io.Writer, list []bug) {
	for i := range list {
		b := &list[i]
		fmt.Fprintf(out, "%-48s %-40s %-40s %s\n", b.Name, b.Rules, b.In, b.net())
	}
}

func pick(list []bug, only string) []bug {
	if only == "" {
		return list
	}
	var picked []bug
	for _, b := range list {
		if slices.Contains(strings.Split(only, ","), b.Name) {
			picked = append(picked, b)
		}
	}
	return picked
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for go.mod: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// checkNets plants every bug of the list in the module at root, one after another.
func checkNets(ctx context.Context, root string, list []bug, limit time.Duration, progress io.Writer) (summary, error) {
	s := summary{Bugs: len(list)}
	if err := checkAll(list); err != nil {
		return s, err
	}
	// All entries first: a list that has rotted should say so at once, not after half an hour.
	for i := range list {
		if _, _, err := list[i].mutate(root); err != nil {
			return s, err
		}
	}
	scratch, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return s, fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	h := &hunter{root: root, scratch: scratch, limit: limit}
	started := time.Now()
	fmt.Fprintf(progress, "planted: %d bugs; first without any\n", len(list))
	if err := h.baseline(ctx, list); err != nil {
		return s, err
	}
	var broken []error
	for i := range list {
		b := &list[i]
		h.cpu = 0
		c, err := h.hunt(ctx, b)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err != nil { // the others are worth their half an hour
			fmt.Fprintf(progress, "%3d/%d  BROKEN  %-32s %v\n", i+1, len(list), b.Name, err)
			broken = append(broken, err)
			continue
		}
		seconds := h.cpu.Seconds()
		s.CPUMax = max(s.CPUMax, seconds)
		if c.By != "" && h.cpu > cpuLimit {
			c = catch{Why: fmt.Sprintf("caught by %s, but only after %v of processor time", c.By, h.cpu)}
		}
		if c.By == "" {
			s.Missed++
			s.MissedNames = append(s.MissedNames, b.Name)
			fmt.Fprintf(progress, "%3d/%d  MISSED  %-32s %6.1f cpu-s  %s\n", i+1, len(list), b.Name, seconds, c.Why)
			continue
		}
		s.Caught++
		by := c.By
		if b.Seeds > 0 {
			by = fmt.Sprintf("%s, seed %d", by, c.Seed)
		}
		fmt.Fprintf(progress, "%3d/%d  caught  %-32s %6.1f cpu-s  by %s\n", i+1, len(list), b.Name, seconds, by)
	}
	s.WallSeconds = time.Since(started).Seconds()
	return s, errors.Join(broken...)
}
