// Scale: what a large membership costs and how fast it is, measured on virtual time by name of the part.

package scale

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/membership"
)

// Config says what a scale run measures.
type Config struct {
	Nodes   int           // members of the cluster, 2 to MaxNodes
	Seed    uint64        // one seed, one result, but for the wall time and the memory
	Parts   []string      // of Parts; empty means those that are sensible for so many nodes
	Hours   float64       // virtual hours of the part "loss"; zero means 1
	Rounds  int           // how often an eighth of them freezes in the part "frozen"; zero means 10
	Build   bool          // make the cluster at once; above 3,000 nodes it is unless "join" is asked for
	Crashes int           // of "crash" and "kill" each; zero: 100, above 300 nodes 50, above 3,000 one
	Paths   int           // partitions of three instances that are defined before anything is measured
	Quiet   time.Duration // of the part "quiet"; zero: a minute, ten of a cluster that is built
	// Progress, when it is set, gets in words how far the run is.
	Progress func(string)
}

// Result is what a scale run found. Its JSON is the last line of `make scale`; what was not measured is absent.
// Seconds are of virtual time, bytes include the frame header.
type Result struct {
	N             int      `json:"n"`
	Seed          uint64   `json:"seed"`
	Built         bool     `json:"built,omitempty"`             // made at once, not by joining
	BulkJoinS     *float64 `json:"bulk_join_s,omitempty"`       // all started at once: until all saw all Up
	JoinOneS      *float64 `json:"join_one_s,omitempty"`        // one more node: until all saw it Up
	JoinOneBytes  *float64 `json:"join_one_bytes,omitempty"`    // of gossip that each node sent, until convergence
	JoinTwentyS   *float64 `json:"join_twenty_s,omitempty"`     // twenty more at once
	Crashes       int      `json:"crashes,omitempty"`           // how many the next five are about
	CrashFirstP50 *float64 `json:"crash_first_p50_s,omitempty"` // a host falls silent: until somebody says so
	CrashFirstP99 *float64 `json:"crash_first_p99_s,omitempty"`
	CrashAllP50   *float64 `json:"crash_all_p50_s,omitempty"` // until all have published it
	CrashAllP99   *float64 `json:"crash_all_p99_s,omitempty"`
	CrashSpread   *float64 `json:"crash_spread_max_s,omitempty"` // the longest from the first to all
	Killed
	Parted
	StateBytes    *int     `json:"state_bytes,omitempty"`  // the full state as one welcome carries it
	StatusBytes   *int     `json:"status_bytes,omitempty"` // the largest status message
	GossipRate    *float64 `json:"gossip_bytes_per_node_s,omitempty"`
	HeartbeatRate *float64 `json:"heartbeat_bytes_per_node_s,omitempty"`
	// FalseUnreachable sums up Loss at 1 and 5 % as on TCP, where there should be none.
	FalseUnreachable *int           `json:"false_unreachable,omitempty"`
	Loss             []LossResult   `json:"loss,omitempty"`
	Frozen           []FrozenResult `json:"frozen,omitempty"`

	WallSeconds float64 `json:"wall_seconds"`
	RssMB       int     `json:"rss_mb"`
	Steps       uint64  `json:"steps"`
}

// Killed is what the part "kill" found.
type Killed struct {
	Kills      int      `json:"kills,omitempty"`          // how many the next two are about
	KillAllP50 *float64 `json:"kill_all_p50_s,omitempty"` // a process dies, its host lives: until all have said so
	KillAllP99 *float64 `json:"kill_all_p99_s,omitempty"`
}

// Parted is what was found of partitions. Bytes are of gossip that each node sent, on average, until convergence.
type Parted struct {
	Paths       int      `json:"paths,omitempty"`        // partitions that are there
	PlacedS     *float64 `json:"placed_s,omitempty"`     // defined on one node: until all showed all placed
	PlacedBytes *float64 `json:"placed_bytes,omitempty"` // of that
	ChangedS    *float64 `json:"changed_s,omitempty"`    // one gets a fourth instance: until all showed it
	ConvergedS  *float64 `json:"converged_s,omitempty"`  // until all had seen that all showed it
	ChangeBytes *float64 `json:"change_bytes,omitempty"` // of that
}

// scalePart is one measurement. Above most nodes it runs only when it is asked for; one that is alone brings a cluster
// of its own.
type scalePart struct {
	name    string
	most    int
	alone   bool
	measure func(r *scaleRun) error
}

