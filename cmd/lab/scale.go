// lab scale: how fast and how costly a large membership is, simulated.

package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/shardscale"
	"github.com/kith-io/kith/internal/sim/scale"
)

// scaleCmd is the flags of lab scale.
type scaleCmd struct {
	Nodes      int           `default:"1000" help:"Members of the simulated cluster, 2 to 10000."`
	Seed       uint64        `default:"1" help:"Everything random comes from it: one seed, one result."`
	Parts      []string      `help:"${parts_help}"`
	Crashes    int           `default:"0" help:"${crashes_help}"`
	Build      bool          `help:"${build_help}"`
	Hours      float64       `default:"1" help:"${hours_help}"`
	Rounds     int           `default:"10" help:"${rounds_help}"`
	Paths      int           `default:"0" help:"Partitions of three instances that are defined first, 0 to 1024."`
	Quiet      time.Duration `default:"0s" help:"How long the part quiet measures, at most 1h; 0: a minute, ten above 3000 nodes."`
	Progress   bool          `help:"Show progress although stderr is not a terminal."`
	CPUProfile string        `name:"cpuprofile" type:"path" help:"Write a profile of the processor's time to this file."`
}

// Validate is called by the parser.
func (c *scaleCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 2 && c.Nodes <= scale.MaxNodes, "--nodes must be 2 to %d", scale.MaxNodes)
	errs.Must(c.Crashes >= 0 && c.Crashes <= 100_000, "--crashes must be 0 to 100000")
	errs.Must(c.Hours > 0 && c.Hours <= 1000, "--hours must be more than 0 and at most 1000")
	errs.Must(c.Paths >= 0 && c.Paths <= 1024, "--paths must be 0 to 1024")
	errs.Must(c.Quiet >= 0 && c.Quiet <= time.Hour, "--quiet must be 0 to 1h")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 100_000, "--rounds must be 1 to 100000")
	for _, p := range c.Parts {
		errs.Must(slices.Contains(scale.Parts(), p), "--parts: no part %q, there are %s", p, strings.Join(scale.Parts(), ","))
	}
	return errs.Err()
}

// Run measures and prints the last line.
func (c *scaleCmd) Run(e *env.Env) error {
	if c.CPUProfile != "" {
		f, err := os.Create(c.CPUProfile)
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	progress := cli.NewProgress(e.Stderr, c.Progress)
	shown := time.Time{}
	result, err := scale.Run(scale.Config{Nodes: c.Nodes, Seed: c.Seed, Parts: c.Parts, Crashes: c.Crashes,
		Hours: c.Hours, Rounds: c.Rounds, Build: c.Build, Paths: c.Paths, Quiet: c.Quiet,
		Progress: func(line string) {
			if time.Since(shown) >= stormEvery {
				shown = time.Now()
				progress.Printf("%s", line)
			}
		}})
	if err != nil {
		return err
	}
	return cli.Line(e.Stdout, "scale", result)
}

// scaleShardsCmd is the flags of lab scale-shards.
type scaleShardsCmd struct {
	Parts       []string      `default:"home,balance,proxy" help:"Parts to measure: home, balance, proxy."`
	HomeShards  int           `default:"1000" help:"Shards that get homes on a fresh cluster of three, 1 to 1048576."`
	HomeLimit   time.Duration `default:"1s" help:"How long that may take."`
	Shards      int           `default:"100000" help:"Shards of the type that is balanced, 4 to 1048576."`
	Entities    int           `default:"1000000" help:"Its entities, 1 to 10000000."`
	Rate        int           `default:"10000" help:"Tells a second of each process; 0: as many as are accepted."`
	Steady      time.Duration `default:"10s" help:"How long the steady rate is measured, 100ms to 10m."`
	Limit       time.Duration `default:"10m" help:"How long the balance is waited for."`
	MaxMoves    int           `default:"0" help:"Shards that move at once; 0: the default of nodes."`
	Interval    time.Duration `default:"10s" help:"How often the balance is looked at, at least 10ms."`
	ProxyShards int           `default:"1000000" help:"Shards of the type that a proxy registers, 1 to 1048576."`
	Progress    bool          `help:"Show progress although stderr is not a terminal."`
	Verbose     bool          `short:"v" help:"Show the logs of the node processes on stderr."`
}

// Validate is called by the parser.
func (c *scaleShardsCmd) Validate() error {
	cfg := c.config()
	return cfg.Validate()
}

func (c *scaleShardsCmd) config() shardscale.Config {
	return shardscale.Config{Parts: c.Parts, HomeShards: c.HomeShards, HomeLimit: c.HomeLimit, Shards: c.Shards,
		Entities: c.Entities, Rate: c.Rate, Steady: c.Steady, Limit: c.Limit, MaxMoves: c.MaxMoves, Interval: c.Interval,
		ProxyShards: c.ProxyShards}
}

// Run measures the parts and prints the last line, also when a bound was missed.
func (c *scaleShardsCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	cfg := c.config()
	cfg.Progress = cli.NewProgress(e.Stderr, c.Progress)
	cfg.Child = e.Self("shards-child", c.Verbose)
	r, err := shardscale.Run(ctx, cfg)
	return env.Report(e, "shards", r, err)
}

// scaleShardsChildCmd is one node process of scale-shards.
type scaleShardsChildCmd struct{}

// Run answers calls until the parent is gone.
func (*scaleShardsChildCmd) Run(e *env.Env) error {
	return shardscale.Child(e.Stdin, e.Stdout, e.Stderr)
}
