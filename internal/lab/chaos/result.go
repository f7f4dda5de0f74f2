// The result: what a run found, as the last line and as a table.

package chaos

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/leasestore"
)

// Proofs is what frees the shards of lost owners, beside time.
type Proofs struct {
	Sessions leasestore.Kind `json:"sessions,omitempty"`     // the store of the nodes' sessions; empty: they hold none
	Seats    int             `json:"tenure_seats,omitempty"` // that vouch for nodes with tenures; zero: they have none
}

// Result is the last line of a run. What was not measured is absent.
type Result struct {
	Seed  uint64 `json:"seed"`
	Nodes int    `json:"nodes"`
	Net   string `json:"net"`
	Proofs
	Rounds      int           `json:"rounds"`
	Faults      int           `json:"faults"`
	Accepted    int           `json:"accepted"` // tells and asks
	Handled     int           `json:"handled"`
	Reported    int           `json:"reported"` // to their sender, and not handled
	Lost        int           `json:"lost"`
	LostBy      map[cause]int `json:"lost_by"`    // what took those that a fault explains
	Difference  int           `json:"difference"` // lost, and no process ended that it came from or went to
	Unexplained int           `json:"lost_unexplained"`
	Double      int           `json:"double_handled"`
	Back        int           `json:"fences_back"`
	Panics      int           `json:"panics"`
	Twins       int           `json:"twins"`
	Downed      int           `json:"healthy_downed"`
	Unwell      int           `json:"not_well"`      // rounds that did not come right within the bound
	Twice       int           `json:"handled_twice"` // messages
	Reordered   int           `json:"reordered"`
	Overrun     int           `json:"overrun"` // handlings in hand when their process was stopped, over after others'
	Over        int           `json:"reported_too"`
	Writes      uint64        `json:"store_writes"`
	Refused     uint64        `json:"store_refused"`
	Excused     int           `json:"downed_excused"` // ended while the machine stood still

	GapP50   *float64 `json:"gap_p50_s,omitempty"` // of the rounds: the longest time without an answer in each
	GapMax   *float64 `json:"gap_max_s,omitempty"`
	WellMax  *float64 `json:"well_max_s,omitempty"` // from the last fault until all was well
	WallTime float64  `json:"wall_seconds"`

	// Of faults in the middle of moves: by phase, fault and participant; those that came into another phase.
	Moves  []MoveCell `json:"moves,omitempty"`
	Missed int        `json:"moves_missed,omitempty"`

	Exits map[string]int `json:"exits,omitempty"`
	Kinds []ByKind       `json:"by_fault,omitempty"`
}

// ByKind is what rounds of one kind of fault did; a round of two faults counts with its first.
type ByKind struct {
	Kind        Kind     `json:"kind"`
	Rounds      int      `json:"rounds"`
	GapP50      *float64 `json:"gap_p50_s,omitempty"`
	GapMax      *float64 `json:"gap_max_s,omitempty"`
	WellMax     *float64 `json:"well_max_s,omitempty"`
	Accepted    int      `json:"accepted"`
	Lost        int      `json:"lost"`
	Unexplained int      `json:"lost_unexplained"`
}

// violations counts what must not be. Where faults come into moves alone, a message is lost with a process or not at
// all: a fault on the way is no excuse.
func (r *Result) violations(moves bool) int {
	lost := r.Unexplained
	if moves {
		lost = r.Difference
	}
	return lost + r.Double + r.Back + r.Panics + r.Twins + r.Downed + r.Unwell + r.Twice
}

// parse reads names of cases; none are all.
func parse[C ~string](names []string, all []C) (cases []C, err error) {
	for _, n := range names {
		if !slices.Contains(all, C(n)) {
			return nil, fmt.Errorf("no case %q; there are %v", n, all)
		}
		cases = append(cases, C(n))
	}
	if len(cases) == 0 {
		return all, nil
	}
	return cases, nil
}

// cost is what one loss, or one cut, has cost beside time.
type cost struct {
	sums    sums
	verdict verdicts
	silent  []uint16 // entities that nobody answered for, or handled
	fenced  uint64   // writes that the store refused
	harmed  int      // crashes, second clusters, healthy members that were ended
}

// unexplained counts what is missing and did not end with a process that was lost.
func (c *cost) unexplained() int { return c.sums.Unexplained + c.sums.By[onTheWay] }

// violations counts what must not be.
func (c *cost) violations() int {
	return c.verdict.Double + c.verdict.Back + c.verdict.Twice + c.harmed + c.unexplained() + len(c.silent)
}

// Toll is what all of them have cost.
type Toll struct {
	Entities    int           `json:"entities"` // of lost processes, in all rounds
	Silent      int           `json:"silent"`   // of these, without any answer, or never handled elsewhere
	Accepted    int           `json:"accepted"` // tells and asks
	Lost        int           `json:"lost"`     // with a process that was lost and had sent or owned it
	LostBy      map[cause]int `json:"lost_by"`
	Unexplained int           `json:"lost_unexplained"`
	DoubleOwner int           `json:"double_owner"` // handlings by two at a time, or under an overtaken fence
	Twice       int           `json:"handled_twice"`
	Fenced      int           `json:"fenced"` // writes that the store refused
	Harmed      int           `json:"harmed"` // crashes, second clusters, healthy members that were ended
}

