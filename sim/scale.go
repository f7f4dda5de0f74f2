// Scale: what a large membership costs and how fast it is, measured on virtual time by name of the part.

package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
)

// ScaleConfig says what a scale run measures.
type ScaleConfig struct {
	Nodes   int      // members of the cluster, 2 to MaxScaleNodes
	Seed    uint64   // one seed, one result, but for the wall time and the memory
	Parts   []string // of ScaleParts; empty means those that are sensible for so many nodes
	Hours   float64  // virtual hours of the part "loss"; zero means 1
	Rounds  int      // how often an eighth of them freezes in the part "frozen"; zero means 10
	Crashes int      // how many crashes the part "crash" measures; zero means 100, fewer above 300 nodes
	// Progress, when it is set, is told in words how far the run is.
	Progress func(string)
}

// ScaleResult is what a scale run found. Its JSON is the last line of `make scale`; what was not measured is absent.
// Seconds are of virtual time, bytes include the frame header.
type ScaleResult struct {
	N             int      `json:"n"`
	Seed          uint64   `json:"seed"`
	BulkJoinS     *float64 `json:"bulk_join_s,omitempty"`       // all started at once: until all saw all Up
	JoinOneS      *float64 `json:"join_one_s,omitempty"`        // one more node: until all saw it Up
	JoinTwentyS   *float64 `json:"join_twenty_s,omitempty"`     // twenty more at once
	Crashes       int      `json:"crashes,omitempty"`           // how many the next five are about
	CrashFirstP50 *float64 `json:"crash_first_p50_s,omitempty"` // a host falls silent: until somebody says so
	CrashFirstP99 *float64 `json:"crash_first_p99_s,omitempty"`
	CrashAllP50   *float64 `json:"crash_all_p50_s,omitempty"` // until all have published it
	CrashAllP99   *float64 `json:"crash_all_p99_s,omitempty"`
	CrashSpread   *float64 `json:"crash_spread_max_s,omitempty"` // the longest from the first to all
	StateBytes    *int     `json:"state_bytes,omitempty"`        // the full state as one welcome carries it
	StatusBytes   *int     `json:"status_bytes,omitempty"`       // the largest status message
	GossipRate    *float64 `json:"gossip_bytes_per_node_s,omitempty"`
	HeartbeatRate *float64 `json:"heartbeat_bytes_per_node_s,omitempty"`
	// FalseUnreachable sums up Loss at 1 and 5 % as on TCP, where there should be none.
	FalseUnreachable *int          `json:"false_unreachable,omitempty"`
	Loss             []LossResult  `json:"loss,omitempty"`
	Frozen           *FrozenResult `json:"frozen,omitempty"`

	WallSeconds float64 `json:"wall_seconds"`
	RssMB       int     `json:"rss_mb"`
	Steps       uint64  `json:"steps"`
}

// ScaleParts are the measurements by name, in the order in which they run.
var ScaleParts = []string{"join", "quiet", "one", "twenty", "crash", "loss", "frozen"}

// MaxScaleNodes is the largest cluster of a scale run.
const MaxScaleNodes = membership.MaxMembers

// ErrScale is returned by Scale for a configuration that it cannot run, and for a cluster that did not get where the
// measurement needs it.
var ErrScale = errors.New("sim: scale")

// Scale runs the parts one after the other on one cluster.
func Scale(cfg ScaleConfig) (ScaleResult, error) {
	if cfg.Nodes < 2 || cfg.Nodes > MaxScaleNodes {
		return ScaleResult{}, fmt.Errorf("%w: %d nodes, must be from 2 to %d", ErrScale, cfg.Nodes, MaxScaleNodes)
	}
	for _, p := range cfg.Parts {
		if !slices.Contains(ScaleParts, p) {
			return ScaleResult{}, fmt.Errorf("%w: no part %q, there are %v", ErrScale, p, ScaleParts)
		}
	}
	if cfg.Hours == 0 {
		cfg.Hours = 1
	}
	if cfg.Hours < 0 || cfg.Hours > 1000 {
		return ScaleResult{}, fmt.Errorf("%w: %v hours, must be from 0 to 1000", ErrScale, cfg.Hours)
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = 10
	}
	began := time.Now()
	r := &scaleRun{cfg: cfg, out: ScaleResult{N: cfg.Nodes, Seed: cfg.Seed}}
	err := r.run()
	r.out.WallSeconds = time.Since(began).Seconds()
	r.out.RssMB = maxRSS()
	return r.out, err
}

// scaleRun is one run in progress.
type scaleRun struct {
	cfg ScaleConfig
	out ScaleResult
	c   *crowd
}

func (r *scaleRun) wants(part string) bool {
	return len(r.cfg.Parts) == 0 || slices.Contains(r.cfg.Parts, part)
}

func (r *scaleRun) say(format string, args ...any) {
	if r.cfg.Progress != nil {
		r.cfg.Progress(fmt.Sprintf(format, args...))
	}
}

func (r *scaleRun) run() error {
	if err := r.bulkJoin(); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{{"quiet", r.quiet}, {"one", r.joinOne}, {"twenty", r.joinTwenty}, {"crash", r.crashes},
		{"loss", r.lossy}, {"frozen", r.frozen}} {
		if !r.wants(part.name) {
			continue
		}
		r.say("%s at %v of virtual time", part.name, r.c.now.Round(time.Millisecond))
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	r.out.Steps += r.c.steps
	return nil
}

func seconds(d time.Duration) *float64 {
	s := float64(d.Milliseconds()) / 1000
	return &s
}
