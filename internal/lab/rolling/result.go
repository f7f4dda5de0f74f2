// The result: the last line, and what must hold for it.

package rolling

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// Result is the last line. Times are in the unit that their name ends with.
type Result struct {
	Nodes         int     `json:"nodes"`
	Restarts      int     `json:"restarts"`
	Coordinators  int     `json:"coordinator_restarts"` // of them, of the process that coordinated
	Entities      int     `json:"entities"`
	Shards        uint32  `json:"shards"`
	Seconds       float64 `json:"seconds"`        // under load
	Rate          float64 `json:"rate"`           // messages a second, asks among them
	HealthyDowned int     `json:"healthy_downed"` // members that were downed, none of which had died
	ledger.Tally
	*States // nil where there are none
	AskTimes
	MoveTimes
	RestartTimes
	LateP999 float64 `json:"machine_late_p999_ms"` // of naps of a process that has nothing to do
	LateMax  float64 `json:"machine_late_max_ms"`
}

// AskTimes is what became of the asks, and how long they took from when they were due.
type AskTimes struct {
	Asks      uint64  `json:"asks"` // answered
	AskErrors uint64  `json:"ask_errors"`
	AskP50    float64 `json:"ask_p50_ms"`
	AskP99    float64 `json:"ask_p99_ms"`
	AskP999   float64 `json:"ask_p999_ms"`
	AskMax    float64 `json:"ask_max_ms"`
}

// MoveTimes is how long shards were on the move. Times are absent where nothing moved.
type MoveTimes struct {
	Moves    int     `json:"moves"`
	Aborted  int     `json:"moves_given_up"`
	MoveP50  float64 `json:"move_p50_ms,omitempty"`
	MoveMax  float64 `json:"move_max_ms,omitempty"`
	MarkMax  float64 `json:"move_mark_max_ms,omitempty"`
	StopMax  float64 `json:"move_stop_max_ms,omitempty"`
	StartMax float64 `json:"move_start_max_ms,omitempty"`
}

// RestartTimes is how long a node took to leave, and then until all saw the next one Up.
type RestartTimes struct {
	LeaveP50 float64 `json:"leave_p50_s"`
	LeaveMax float64 `json:"leave_max_s"`
	JoinP50  float64 `json:"join_p50_s"`
	JoinMax  float64 `json:"join_max_s"`
}

// ErrFailed is returned when something is lost, reordered, duplicated or unanswered, or takes too long.
var ErrFailed = errors.New("the rolling restart was noticed")

// millis rounds to hundredths of a millisecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()/10) / 100 }

func (r *Result) messages(t ledger.Tally) {
	r.Tally = t
	r.Rate = float64(int64(float64(t.Sent+r.Asks+r.AskErrors) / max(r.Seconds, 0.001)))
}

func (r *Result) asks(took *hdrhistogram.Histogram, failed uint64) {
	at := func(q float64) float64 { return millis(time.Duration(took.ValueAtQuantile(q))) }
	r.Asks, r.AskErrors = uint64(took.TotalCount()), failed
	r.AskP50, r.AskP99, r.AskP999, r.AskMax = at(50), at(99), at(99.9), millis(time.Duration(took.Max()))
}

func (r *Result) late(by *hdrhistogram.Histogram) {
	r.LateP999 = millis(time.Duration(by.ValueAtQuantile(99.9)))
	r.LateMax = millis(time.Duration(by.Max()))
}

func (r *Result) moves(list []fact) {
	var p phases
	p, r.Moves, r.Aborted = phasesOf(list)
	r.MoveP50, r.MoveMax = millis(quantile(p.whole, 500)), millis(quantile(p.whole, 1000))
	r.MarkMax, r.StopMax = millis(quantile(p.mark, 1000)), millis(quantile(p.stop, 1000))
	r.StartMax = millis(quantile(p.start, 1000))
}

func (r *Result) restarts(leaves, joins []time.Duration) {
	at := func(list []time.Duration, of1000 int) float64 {
		return float64(quantile(list, of1000).Milliseconds()) / 1000
	}
	r.LeaveP50, r.LeaveMax = at(leaves, 500), at(leaves, 1000)
	r.JoinP50, r.JoinMax = at(joins, 500), at(joins, 1000)
}

// verdict names what must not be; nil for nothing.
func (r *Result) verdict(rounds int, bound time.Duration) error {
	var errs cli.Faults
	faults := append(r.Faults(), ledger.Fault{N: r.AskErrors, What: "asks without an answer"},
		ledger.Fault{N: uint64(r.HealthyDowned), What: "healthy members downed"})
	if s := r.States; s != nil {
		faults = append(faults, ledger.Fault{N: s.StatesLost, What: "states lost"},
			ledger.Fault{N: s.StatesOlder, What: "states other than the last instance had"})
	}
	for _, f := range faults {
		errs.Must(f.N == 0, "%d %s", f.N, f.What)
	}
	errs.Must(r.AskP999 <= millis(bound), "asks took %.2f ms at p99.9, more than %v (an idle process was late by %.2f ms "+
		"at p99.9, by %.2f ms at most)", r.AskP999, bound, r.LateP999, r.LateMax)
	errs.Must(r.Restarts >= rounds, "interrupted after %d of %d restarts", r.Restarts, rounds)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrFailed, errs.Err())
}
