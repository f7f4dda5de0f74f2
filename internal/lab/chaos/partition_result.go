// The result of partition: seconds from the cut until each step, by case, and what must not be.

package chaos

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// PartitionCase says which nodes are cut off.
type PartitionCase string

// The cases. The smaller side is as large as one that loses can be, two of five.
const (
	CutOwners           PartitionCase = "owners"      // the owners of most shards, the coordinator not among them
	CutCoordinator      PartitionCase = "coordinator" // the coordinator, and the owners of most shards
	CutOwnersProof      PartitionCase = "owners-proof"
	CutCoordinatorProof PartitionCase = "coordinator-proof" // both with kith.Config.Sharding.ProcessDeathIsProof
)

// PartitionCases are all cases, in the order in which they are tried.
var PartitionCases = []PartitionCase{CutOwners, CutCoordinator, CutOwnersProof, CutCoordinatorProof}

// ParsePartitionCases reads names of cases; none are all.
func ParsePartitionCases(names []string) ([]PartitionCase, error) {
	return parse(names, PartitionCases)
}

func (c PartitionCase) proof() bool       { return c == CutOwnersProof || c == CutCoordinatorProof }
func (c PartitionCase) coordinator() bool { return c == CutCoordinator || c == CutCoordinatorProof }

// pickSides divides the slots: fewer than half of them lose; none do when one of them would that hosts no shard. hosted
// is by slot.
func pickSides(c PartitionCase, oldest int, hosted map[int]int, nodes int) (losing, winning []int) {
	var order []int
	for i := range nodes {
		if i != oldest {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return hosted[b] - hosted[a] })
	if c.coordinator() {
		order = slices.Insert(order, 0, oldest)
	} else {
		order = append(order, oldest)
	}
	losing, winning = order[:(nodes-1)/2], order[(nodes-1)/2:]
	if slices.ContainsFunc(losing, func(i int) bool { return hosted[i] == 0 }) {
		return nil, nil
	}
	slices.Sort(losing)
	slices.Sort(winning)
	return losing, winning
}

// The steps of a partition, from the cut on, in their usual order; the last one from the healing of the cut on.
const (
	stepLosingSees     stepName = "losing_unreachable"  // the losing side holds all of the other one unreachable
	stepWinningSees    stepName = "winning_unreachable" // and the other way round
	stepLosingDecides  stepName = "losing_decided"      // its first resolver has decided
	stepWinningDecides stepName = "winning_decided"
	stepLastHandled    stepName = "losing_last_handled"   // its last handler returned
	stepEnded          stepName = "losing_ended"          // its last process ended
	stepFirstHandled   stepName = "winning_first_handled" // the other side handles the first message for an entity of it
	stepAllHandled     stepName = "winning_all_handled"   // and has handled one for each of these
	stepRejoined       stepName = "rejoined"              // all nodes are Up in one cluster, everything answers everybody
)

var partSteps = []stepName{stepLosingSees, stepWinningSees, stepLosingDecides, stepWinningDecides, stepLastHandled,
	stepEnded, stepAllocated, stepFirstHandled, stepAllHandled, stepRejoined}

// codeRunning stands for the exit code of a process that has not ended.
const codeRunning = -2

// parted is one partition as it went.
type parted struct {
	net             string
	losing, winning []int    // slots
	gone            []uint32 // processes of the losing side
	lives           []*life  // the same
	at              time.Duration
	steps           map[stepName]time.Duration
	gaps            []gap
	exits           map[int]int
	asked           *operator
	cost
}

// overlaps counts the entities that began on one side before they had stopped on the other.
func (p *parted) overlaps() (n int) {
	for _, g := range p.gaps {
		if g.started <= g.stopped {
			n++
		}
	}
	return n
}

// wrongExits counts losing processes that ended otherwise than a cluster ends its members, or not at all.
func (p *parted) wrongExits() (n int) {
	for code, times := range p.exits { // a sum: no order
		if code != codeEnded {
			n += times
		}
	}
	return n
}

// violations counts what must not be.
func (p *parted) violations() int {
	return p.cost.violations() + p.overlaps() + p.wrongExits() + p.asked.sums.Wrong + len(p.mute())
}

// mute names the sides of which no node has named its decision.
func (p *parted) mute() (all []string) {
	if p.asked.sums.Told.Explain+p.asked.sums.Told.Replay == 0 {
		all = append(all, "no node of the losing side named its decision")
	}
	if p.asked.sums.Living == 0 {
		all = append(all, "no node of the side that lives named its decision")
	}
	return all
}

// gapTimes returns the gaps in order.
func (p *parted) gapTimes() (all []time.Duration) {
	for _, g := range p.gaps {
		all = append(all, g.started-g.stopped)
	}
	slices.Sort(all)
	return all
}

// String says in a line what was measured.
func (p *parted) String() string {
	gaps := p.gapTimes()
	if len(gaps) == 0 {
		return "no entity has changed sides"
	}
	return fmt.Sprintf("the losing side stopped after %.3f s, the other began after %.3f s; gaps of %d entities: %.3f to "+
		"%.3f s", p.steps[stepLastHandled].Seconds(), p.steps[stepFirstHandled].Seconds(), len(gaps), gaps[0].Seconds(),
		gaps[len(gaps)-1].Seconds())
}

