// lab chaos: real node processes under faults that a seed draws.

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/chaos"
	"github.com/kith-io/kith/internal/lab/leasestore"
)

// chaosCmd is the flags of lab chaos.
type chaosCmd struct {
	Minutes  float64  `default:"5" help:"No round of faults begins later; the last one is waited for. Up to 1440."`
	Seed     uint64   `default:"0" help:"Draws the faults; 0: another one each time, which the last line tells."`
	Rounds   int      `default:"0" help:"At most so many rounds; 0: as many as there is time for."`
	Nodes    int      `default:"5" help:"Node processes, 3 to 16."`
	Net      string   `enum:"auto,netns,proxy" default:"auto" help:"${net_help}"`
	Only     []string `help:"${only_help}"`
	Out      string   `default:"out" help:"Folder for chaos-<seed>: the timeline and, after a failure, all logs."`
	Tells    float64  `default:"60" help:"Tells a second of each process."`
	Asks     float64  `default:"60" help:"Asks a second of each process."`
	Entities int      `default:"10" help:"Entities of each mode, 1 to 1000."`
	Moves    bool     `help:"${chaos_moves_help}"`
	Plan     int      `default:"0" help:"Print so many rounds of the seed, at most 10000, and run nothing."`
	Session  string   `enum:"drawn,off,file,etcd" default:"drawn" help:"${chaos_session_help}"`
	Tenure   string   `enum:"drawn,off,3,5,7" default:"drawn" help:"${chaos_tenure_help}"`
	Progress bool     `help:"Show progress although stderr is not a terminal."`
}

// plain reports whether nothing but a seed says what a run is.
func (c *chaosCmd) plain() bool { return len(c.Only) == 0 && !c.Moves }

// sessionsOf returns where nodes hold sessions in a run of a seed, or with what tenures: files in one of four, tenures
// in another one, unless it is said.
func (c *chaosCmd) sessionsOf(seed uint64) (s chaos.Sessions) {
	said := c.Session != "drawn" && c.Session != "off" || c.Tenure != "drawn" && c.Tenure != "off"
	drawn := !said && c.plain()
	switch {
	case c.Session == "drawn" && drawn && seed%4 == 0:
		return chaos.Sessions{Store: leasestore.Files, TTL: sessionTTL, Outage: sessionOutage}
	case c.Tenure == "drawn" && drawn && seed%4 == 1:
		s.Tenure = kith.Tenure{Voters: min(7, (c.Nodes-1)/2*2+1), Grant: grants}
	case c.Tenure != "drawn" && c.Tenure != "off":
		s.Tenure.Grant = grants
		s.Tenure.Voters, _ = strconv.Atoi(c.Tenure) // one of the list above
	case c.Session != "drawn" && c.Session != "off":
		return chaos.Sessions{Store: leasestore.Kind(c.Session), TTL: sessionTTL, Outage: sessionOutage}
	}
	return s
}

// The sessions of nodes in chaos.
const (
	sessionTTL    = 5 * time.Second
	sessionOutage = 10 * time.Minute
)

// Validate is called by the parser.
func (c *chaosCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Minutes > 0 && c.Minutes <= 1440, "--minutes must be more than 0 and at most 1440")
	errs.Must(c.Rounds >= 0, "--rounds is negative")
	errs.Must(c.Nodes >= 3 && c.Nodes <= 16, "--nodes must be 3 to 16")
	errs.Must(c.Tells >= 0 && c.Tells <= 10_000, "--tells must be 0 to 10000")
	errs.Must(c.Asks > 0 && c.Asks <= 10_000, "--asks must be more than 0 and at most 10000")
	errs.Must(c.Plan >= 0 && c.Plan <= 10_000, "--plan must be 0 to 10000")
	errs.Must(c.Entities >= 1 && c.Entities <= 1000, "--entities must be 1 to 1000")
	kinds, err := chaos.ParseKinds(c.Only)
	if err != nil {
		errs = append(errs, err)
	}
	both := c.Session != "drawn" && c.Session != "off" && c.Tenure != "drawn" && c.Tenure != "off"
	errs.Must(!both, "--session and --tenure: nodes have one of the two")
	errs.Must(c.sessionsOf(0).Store != "" || !slices.ContainsFunc(kinds, chaos.Kind.OfStore),
		"--only: faults of a store are for --session=file and --session=etcd")
	errs.Must(err != nil || !c.Moves || len(chaos.EveryMove(1, max(3, min(c.Nodes, 16)), kinds...)) > 0,
		"--only: with --moves there are kill, pause, cut and reset")
	return errs.Err()
}

// chaosShards is the number of shards of each type.
const chaosShards = 20

// Run runs it and prints the last line.
func (c *chaosCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())%1_000_000 + 1
	}
	kinds, err := chaos.ParseKinds(c.Only)
	if err != nil {
		return err
	}
	if c.Plan > 0 {
		if c.Moves {
			for _, r := range chaos.EveryMove(c.Seed, c.Nodes, kinds...) {
				if r.Number <= c.Plan {
					fmt.Fprintf(e.Stdout, "round %d: %s\n", r.Number, r)
				}
			}
			return nil
		}
		rounds := chaos.NewRounds(c.Seed, c.Nodes, kinds...)
		if c.sessionsOf(c.Seed).Store != "" && len(kinds) == 0 {
			rounds.WithStore()
		}
		for ; c.Plan > 0; c.Plan-- {
			r := rounds.Next()
			fmt.Fprintf(e.Stdout, "round %d: %s\n", r.Number, r)
		}
		return nil
	}
	sessions := c.sessionsOf(c.Seed)
	child, err := leaseChild(e.Self("chaos-child", false), sessions)
	if err != nil {
		return err
	}
	r, err := chaos.Run(ctx, chaos.Config{Nodes: c.Nodes, Seed: c.Seed, Rounds: c.Rounds, Net: c.Net, Kinds: kinds,
		Moves: c.Moves, For: time.Duration(c.Minutes * float64(time.Minute)),
		Dir:      filepath.Join(c.Out, fmt.Sprintf("chaos-%d", c.Seed)),
		Load:     chaos.Load{Entities: c.Entities, Shards: chaosShards, Tells: c.Tells, Asks: c.Asks},
		Child:    child,
		Sessions: sessions,
		Progress: cli.NewProgress(e.Stderr, c.Progress)})
	return env.Report(e, "chaos", r, err)
}

// chaosChildCmd is a node process of chaos: everything comes by calls.
type chaosChildCmd struct{}

// Run answers calls until the parent has gone, or the node's membership ends.
func (*chaosChildCmd) Run(e *env.Env) error { return chaos.Child(e.Stdin, e.Stdout, e.Stderr) }
