// Command loadgen measures kith between real processes: one workload with run, the whole table with bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli"
)

const description = `Load generator for kith: spawns processes with real nodes and measures between them.

Exit codes: 0 done; 1 an error, or messages that were neither delivered nor refused; 2 wrong command line.`

// commands is the command line. The field names are the names of the flags.
type commands struct {
	Run      runCmd      `cmd:"" help:"Run one workload and report rates and latencies."`
	Bench    benchCmd    `cmd:"" help:"Measure everything in interleaved rounds beside raw TCP, and report medians."`
	Serve    serveCmd    `cmd:"" help:"Run a node that hosts the entities of run --target, until SIGINT or SIGTERM."`
	Idle     idleCmd     `cmd:"" help:"Hold many idle entities in one node process and report its memory."`
	Pressure pressureCmd `cmd:"" help:"Measure what one slow entity behind TellWait costs the others of its node."`
	Doors    doorsCmd    `cmd:"" help:"Measure what a crowd at the ports with HTTP of a node costs it."`
	Worker   workerCmd   `cmd:"" hidden:"" help:"Be a process of a measurement: answer calls on stdin."`
}

func main() {
	os.Exit(execute(os.Args[1:], &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env) int {
	var c commands
	exited := false
	e.stdout = cli.Clean(e.stdout)
	stderr := cli.Clean(e.stderr)
	parser, err := kong.New(&c, kong.Name("loadgen"), kong.Description(description), texts,
		kong.Writers(e.stdout, stderr), kong.Exit(func(int) { exited = true }))
	if err != nil { // the tags above are wrong
		fmt.Fprintln(stderr, "loadgen:", err)
		return exitFailed
	}
	ctx, err := parser.Parse(args)
	if exited { // --help was printed
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "loadgen: %s\n%s\n", cli.Fault(err), cli.Hint("loadgen", err))
		return exitUsage
	}
	if err := ctx.Run(e); err != nil {
		said := "loadgen:"
		if errors.Is(err, context.Canceled) { // by a signal: nothing else cancels
			said = "loadgen: interrupted:"
		}
		fmt.Fprintln(stderr, said, err)
		return exitFailed
	}
	return exitOK
}
