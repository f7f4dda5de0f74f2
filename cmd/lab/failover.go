// lab failover: what the loss of an owner costs its entities, in real processes, and where each second goes.

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/chaos"
	"github.com/kith-io/kith/internal/lab/leasestore"
)

// trialFlags are those of the commands that measure cases, each time in a cluster of its own.
type trialFlags struct {
	Rounds      int           `default:"3" help:"How often each case is measured, each time in a cluster of its own, 1 to 100."`
	Nodes       int           `default:"5" help:"Node processes, 3 to 16."`
	Entities    int           `default:"10" help:"Entities of each mode, 1 to 1000."`
	StableAfter time.Duration `default:"0s" help:"${partstable_help}"`
	Patience    kith.Patience `default:"normal" help:"Preset of the nodes: normal, calm or noisy."`
	Out         string        `default:"out" help:"${trialout_help}"`
	Progress    bool          `help:"Show progress although stderr is not a terminal."`
}

// faults returns what is wrong with them; cases is what was said of the cases.
func (c *trialFlags) faults(cases error) error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 3 && c.Nodes <= 16, "--nodes must be 3 to 16")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 100, "--rounds must be 1 to 100")
	errs.Must(c.Entities >= 1 && c.Entities <= 1000, "--entities must be 1 to 1000")
	errs.Must(c.StableAfter == 0 || c.StableAfter >= time.Second && c.StableAfter <= time.Minute,
		"--stable-after must be 0, or 1s to 1m") // asking takes a moment
	return append(errs, cases).Err()
}

// trialLoad is tells and asks a second of each process.
const trialLoad = 60

// trial returns how cases are measured, with a folder of that name.
func (c *trialFlags) trial(e *env.Env, folder string) chaos.Trial {
	return chaos.Trial{Nodes: c.Nodes, Rounds: c.Rounds, StableAfter: c.StableAfter,
		Patience: c.Patience, Dir: filepath.Join(c.Out, folder),
		Load:  chaos.Load{Entities: c.Entities, Shards: chaosShards, Tells: trialLoad, Asks: trialLoad},
		Child: e.Self("chaos-child", false), Progress: cli.NewProgress(e.Stderr, c.Progress)}
}

// sessionFlags say where nodes hold sessions.
type sessionFlags struct {
	Lease         leasestore.Kind `default:"file" help:"${sessionlease_help}"`
	SessionTTL    time.Duration   `name:"session-ttl" default:"5s" help:"How long a session lasts, 1s to 1m."`
	SessionOutage time.Duration   `default:"10m" help:"For how long a node may be without one: 8 sessions to 20h."`
}

// sessions returns what they say, where nodes hold sessions.
func (f *sessionFlags) sessions(on bool) (s chaos.Sessions, err error) {
	if !on {
		return s, nil
	}
	var errs cli.Faults
	errs.Must(slices.Contains(leasestore.Kinds, f.Lease), "--lease must be one of %v", leasestore.Kinds)
	errs.Must(f.SessionTTL >= time.Second && f.SessionTTL <= time.Minute, "--session-ttl must be 1s to 1m")
	errs.Must(f.SessionOutage >= 8*f.SessionTTL && f.SessionOutage <= 20*time.Hour,
		"--session-outage must be 8 sessions to 20h")
	return chaos.Sessions{Store: f.Lease, TTL: f.SessionTTL, Outage: f.SessionOutage}, errs.Err()
}

// The modes in which nodes hold sessions, or have tenures.
const (
	modeSession = "session"
	modeTenure  = "tenure"
)

// grants are those of tenures.
const grants = 2500 * time.Millisecond

// failoverCmd is the flags of lab failover.
type failoverCmd struct {
	Cases []string `help:"${cases_help}"`
	Mode  string   `enum:"takeover,session,tenure" default:"takeover" help:"${mode_help}"`
	Seats int      `default:"5" help:"With --mode=tenure: the seats, 3, 5 or 7; case both loses two at once."`
	sessionFlags
	trialFlags
}

// proofs returns what proves that a lost owner has ended.
func (c *failoverCmd) proofs() (s chaos.Sessions, err error) {
	if c.Mode == modeTenure {
		s.Tenure = kith.Tenure{Voters: c.Seats, Grant: grants}
		return s, kith.Config{Sharding: kith.Sharding{Tenure: s.Tenure}}.Validate()
	}
	return c.sessions(c.Mode == modeSession)
}

// Validate is called by the parser.
func (c *failoverCmd) Validate() error {
	s, err := c.proofs()
	if err == nil {
		_, err = chaos.ParseCases(c.Cases, s)
	}
	return c.faults(err)
}

// Run measures and prints the last line.
func (c *failoverCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	s, err := c.proofs()
	if err != nil {
		return err
	}
	cases, err := chaos.ParseCases(c.Cases, s)
	if err != nil {
		return err
	}
	trial := c.trial(e, "failover")
	trial.Sessions = s
	if trial.Child, err = leaseChild(trial.Child, s); err != nil {
		return err
	}
	r, err := chaos.Failover(ctx, chaos.FailoverConfig{Cases: cases, Trial: trial})
	return env.Report(e, "failover", r, err)
}

// leaseChild returns how a node process is started that knows the store: this program knows files, and bin/lab-leases,
// which links the clients of stores, knows all.
func leaseChild(self cli.Options, s chaos.Sessions) (cli.Options, error) {
	if s.Store != leasestore.Etcd {
		return self, nil
	}
	path, err := besides("lab-leases")
	if err != nil {
		return self, fmt.Errorf("%w: make build-leases", err)
	}
	self.Path, self.Args = path, nil
	return self, nil
}
