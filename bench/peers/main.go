// Command peers measures other messaging systems beside kith: real processes over loopback, the same messages, the same
// minutes. See docs/evidence/peers.md for how each of them is set up and what is not comparable.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // our own rows or the raw ones could not be measured
	exitUsage  = 2 // the command line is wrong; nothing was started
)

const description = `Measures other messaging systems beside kith, in interleaved rounds, and prints "peers {json}".

A system that cannot be built or started is named on stderr and has no rows.

With --outages it measures instead for how long an entity of five Pekko nodes does not answer when the node that it
lives on is lost, and prints "outages {json}".

Exit codes: 0 done; 1 our own rows or those of raw TCP are missing, or an outage was not measured; 2 wrong command
line.`

// flags is the command line. The field names are the names of the flags.
type flags struct {
	Rounds   int           `default:"5" help:"Rounds of all works in turn; figures are medians over them; 1 to 100."`
	Duration time.Duration `default:"1s" help:"How long one work of one system is timed in a round, or an entity asked before its loss; 50ms to 60s."`
	Only     []string      `help:"Systems to measure beside ours and raw TCP: ${systems}."`
	Works    []string      `help:"Works to measure: ${works}."`
	Outages  bool          `help:"Measure the losses of Pekko's nodes, not works."`
	Cases    []string      `help:"Losses to measure with --outages: ${cases}."`
	Dir      string        `default:"." type:"existingdir" help:"The folder of this module."`
	Out      string        `default:"bin/peers" help:"Where the programs are built, seen from the repository's root."`
	Quiet    bool          `help:"No progress on stderr; notes on what is missing still are."`
}

// Validate is called by the parser.
func (c *flags) Validate() error {
	var errs []error
	if c.Rounds < 1 || c.Rounds > 100 {
		errs = append(errs, errors.New("--rounds must be 1 to 100"))
	}
	if c.Duration < 50*time.Millisecond || c.Duration > time.Minute {
		errs = append(errs, errors.New("--duration must be 50ms to 60s"))
	}
	for _, name := range c.Only {
		if !slices.Contains(systemNames(), name) {
			errs = append(errs, fmt.Errorf("--only: no system %q; there are %s", name, strings.Join(systemNames(), ", ")))
		}
	}
	for _, name := range c.Works {
		if !slices.Contains(workNames(), name) {
			errs = append(errs, fmt.Errorf("--works: no work %q; there are %s", name, strings.Join(workNames(), ", ")))
		}
	}
	return errors.Join(append(errs, c.validOutages())...)
}

// result is what a run ends with: a table for people, and the last line.
type result interface {
	table(w io.Writer, on bool)
}

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute parses args, measures and returns the exit code.
func execute(args []string, stdout io.Writer, stderr *os.File) int {
	var c flags
	exited := false
	parser, err := kong.New(&c, kong.Name("peers"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }),
		kong.Vars{"systems": strings.Join(systemNames(), ", "), "works": strings.Join(workNames(), ", "),
			"cases": strings.Join(lossNames(), ", ")})
	if err != nil { // the tags above are wrong
		fmt.Fprintln(stderr, "peers:", err)
		return exitFailed
	}
	_, err = parser.Parse(args)
	if exited { // --help was printed
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "peers: %v\nRun with --help for the flags.\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends this process, and with it its children
	r := &run{flags: c, progress: cli.NewProgress(stderr, !c.Quiet), notes: stderr, pairs: map[string]*pair{}}
	if c.Quiet {
		r.progress = &cli.Progress{}
	}
	word, rep, err := r.measure(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "peers:", err)
		return exitFailed
	}
	rep.table(stderr, !c.Quiet)
	if err := cli.Line(stdout, word, rep); err != nil {
		fmt.Fprintln(stderr, "peers:", err)
		return exitFailed
	}
	return exitOK
}

// measure returns the word and the content of the last line.
func (r *run) measure(ctx context.Context) (string, result, error) {
	if r.Outages {
		rep, err := r.outages(ctx, buildOutages)
		return "outages", rep, err
	}
	rep, err := r.run(ctx)
	return "peers", rep, err
}
