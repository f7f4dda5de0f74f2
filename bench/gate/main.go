// Command gate holds the speed of this tree against older commits: one program, compiled against each, run in turn.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli"
)

const description = `Holds the speed of this tree against an older commit: one program that uses only what both have is
compiled against each, and both are measured in turn, in another order each time. The rows are explained in
docs/contributing/gate.md.

Exit codes: 0 done; 1 an error, or a row below 0.95 of the base, or of its price, in six of seven pairs; 2 wrong usage.`

// texts are the longer texts of the flags.
var texts = kong.Vars{"raw_help": "File for the raw lines; default: out/gate-COMMIT-TIME.jsonl. When it is there " +
	"already, of the same builds and duration, the new pairs are added, and all count."}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// flags is the command line.
type flags struct {
	compared
	Only     []string      `help:"Rows to measure, by name or by how their names begin; empty: all."`
	Pairs    int           `default:"7" help:"How many times each row is measured of each build, 1 to 100."`
	Duration time.Duration `default:"700ms" help:"How long a row of a build is measured in a pair, 100ms to 1m."`
	Raw      string        `type:"path" help:"${raw_help}"`
	Profile  string        `type:"path" help:"Directory for CPU profiles of all processes while rows are measured."`
	Advance  bool          `help:"Write this commit to bench/gate/BASE if every row's median is at least 1.0 of the base."`
	List     bool          `help:"List the rows and end."`
}

// Validate is called by the parser.
func (f *flags) Validate() error {
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	check(f.Pairs >= 1 && f.Pairs <= 100, "--pairs must be 1 to 100")
	check(f.Duration >= 100*time.Millisecond && f.Duration <= time.Minute, "--duration must be 100ms to 1m")
	check(f.Base == "" || f.BaseDir == "", "--base and --base-dir exclude each other")
	check(!f.Advance || len(f.Only) == 0 && f.BaseDir == "" && f.HeadDir == "",
		"--advance needs all rows, of this commit against another: no --only, --base-dir, --head-dir")
	_, err := wanted(f.Only)
	return errors.Join(append(errs, err)...)
}

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute parses args, runs the gate and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	var f flags
	exited := false
	parser, err := kong.New(&f, kong.Name("gate"), kong.Description(description), texts, kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }))
	if err != nil { // the tags above are wrong
		fmt.Fprintln(stderr, "gate:", err)
		return exitFailed
	}
	_, err = parser.Parse(args)
	if exited { // --help was printed
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "gate: %v\n%s\n", err, cli.Hint("gate", err))
		return exitUsage
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	if err := f.run(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "gate:", err)
		return exitFailed
	}
	return exitOK
}

// run does what the flags say.
func (f *flags) run(ctx context.Context, stdout, stderr io.Writer) error {
	rows, err := wanted(f.Only)
	if err != nil {
		return err
	}
	if f.List {
		for _, r := range allRows {
			fmt.Fprintf(stdout, "%-24s %s\n", r.name, r.what)
		}
		return nil
	}
	say := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	tmp, err := os.MkdirTemp("", "kith-gate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	builds, err := f.compared.build(ctx, tmp, say)
	if err != nil {
		return err
	}
	raw, err := openRaw(f.Raw, builds, f.Duration)
	if err != nil {
		return err
	}
	defer raw.close()
	say("raw lines: %s", raw.path)
	r := &rounds{builds: builds, rows: rows, unit: f.Duration, profile: f.Profile, raw: raw, say: say}
	err = r.run(ctx, f.Pairs)
	report := judge(builds, raw.samples)
	if len(report.sides[0].rows) == 0 { // not one pair is whole
		return err
	}
	report.table(stdout)
	if err := errors.Join(err, cli.Line(stdout, "gate", report.line())); err != nil {
		return err
	}
	if f.Advance {
		return report.advance(say)
	}
	return report.err()
}