// scaleParts are the measurements in the order in which they run. Joining comes before them, unless the cluster is
// built.
var scaleParts = []scalePart{
	{"join", builtAbove, false, func(*scaleRun) error { return nil }},
	{"quiet", MaxNodes, false, (*scaleRun).quiet},
	{"one", MaxNodes, false, (*scaleRun).joinOne},
	{"twenty", builtAbove, false, (*scaleRun).joinTwenty},
	{"crash", MaxNodes, false, (*scaleRun).crashes},
	{"kill", builtAbove, false, (*scaleRun).kills},
	{"loss", builtAbove, true, (*scaleRun).lossy},
	{"frozen", builtAbove, true, (*scaleRun).frozen},
}

// Parts returns the names of the measurements, in the order in which they run.
func Parts() []string {
	var names []string
	for _, p := range scaleParts {
		names = append(names, p.name)
	}
	return names
}

// MaxNodes is the largest cluster of a scale run.
const MaxNodes = membership.MaxMembers

// ErrRun is returned by Run for a configuration that it cannot run, and for a cluster that did not get where the
// measurement needs it.
var ErrRun = errors.New("scale")

// Run runs the parts one after the other on one cluster.
func Run(cfg Config) (Result, error) {
	if cfg.Nodes < 2 || cfg.Nodes > MaxNodes {
		return Result{}, fmt.Errorf("%w: %d nodes, must be from 2 to %d", ErrRun, cfg.Nodes, MaxNodes)
	}
	for _, p := range cfg.Parts {
		if !slices.Contains(Parts(), p) {
			return Result{}, fmt.Errorf("%w: no part %q, there are %v", ErrRun, p, Parts())
		}
	}
	if cfg.Paths < 0 || cfg.Paths > cluster.MaxPartitions {
		return Result{}, fmt.Errorf("%w: %d paths, must be from 0 to %d", ErrRun, cfg.Paths, cluster.MaxPartitions)
	}
	if cfg.Hours == 0 {
		cfg.Hours = 1
	}
	if cfg.Hours < 0 || cfg.Hours > 1000 {
		return Result{}, fmt.Errorf("%w: %v hours, must be from 0 to 1000", ErrRun, cfg.Hours)
	}
	if cfg.Quiet < 0 || cfg.Quiet > time.Hour {
		return Result{}, fmt.Errorf("%w: %v of quiet, must be from 0 to an hour", ErrRun, cfg.Quiet)
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = 10
	}
	began := time.Now()
	r := &scaleRun{cfg: cfg, out: Result{N: cfg.Nodes, Seed: cfg.Seed}}
	err := r.run()
	r.out.WallSeconds = time.Since(began).Seconds()
	r.out.RssMB = maxRSS()
	return r.out, err
}

// scaleRun is one run in progress.
type scaleRun struct {
	cfg Config
	out Result
	c   *swarm
}

// parts returns what is to be measured.
func (r *scaleRun) parts() []scalePart {
	return slices.DeleteFunc(slices.Clone(scaleParts), func(p scalePart) bool {
		if len(r.cfg.Parts) == 0 {
			return r.cfg.Nodes > p.most
		}
		return !slices.Contains(r.cfg.Parts, p.name)
	})
}

func (r *scaleRun) say(format string, args ...any) {
	if r.cfg.Progress != nil {
		r.cfg.Progress(fmt.Sprintf(format, args...))
	}
}

// found makes the cluster on which the parts run that bring none.
func (r *scaleRun) found() error {
	if !slices.ContainsFunc(r.parts(), func(p scalePart) bool { return !p.alone }) {
		return nil
	}
	if r.cfg.Build || r.cfg.Nodes > builtAbove && !slices.Contains(r.cfg.Parts, "join") {
		return r.build()
	}
	return r.bulkJoin()
}

func (r *scaleRun) run() error {
	if err := r.found(); err != nil {
		return err
	}
	if err := r.define(); err != nil {
		return err
	}
	for _, part := range r.parts() {
		r.say("%s", part.name)
		if err := part.measure(r); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if r.c != nil {
		r.out.Steps += r.c.steps
	}
	return nil
}

func seconds(d time.Duration) *float64 {
	s := float64(d.Milliseconds()) / 1000
	return &s
}