// add takes one of them; so many entities were not silent.
func (t *Toll) add(c *cost, entities int) {
	if t.LostBy == nil {
		t.LostBy = map[cause]int{}
	}
	t.Entities += entities + len(c.silent)
	t.Silent += len(c.silent)
	t.Accepted += c.sums.Accepted
	t.Lost += c.sums.Lost
	for why, n := range c.sums.By { // sums: no order
		t.LostBy[why] += n
	}
	t.Unexplained += c.unexplained()
	t.DoubleOwner += c.verdict.Double + c.verdict.Back
	t.Twice += c.verdict.Twice
	t.Fenced += int(c.fenced)
	t.Harmed += c.harmed
}

// faults returns what must not be of it, with the words for entities that were silent, and for none at all.
func (t *Toll) faults(nobody, none string) (all cli.Faults) {
	all.Must(t.DoubleOwner == 0, "%d handlings beside another owner", t.DoubleOwner)
	all.Must(t.Unexplained == 0, "%d messages lost that no lost process took with it", t.Unexplained)
	all.Must(t.Twice == 0, "%d messages handled again", t.Twice)
	all.Must(t.Silent == 0, "%d entities %s", t.Silent, nobody)
	all.Must(t.Harmed == 0, "%d crashes, second clusters, members that must live and ended", t.Harmed)
	all.Must(t.Entities > 0, "%s, so nothing was measured", none)
	return all
}

// inSeconds rounds to milliseconds.
func inSeconds(d time.Duration) *float64 {
	s := math.Round(d.Seconds()*1000) / 1000
	return &s
}

// result makes the account. All processes have ended.
func (h *harness) result() *Result {
	h.tell(h.book.read(h.clock.Now(), true))
	h.mu.Lock()
	defer h.mu.Unlock()
	t, v := h.book.total(h.rounds), h.book.rule.verdict
	r := &Result{Seed: h.cfg.Seed, Nodes: h.cfg.Nodes, Net: kindOf(h.net),
		Proofs: Proofs{h.cfg.Sessions.Store, h.cfg.Sessions.Tenure.Voters},
		Rounds: len(h.rounds), Accepted: t.Accepted, Handled: t.Handled, Reported: t.Reported, Lost: t.Lost, LostBy: t.By,
		Difference:  t.Unexplained + t.By[onTheWay],
		Unexplained: t.Unexplained, Double: v.Double, Back: v.Back,
		Twice: v.Twice, Reordered: v.Reordered, Overrun: v.Overrun, Over: t.Over,
		Panics: h.found.panics, Twins: h.found.twins, Downed: h.found.downed, Unwell: h.found.unwell,
		Excused: h.found.excused, Exits: h.found.exits, WallTime: *inSeconds(h.clock.Now())}
	r.Writes, r.Refused = h.store.counts()
	r.Moves, r.Missed = countMoves(h.found.moves, h.book.moves)
	for i := range h.rounds {
		r.Faults += h.rounds[i].came
	}
	for _, k := range append([]Kind{""}, Named()...) {
		r.count(k, h.rounds)
	}
	return r
}

// count adds what rounds of a kind did, and of all for the empty one.
func (r *Result) count(k Kind, rounds []past) {
	var gaps []time.Duration
	var healed time.Duration
	by := ByKind{Kind: k}
	for i := range rounds {
		p := &rounds[i]
		if k != "" && p.Round.Faults[0].Kind != k {
			continue
		}
		by.Rounds++
		by.Accepted, by.Lost, by.Unexplained = by.Accepted+p.accepted, by.Lost+p.lost, by.Unexplained+p.unexplains
		if p.measured {
			gaps = append(gaps, p.gap)
			healed = max(healed, p.healed)
		}
	}
	if len(gaps) > 0 {
		by.GapP50, by.GapMax, by.WellMax = inSeconds(median(gaps)), inSeconds(slices.Max(gaps)), inSeconds(healed)
	}
	switch {
	case k == "":
		r.GapP50, r.GapMax, r.WellMax = by.GapP50, by.GapMax, by.WellMax
	case by.Rounds > 0:
		r.Kinds = append(r.Kinds, by)
	}
}

// Table writes what each kind of fault did, for people.
func (r *Result) Table(w io.Writer) {
	fmt.Fprintf(w, "chaos on %d processes, seed %d, faults carried by %s\n", r.Nodes, r.Seed, r.Net)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\trounds\tno answer, median s\tmost s\twell after, most s\taccepted\tlost\tunexplained")
	show := func(s *float64) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f", *s)
	}
	for _, k := range r.Kinds {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%d\n", k.Kind, k.Rounds, show(k.GapP50), show(k.GapMax),
			show(k.WellMax), k.Accepted, k.Lost, k.Unexplained)
	}
	_ = t.Flush()
}