// Spread is seconds over rounds, or over entities.
type Spread struct {
	Min float64 `json:"min_s"`
	P50 float64 `json:"p50_s"`
	Max float64 `json:"max_s"`
}

// spreadOf returns that of some times, at least one.
func spreadOf(all []time.Duration) Spread {
	return Spread{*inSeconds(slices.Min(all)), *inSeconds(median(all)), *inSeconds(slices.Max(all))}
}

// PartitionTimes is one case.
type PartitionTimes struct {
	Steps map[stepName]Spread `json:"steps"` // over rounds
	Gap   *Spread             `json:"gap"`   // over entities of all rounds
	steps map[stepName][]time.Duration
	gaps  []time.Duration
}

// PartitionResult is the last line of partition.
type PartitionResult struct {
	Net         string  `json:"net"`
	Nodes       int     `json:"nodes"`
	Losing      int     `json:"losing_nodes"`
	Rounds      int     `json:"rounds"` // of each case
	StableAfter float64 `json:"stable_after_s,omitempty"`
	Toll
	Overlaps   int         `json:"overlaps"` // entities begun elsewhere before they had stopped
	Exits      map[int]int `json:"losing_exits"`
	WrongExits int         `json:"wrong_exits"`
	Answers
	Cases    map[PartitionCase]*PartitionTimes `json:"cases"`
	WallTime float64                           `json:"wall_seconds"`

	wrong []string
	mute  []string
}

func newPartitionResult(nodes, rounds int, stableAfter time.Duration) *PartitionResult {
	return &PartitionResult{Nodes: nodes, Losing: (nodes - 1) / 2, Rounds: rounds,
		StableAfter: stableAfter.Seconds(), Exits: map[int]int{},
		Cases: map[PartitionCase]*PartitionTimes{}}
}

// add takes a round of a case.
func (r *PartitionResult) add(c PartitionCase, p *parted) {
	t := r.Cases[c]
	if t == nil {
		t = &PartitionTimes{Steps: map[stepName]Spread{}, steps: map[stepName][]time.Duration{}}
		r.Cases[c] = t
	}
	for step, d := range p.steps { // a map into a map: no order
		t.steps[step] = append(t.steps[step], d)
		t.Steps[step] = spreadOf(t.steps[step])
	}
	if t.gaps = append(t.gaps, p.gapTimes()...); len(t.gaps) > 0 {
		s := spreadOf(t.gaps)
		t.Gap = &s
	}
	r.Net = p.net
	r.Toll.add(&p.cost, len(p.gaps))
	r.Overlaps += p.overlaps()
	for code, n := range p.exits { // sums: no order
		r.Exits[code] += n
	}
	r.WrongExits += p.wrongExits()
	r.Answers.add(p.asked.sums)
	r.wrong = append(r.wrong, p.asked.faults...)
	r.mute = append(r.mute, p.mute()...)
}

// faults returns what must not be.
func (r *PartitionResult) faults() (all cli.Faults) {
	all = r.Toll.faults("that the side that lives never handled", "the losing side owned nothing")
	all.Must(r.Overlaps == 0, "%d entities began before they had stopped on the losing side", r.Overlaps)
	all.Must(r.WrongExits == 0, "%d losing processes did not end with exit code %d", r.WrongExits, codeEnded)
	for _, w := range slices.Concat(r.wrong, r.mute) {
		all = append(all, errors.New(w))
	}
	more := r.Wrong - len(r.wrong)
	all.Must(more <= 0, "%d more answers are not what they should be", more)
	all.Must(r.Late == 0 || r.StableAfter != 0, // the default is time enough
		"%d verbs came to no answer before the node had decided", r.Late)
	return all
}

// Table writes the times, for people.
func (r *PartitionResult) Table(w io.Writer) {
	fmt.Fprintf(w, "seconds from the cut until each step, median and slowest of %d rounds; %d of %d processes cut off\n",
		r.Rounds, r.Losing, r.Nodes)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	cases := slices.SortedFunc(maps.Keys(r.Cases), func(a, b PartitionCase) int {
		return slices.Index(PartitionCases, a) - slices.Index(PartitionCases, b)
	})
	fmt.Fprint(t, "step")
	for _, c := range cases {
		fmt.Fprintf(t, "\t%s", c)
	}
	for _, step := range partSteps {
		fmt.Fprintf(t, "\n%s", step)
		for _, c := range cases {
			if s, some := r.Cases[c].Steps[step]; some {
				fmt.Fprintf(t, "\t%.2f  %.2f", s.P50, s.Max)
			} else {
				fmt.Fprint(t, "\t-")
			}
		}
	}
	fmt.Fprint(t, "\ngap (least, median)")
	for _, c := range cases {
		if g := r.Cases[c].Gap; g != nil {
			fmt.Fprintf(t, "\t%.2f  %.2f", g.Min, g.P50)
		} else {
			fmt.Fprint(t, "\t-")
		}
	}
	fmt.Fprintln(t)
	_ = t.Flush()
}
