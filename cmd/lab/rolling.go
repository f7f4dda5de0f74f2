// lab rolling: a cluster of real processes under load, each restarted gracefully in turn; nothing may be lost.

package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/units"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/rolling"
)

// rollingCmd is the flags of lab rolling.
type rollingCmd struct {
	Nodes    int           `default:"5" help:"Node processes that host and are restarted, 2 to 16; one more only sends."`
	Rounds   int           `default:"20" help:"Restarts in all, 1 to 1000: each node in turn."`
	Together int           `default:"1" help:"How many leave at one time, 1 to all but one."`
	Entities int           `default:"1000" help:"Entities to which everything is sent, 1 to 100000."`
	Shards   uint32        `default:"100" help:"Shards that they are spread over, 1 to 10000."`
	Mode     string        `default:"worker" enum:"blocking,worker,inline" help:"How entities run: ${enum}."`
	Senders  int           `default:"8" help:"Senders, 1 to 64; one of four on the node that only sends."`
	Rate     float64       `default:"20000" help:"Messages per second of all senders together, tells and asks."`
	Asks     float64       `default:"2000" help:"How many of them are asks, per second."`
	Work     time.Duration `default:"0s" help:"How long each call of a handler takes; with --mode=blocking."`
	Large    int           `default:"0" help:"One tell of so many is a large message, of 16 KiB; 0: none."`
	Nested   int           `default:"0" help:"${nested_help}"`
	State    bytesFlag     `default:"0" help:"${state_help}"`
	TLS      bool          `name:"tls" help:"Mutual TLS, with a certificate authority that is thrown away."`
	Pause    time.Duration `default:"0s" help:"Between a restart and the next."`
	Link     mbitFlag      `placeholder:"20mbit" help:"${link_help}"`
	Stall    time.Duration `default:"0s" help:"${stall_help}"`
	Bound    time.Duration `default:"250ms" help:"999 of 1,000 asks must be answered within this time from when due."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
	Verbose  bool          `short:"v" help:"Show the logs of the node processes on stderr."`
}

// bytesFlag is a number of bytes, without a unit or with one: 1024, 1KiB.
type bytesFlag int

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *bytesFlag) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 0)
	if err != nil {
		var with units.Base2Bytes
		with, err = units.ParseBase2Bytes(string(text))
		n = int64(with)
	}
	*b = bytesFlag(n)
	return err
}

// mbitFlag is megabits a second, as tc writes them: 20mbit.
type mbitFlag int

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *mbitFlag) UnmarshalText(text []byte) error {
	number, isMbit := strings.CutSuffix(string(text), "mbit")
	n, err := strconv.Atoi(number)
	if err == nil && !isMbit {
		err = errors.New("a rate is a number and mbit: 20mbit")
	}
	*m = mbitFlag(n)
	return err
}

// Validate is called by the parser.
func (c *rollingCmd) Validate() error {
	cfg := c.config()
	return cfg.Validate()
}

var rollingModes = map[string]kith.Mode{"blocking": kith.Blocking, "worker": kith.Worker, "inline": kith.Inline}

func (c *rollingCmd) config() rolling.Config {
	job := rolling.Job{Entities: c.Entities, Shards: c.Shards, Mode: rollingModes[c.Mode], Takes: c.Work, Large: c.Large,
		Nested: c.Nested, State: int(c.State)}
	return rolling.Config{Job: job, Nodes: c.Nodes, Rounds: c.Rounds, Together: c.Together, Senders: c.Senders,
		Rate: c.Rate, Asks: c.Asks, TLS: c.TLS, Pause: c.Pause, Bound: c.Bound, Link: int(c.Link), Stall: c.Stall}
}

// Run restarts the nodes and prints the last line.
func (c *rollingCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	cfg := c.config()
	cfg.Child, cfg.Progress = e.Self("rolling-child", c.Verbose), cli.NewProgress(e.Stderr, c.Progress)
	r, err := rolling.Run(ctx, cfg)
	return env.Report(e, "rolling", r, err)
}

// rollingChildCmd is one node process of rolling.
type rollingChildCmd struct{}

// Run answers calls until the parent is gone.
func (*rollingChildCmd) Run(e *env.Env) error { return rolling.Child(e.Stdin, e.Stdout, e.Stderr) }

// scaleOutCmd is the flags of lab scale-out.
type scaleOutCmd struct {
	From     int           `default:"3" help:"Node processes that host at the begin; one more only sends."`
	Nodes    int           `default:"5" help:"Node processes that host at the end, 2 to 16."`
	Entities int           `default:"10000" help:"Entities to which everything is sent, 1 to 100000."`
	Shards   uint32        `default:"1000" help:"Shards that they are spread over, 1 to 10000."`
	Mode     string        `default:"worker" enum:"blocking,worker,inline" help:"How entities run: ${enum}."`
	Senders  int           `default:"8" help:"Senders, 1 to 64; one of four on the node that only sends."`
	Rate     float64       `default:"20000" help:"Messages per second of all senders together, tells and asks."`
	Asks     float64       `default:"2000" help:"How many of them are asks, per second."`
	Steady   time.Duration `default:"10s" help:"How long asks are measured before the others join, and again at the end."`
	Even     time.Duration `default:"10s" help:"Shards must be even so long after the first that joins was started."`
	Times    int           `default:"2" help:"Asks may take so many times as long meanwhile, at p99."`
	Fresh    int           `default:"5" help:"Nodes of a fresh start with types kept alive, 2 to 16; 0: none."`
	Within   time.Duration `default:"10s" help:"${within_help}"`
	Apart    bool          `help:"Measure apart what the joining nodes cost, while nothing moves, and what the moves do."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
	Verbose  bool          `short:"v" help:"Show the logs of the node processes on stderr."`
}

// Validate is called by the parser.
func (c *scaleOutCmd) Validate() error {
	cfg := c.config()
	return cfg.Validate()
}

func (c *scaleOutCmd) config() rolling.ScaleConfig {
	job := rolling.Job{Entities: c.Entities, Shards: c.Shards, Mode: rollingModes[c.Mode]}
	return rolling.ScaleConfig{From: c.From, Steady: c.Steady, Even: c.Even, Times: c.Times, Fresh: c.Fresh,
		Within: c.Within, Apart: c.Apart, Config: rolling.Config{Job: job, Nodes: c.Nodes, Senders: c.Senders, Rate: c.Rate,
			Asks: c.Asks, Bound: time.Minute}}
}

// Run makes nodes join, and prints the last line.
func (c *scaleOutCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	cfg := c.config()
	cfg.Child, cfg.Progress = e.Self("rolling-child", c.Verbose), cli.NewProgress(e.Stderr, c.Progress)
	r, err := rolling.ScaleOut(ctx, cfg)
	return env.Report(e, "scaleout", r, err)
}
