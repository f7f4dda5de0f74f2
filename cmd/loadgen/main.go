// Command loadgen measures kith between real processes: one workload with run, the whole table with bench.
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli/env"
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

	Children children `embed:""`
}

// children are the processes that commands start.
type children struct {
	Worker workerCmd `cmd:"" name:"worker-child" hidden:"" help:"Be a process of a measurement: answer calls on stdin."`
}

func main() { os.Exit(execute(os.Args[1:], env.Of("loadgen"))) }

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env.Env) int {
	return env.Execute(args, e, &children{}, func(more ...kong.Option) (*kong.Kong, error) {
		return kong.New(&commands{}, append(more, kong.Name("loadgen"), kong.Description(description), texts)...)
	}, func() []any { return nil })
}
