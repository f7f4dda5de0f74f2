// What scaling out is made of, and its result: the last line, and what must hold for it.

package rolling

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// ScaleConfig says what scales out.
type ScaleConfig struct {
	Config               // Nodes are those at the end; Rounds, Together, Pause, Stall, Link, TLS and State do not count
	From   int           // nodes at the begin
	Steady time.Duration // how long is measured before the others join
	Even   time.Duration // shards must be even so long after the first of the joining processes was started
	Times  int           // asks may take so many times as long meanwhile, at p99
	Fresh  int           // nodes of the fresh start; 0: none is measured
	Apart  bool          // the nodes join while nothing moves, and then the shards move
	Within time.Duration // so long after the last of them is Up shards must be within a tenth of the mean
}

// ErrMissed is wrapped by the errors of ScaleOut that say what must not be.
var ErrMissed = errors.New("scaling out missed its bounds")

// Validate returns all faults joined, or nil.
func (c *ScaleConfig) Validate() error {
	c.Rounds, c.Together = 1, 1
	errs := cli.Faults{c.Config.Validate()}
	errs.Must(c.From >= 1 && c.From < c.Nodes, "--from must be at least 1 and below --nodes")
	errs.Must(c.Steady >= 100*time.Millisecond && c.Steady <= time.Hour, "--steady must be 100ms to 1h")
	errs.Must(c.Even > 0, "--even must be more than 0")
	errs.Must(c.Times >= 1, "--times must be at least 1")
	errs.Must(c.Fresh == 0 || c.Fresh >= 2 && c.Fresh <= 16, "--fresh must be 0, or 2 to 16")
	errs.Must(c.Within > 0, "--within must be more than 0")
	return errs.Err()
}

// Scaled is the last line. Times are in the unit that their name ends with; those of the joining nodes count from when
// the first of their processes was started. With ScaleConfig.Apart Even and what was measured while scaling count from
// when shards were let to move.
type Scaled struct {
	From        int     `json:"from"`
	Nodes       int     `json:"nodes"`
	Entities    int     `json:"entities"`
	Shards      uint32  `json:"shards"`
	Used        int     `json:"used_shards"` // to which something is sent, so that they live somewhere
	Rate        float64 `json:"rate"`        // messages a second, asks among them
	Up          float64 `json:"up_s"`        // until every process saw all of them Up
	Even        float64 `json:"even_s"`      // until no node had two shards more than another
	Hosted      []int   `json:"shards_per_node"`
	Moves       int     `json:"moves"`
	Needed      int     `json:"moves_needed"`
	MovedTwice  int     `json:"moved_twice"` // shards
	Aborted     int     `json:"aborted"`
	SteadyP99   float64 `json:"ask_steady_p99_ms"`
	ScalingP99  float64 `json:"ask_scaling_p99_ms"` // from the start of the processes until it was even
	ScalingMax  float64 `json:"ask_scaling_max_ms"`
	AfterP99    float64 `json:"ask_after_p99_ms"` // of all nodes, as long as before
	Times       float64 `json:"p99_times"`        // scaling as a multiple of steady
	AskErrors   uint64  `json:"ask_errors"`
	SteadyLate  float64 `json:"machine_steady_late_p99_ms"`  // of naps of a process that has nothing to do
	ScalingLate float64 `json:"machine_scaling_late_p99_ms"` // likewise
	*Apart
	ledger.Tally
	Fresh *Fresh `json:"fresh,omitempty"`
}

// Fresh is a start of many nodes at once, with shards that are kept alive. Times count from when the last was Up.
type Fresh struct {
	Nodes   int      `json:"nodes"`
	Shards  uint32   `json:"shards"`
	Workers int      `json:"daemons"`
	Form    float64  `json:"form_s"`              // from the first process until every one saw all Up
	Even    *float64 `json:"even_s"`              // negative: before that; null: not within the time
	Hosted  []int    `json:"shards_per_node"`     // when the time was over
	Kept    []int    `json:"daemons_per_node"`    // likewise
	Off     float64  `json:"off_percent"`         // the most that any of them is off the mean
	Most    int      `json:"most_shards_at_once"` // that one node ever had
	Moves   int      `json:"moves"`
}

// Apart is what asks took while the nodes joined and nothing moved.
type Apart struct {
	Joining float64 `json:"ask_joining_p99_ms"` // from the start of the processes until every one saw all Up
	Joined  float64 `json:"ask_joined_p99_ms"`  // then, as long as before
}

// used returns how many shards have an entity.
func (c *ScaleConfig) used() int {
	all := map[kith.ShardID]bool{}
	for i := range c.Entities {
		all[kith.ShardOf(entityID(i), c.Shards)] = true
	}
	return len(all)
}

// moved makes the figures of the moves.
func (r *Scaled) moved(facts []fact, from int) {
	for _, n := range r.Hosted[from:] {
		r.Needed += n
	}
	_, r.Moves, r.Aborted = phasesOf(facts)
	times := map[kith.ShardID]int{}
	for _, f := range facts {
		if f.What != kith.MoveDone {
			continue
		}
		if times[f.Shard]++; times[f.Shard] == 2 {
			r.MovedTwice++
		}
	}
}

func p99(h *hdrhistogram.Histogram) float64 { return millis(time.Duration(h.ValueAtQuantile(99))) }

// off returns by how many percent of the mean the shards of any node are off it.
func off(hosted []int, shards int) (most float64) {
	mean := float64(shards) / float64(len(hosted))
	for _, n := range hosted {
		most = max(most, 100*(float64(n)-mean)/mean, 100*(mean-float64(n))/mean)
	}
	return most
}

// verdict names what must not be; nil for nothing.
func (r *Scaled) verdict(s *ScaleConfig) error {
	var errs cli.Faults
	errs.Must(r.Even <= s.Even.Seconds(), "even after %.2f s, later than %v", r.Even, s.Even)
	errs.Must(r.Times <= float64(s.Times), "asks took %.2f ms at p99 meanwhile, more than %d times %.2f ms (an idle "+
		"process was late by %.2f ms at p99, and by %.2f ms before)", r.ScalingP99, s.Times, r.SteadyP99, r.ScalingLate,
		r.SteadyLate)
	for _, f := range append(r.Faults(), ledger.Fault{N: r.AskErrors, What: "asks without an answer"},
		ledger.Fault{N: uint64(r.MovedTwice), What: "shards moved twice"}) {
		errs.Must(f.N == 0, "%d %s", f.N, f.What)
	}
	if f := r.Fresh; f != nil {
		errs.Must(f.Off <= 10, "%v after the fresh start shards are %.0f percent off the mean: %v, and %v of daemons",
			s.Within, f.Off, f.Hosted, f.Kept)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMissed, errs.Err())
}
