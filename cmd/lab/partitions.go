// lab partitions: partitions of each hand-off on real processes, under traffic; nothing planned may be lost.

package main

import (
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/instances"
)

// partitionsCmd is the flags of lab partitions.
type partitionsCmd struct {
	Nodes     int     `default:"5" help:"Node processes, 3 to 16; one more joins, one leaves, one is killed."`
	Instances int     `default:"3" help:"Instances of each partition, 1 to all nodes less two."`
	Moves     int     `default:"10" help:"Moves by hand of each partition, 0 to 1000."`
	Rate      float64 `default:"75" help:"Messages per second of each process to each instance."`
	Kill      bool    `default:"true" negatable:"" help:"Kill a process that hosts, at the end, and wait for its instances."`
	Cut       bool    `default:"true" negatable:"" help:"Cut a process that hosts off from the others, behind that."`
	Net       string  `default:"auto" help:"How: auto, netns (network namespaces) or proxy (on loopback)."`
	Progress  bool    `help:"Show progress although stderr is not a terminal."`
	Verbose   bool    `short:"v" help:"Show the logs of the node processes on stderr."`
}

// Validate is called by the parser.
func (c *partitionsCmd) Validate() error {
	cfg := c.config()
	return cfg.Validate()
}

func (c *partitionsCmd) config() instances.Config {
	return instances.Config{Nodes: c.Nodes, Instances: c.Instances, Moves: c.Moves, Rate: c.Rate, Kill: c.Kill, Cut: c.Cut,
		Net: c.Net}
}

// Run prints the last line.
func (c *partitionsCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	cfg := c.config()
	cfg.Child, cfg.Progress = e.Self("partitions-child", c.Verbose), cli.NewProgress(e.Stderr, c.Progress)
	r, err := instances.Run(ctx, cfg)
	return env.Report(e, "partitions", r, err)
}

// partitionsChildCmd is one node process of partitions.
type partitionsChildCmd struct{}

// Run answers calls until the parent is gone.
func (*partitionsChildCmd) Run(e *env.Env) error { return instances.Child(e.Stdin, e.Stdout, e.Stderr) }
