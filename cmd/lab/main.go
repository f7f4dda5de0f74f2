// Command lab is the laboratory of kith: what proves and measures it. It simulates clusters under drawn faults, runs
// real node processes under real ones, tries models exhaustively, and measures large clusters. No embedder and no
// operator needs it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli/env"
)

// commands is the command line. The field names are the names of the flags.
type commands struct {
	Storm    stormCmd        `cmd:"" group:"simulated" help:"Run random clusters under random faults, and check every step."`
	Accounts accountsCmd     `cmd:"" group:"simulated" help:"Run storms of heavy traffic, and account for every accepted message."`
	Durable  stormDurableCmd `cmd:"" group:"simulated" name:"storm-durable" help:"Run storms of durable entities over a bad store, and judge their history."`
	Starts   startsCmd       `cmd:"" group:"simulated" help:"Simulate nodes that find each other while discovery lies."`
	Scale    scaleCmd        `cmd:"" group:"simulated" help:"Measure a large membership: joins, crashes, sizes, bytes, suspicions."`
	Proof    proofCmd        `cmd:"" group:"simulated" name:"resolver-proof" help:"Prove that no state of the links lets two sides live."`
	Model    modelCmd        `cmd:"" group:"simulated" help:"Try every order of events in a small cluster whose shards move."`

	Chaos         chaosCmd         `cmd:"" group:"real" help:"Run node processes under faults that a seed draws, and check what they do."`
	Rolling       rollingCmd       `cmd:"" group:"real" help:"Restart the processes of a cluster in turn, under load; nothing may be lost."`
	ScaleOut      scaleOutCmd      `cmd:"" group:"real" help:"Have nodes join a cluster under load; measure when shards are even."`
	ScaleShards   scaleShardsCmd   `cmd:"" group:"real" help:"Measure types of very many shards."`
	Failover      failoverCmd      `cmd:"" group:"real" help:"Kill owners and coordinators; say where each second goes."`
	Stalls        stallsCmd        `cmd:"" group:"real" help:"Have processes stand still for moments; count those that end for it."`
	Kill          killCmd          `cmd:"" group:"real" name:"kill-test" help:"Kill one of several nodes; measure when others say so."`
	Partition     partitionCmd     `cmd:"" group:"real" name:"partition-test" help:"${partition_help}"`
	Partitions    partitionsCmd    `cmd:"" group:"real" help:"Move, join, leave and kill under partitions of each hand-off."`
	BootstrapTest bootstrapTestCmd `cmd:"" group:"real" help:"Start nodes that find each other by a DNS server that lies."`
	Timers        timersCmd        `cmd:"" group:"real" help:"Set very many timers; count the early, measure the late."`

	Children children `embed:""`

	env.Bounds
}

// children are the processes that commands start.
type children struct {
	Chaos   chaosChildCmd       `cmd:"" name:"chaos-child" hidden:"" help:"Be a node process of chaos: answer calls on stdin."`
	Kill    killChildCmd        `cmd:"" name:"kill-child" hidden:"" help:"Be a node process of kill-test: answer calls on stdin."`
	Rolling rollingChildCmd     `cmd:"" name:"rolling-child" hidden:"" help:"Be a node process of rolling: answer calls on stdin."`
	Parts   partitionsChildCmd  `cmd:"" name:"partitions-child" hidden:"" help:"Be a node process of partitions: answer calls on stdin."`
	Shards  scaleShardsChildCmd `cmd:"" name:"shards-child" hidden:"" help:"Be a node process of scale-shards: answer calls on stdin."`
}

var groups = []kong.Group{{Key: "simulated", Title: "Simulated and exhaustive:"},
	{Key: "real", Title: "Real processes:"}}

const about = "lab proves and measures kith.\n\nExit codes:\n\n  - 0: done\n  - 1: an error, a violation, or a bound " +
	"that was missed\n  - 2: the command line is wrong; nothing was started"

func main() { os.Exit(execute(os.Args[1:], env.Of("lab"))) }

// parserOf returns the parser of the command line.
func parserOf(c *commands, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(more, kong.Name("lab"), kong.Description(about), kong.ExplicitGroups(groups), texts)...)
}

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env.Env) int {
	parser := func(more ...kong.Option) (*kong.Kong, error) { return parserOf(&commands{}, more...) }
	return env.Execute(args, e, &children{}, parser, func() []any { return nil })
}

var errNoProgram = errors.New("another program is needed, beside this one or in PATH")

// besides returns the path of a program.
func besides(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: %s", errNoProgram, name)
	}
	return found, nil
}

// kithProgram returns the path of the node binary: some commands run nodes and ask them as an operator does.
var kithProgram = func() (string, error) {
	path, err := besides("kith")
	if err != nil {
		return "", fmt.Errorf("%w: make build", err)
	}
	return path, nil
}

// kithEnv is what the environment of that program gets; tests need it.
var kithEnv []string
