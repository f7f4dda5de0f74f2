// The result of failover: seconds from the loss to the first answers, by case, with the bill.

package chaos

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// Case is one kind of loss.
type Case string

// The cases.
const (
	LoseOwner            Case = "owner"       // kill -9 of the owner of most shards that does not coordinate
	LoseCoordinator      Case = "coordinator" // kill -9 of the oldest, which owns as many shards as others do
	LoseBoth             Case = "both"        // both at once
	PauseOwner           Case = "paused"      // SIGSTOP of that owner until others own what it had, then SIGCONT
	LoseOwnerProof       Case = "owner-proof" // the same with kith.Config.Sharding.ProcessDeathIsProof
	LoseCoordinatorProof Case = "coordinator-proof"
	LoseBothProof        Case = "both-proof"
)

// Cases are all cases, in the order in which they are tried.
var Cases = []Case{LoseOwner, LoseCoordinator, LoseBoth, PauseOwner, LoseOwnerProof, LoseCoordinatorProof,
	LoseBothProof}

// ParseCases reads names of cases; none are all.
func ParseCases(names []string) (cases []Case, err error) {
	for _, n := range names {
		if !slices.Contains(Cases, Case(n)) {
			return nil, fmt.Errorf("no case %q; there are %v", n, Cases)
		}
		cases = append(cases, Case(n))
	}
	if len(cases) == 0 {
		return Cases, nil
	}
	return cases, nil
}

func (c Case) proof() bool {
	return c == LoseOwnerProof || c == LoseCoordinatorProof || c == LoseBothProof
}
func (c Case) owner() bool { return c != LoseCoordinator && c != LoseCoordinatorProof }
func (c Case) coordinator() bool {
	return c == LoseCoordinator || c == LoseCoordinatorProof || c == LoseBoth || c == LoseBothProof
}

// pickLosers returns the slots that a case hits: none when one of them hosts less than half of what it should, as the
// first node does before its shards have been spread. hosted is by slot.
func pickLosers(c Case, oldest int, hosted map[int]int) (who []int) {
	all := 0
	for _, n := range hosted { // a sum: no order
		all += n
	}
	few := func(i int) bool { return hosted[i] == 0 || 2*len(hosted)*hosted[i] < all }
	if c.coordinator() {
		who = append(who, oldest)
	}
	best := -1
	for i, n := range hosted { // of equals the first: no order
		if i != oldest && (best < 0 || n > hosted[best] || n == hosted[best] && i < best) {
			best = i
		}
	}
	if c.owner() && best >= 0 {
		who = append(who, best)
	}
	if slices.ContainsFunc(who, few) || c.owner() && best < 0 {
		return nil
	}
	return who
}

// boundProof is the bound on the slowest entity of all rounds with a proof of death, boundMore what is left for a home
// and an answer without. boundDefault holds for every case by default.
const (
	boundProof = 3 * time.Second
	boundMore  = time.Second

	boundDefault = 28 * time.Second
)

// boundWoke bounds what a paused owner may begin to handle after it woke, beside the next owner: what the batch in hand
// still held until it was noticed. One that goes on as if nothing had happened begins some forty in that time.
const boundWoke = 8

// bound returns how long the slowest entity may take where nothing changes for stable before the cluster decides. The
// silence of a paused owner must be noticed first. With the patience that five nodes have by default no case may take
// more than boundDefault: a silence that is noticed as late as can be leaves less than boundMore for the rest.
func (c Case) bound(stable time.Duration) time.Duration {
	if c.proof() {
		return boundProof
	}
	d := stable + takeoverFor(stable) + boundMore
	if c == PauseOwner {
		d += longestSilence
	}
	if stable == stableFor(5, 0) {
		return min(d, boundDefault)
	}
	return d
}

// outage is one loss as it went.
type outage struct {
	slots   []int
	senders []uint32
	at      time.Duration // of the signal
	took    map[uint16]time.Duration
	none    []uint16 // entities that nobody answered for
	bill    bill
	sums    sums
	verdict verdicts
	fenced  uint64 // writes that the store refused
	harmed  int    // crashes, second clusters, healthy members that were ended
}

// longest is how long the slowest entity took.
func (o *outage) longest() time.Duration {
	return slices.Max(append(slices.Collect(maps.Values(o.took)), 0)) // order does not show in a maximum
}

// violations counts what must not be, however long it took.
func (o *outage) violations() int {
	return max(0, o.verdict.Woke-boundWoke) + o.verdict.Double + o.verdict.Back + o.verdict.Twice + o.harmed +
		o.unexplained() + len(o.none)
}

// unexplained counts what is missing and did not end with a victim.
func (o *outage) unexplained() int { return o.sums.Unexplained + o.sums.By[onTheWay] }

// FailoverTimes are seconds from the signal to the first answer of an entity of the lost processes: the median of the
// rounds of the median over entities, and the slowest entity of all rounds. A case that was not run is absent.
type FailoverTimes struct {
	Owner               *float64 `json:"owner_s,omitempty"`
	OwnerMax            *float64 `json:"owner_max_s,omitempty"`
	OwnerProof          *float64 `json:"owner_proof_s,omitempty"`
	OwnerProofMax       *float64 `json:"owner_proof_max_s,omitempty"`
	Coordinator         *float64 `json:"coordinator_s,omitempty"`
	CoordinatorMax      *float64 `json:"coordinator_max_s,omitempty"`
	CoordinatorProof    *float64 `json:"coordinator_proof_s,omitempty"`
	CoordinatorProofMax *float64 `json:"coordinator_proof_max_s,omitempty"`
	Both                *float64 `json:"both_s,omitempty"`
	BothMax             *float64 `json:"both_max_s,omitempty"`
	BothProof           *float64 `json:"both_proof_s,omitempty"`
	BothProofMax        *float64 `json:"both_proof_max_s,omitempty"`
	Paused              *float64 `json:"paused_s,omitempty"`
	PausedMax           *float64 `json:"paused_max_s,omitempty"`
}

// FailoverResult is the last line of failover.
type FailoverResult struct {
	Nodes  int `json:"nodes"`
	Rounds int `json:"rounds"` // of each case
	// StableAfter is what was set of it, in seconds; zero: the default.
	StableAfter float64 `json:"stable_after_s,omitempty"`
	FailoverTimes
	Entities    int            `json:"entities"` // of lost processes, in all rounds
	Silent      int            `json:"silent"`   // of these, without any answer
	Accepted    int            `json:"accepted"` // tells and asks
	Lost        int            `json:"lost"`     // with a victim that had sent or owned it
	LostBy      map[cause]int  `json:"lost_by"`
	Unexplained int            `json:"lost_unexplained"`
	DoubleOwner int            `json:"double_owner"` // handlings by two at a time, or under an overtaken fence
	Twice       int            `json:"handled_twice"`
	Overrun     int            `json:"overrun"` // handlings in hand when their process was stopped, over after others'
	Fenced      int            `json:"fenced"`  // writes that the store refused
	Harmed      int            `json:"harmed"`  // crashes, second clusters, healthy members that were ended
	Bill        map[Case]*Bill `json:"bill"`
	WallTime    float64        `json:"wall_seconds"`

	found []error // of single rounds
}

// Bill is where the time of a case goes: seconds from the signal until each step, medians of the rounds.
type Bill struct {
	Steps map[stepName]float64 `json:"steps"`
	P50   []float64            `json:"p50_s"` // of each round, over entities
	Max   []float64            `json:"max_s"` // of each round
}

// add takes the rounds of a case.
func (r *FailoverResult) add(c Case, all []outage) {
	b := &Bill{Steps: map[stepName]float64{}}
	r.Bill[c] = b
	if r.LostBy == nil {
		r.LostBy = map[cause]int{}
	}
	times := map[stepName][]time.Duration{}
	var most time.Duration
	for i := range all {
		o := &all[i]
		for step, d := range o.bill { // a map into a map: no order
			times[step] = append(times[step], d)
		}
		b.P50 = append(b.P50, *inSeconds(o.bill[stepAnswered]))
		b.Max = append(b.Max, *inSeconds(o.longest()))
		most = max(most, o.longest())
		r.count(o)
		if n := o.verdict.Woke; n > boundWoke {
			r.found = append(r.found, fmt.Errorf("%s: %d handlings began when their process had stood still, more than %d",
				c, n, boundWoke))
		}
		if o.fenced > 0 && c != PauseOwner {
			r.found = append(r.found, fmt.Errorf("%s: the store refused %d writes, and no process stood still", c, o.fenced))
		}
	}
	for step, ds := range times { // a map into a map: no order
		b.Steps[step] = *inSeconds(median(ds))
	}
	typical, slowest := r.times(c)
	*typical, *slowest = inSeconds(median(times[stepAnswered])), inSeconds(most)
}

// count adds the account of a round.
func (r *FailoverResult) count(o *outage) {
	r.Entities += len(o.took) + len(o.none)
	r.Silent += len(o.none)
	r.Accepted += o.sums.Accepted
	r.Lost += o.sums.Lost
	for why, n := range o.sums.By { // sums: no order
		r.LostBy[why] += n
	}
	r.Unexplained += o.unexplained()
	r.DoubleOwner += o.verdict.Double + o.verdict.Back
	r.Twice += o.verdict.Twice
	r.Overrun += o.verdict.Overrun
	r.Fenced += int(o.fenced)
	r.Harmed += o.harmed
}

// times returns the fields of a case.
func (r *FailoverResult) times(c Case) (typical, slowest **float64) {
	t := &r.FailoverTimes
	switch c {
	case LoseOwner:
		return &t.Owner, &t.OwnerMax
	case LoseOwnerProof:
		return &t.OwnerProof, &t.OwnerProofMax
	case LoseCoordinator:
		return &t.Coordinator, &t.CoordinatorMax
	case LoseCoordinatorProof:
		return &t.CoordinatorProof, &t.CoordinatorProofMax
	case LoseBoth:
		return &t.Both, &t.BothMax
	case LoseBothProof:
		return &t.BothProof, &t.BothProofMax
	}
	return &t.Paused, &t.PausedMax
}

// faults returns what must not be of a cluster in which nothing changes for stable before it decides.
func (r *FailoverResult) faults(cases []Case, stable time.Duration) (all []error) {
	all = slices.Clone(r.found)
	for _, what := range []struct {
		n    int
		word string
	}{{r.DoubleOwner, "handlings beside another owner"}, {r.Unexplained, "messages lost that no victim took with it"},
		{r.Twice, "messages handled again"}, {r.Silent, "entities without an answer"},
		{r.Harmed, "crashes, second clusters, healthy members ended"}} {
		if what.n > 0 {
			all = append(all, fmt.Errorf("%d %s", what.n, what.word))
		}
	}
	for _, c := range cases {
		_, slowest := r.times(c)
		if most := c.bound(stable); *slowest != nil && **slowest > most.Seconds() {
			all = append(all, fmt.Errorf("%s: %.3f s, more than %v", c, **slowest, most))
		}
	}
	if r.Entities == 0 {
		all = append(all, errors.New("nothing was lost, so nothing was measured"))
	}
	return all
}

// Table writes the bill, for people.
func (r *FailoverResult) Table(w io.Writer) {
	fmt.Fprintf(w, "seconds from the loss until each step, medians of %d rounds, %d processes\n", r.Rounds, r.Nodes)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "case")
	for _, s := range stepNames {
		fmt.Fprintf(t, "\t%s", s)
	}
	fmt.Fprintln(t, "\tslowest")
	for _, c := range slices.SortedFunc(maps.Keys(r.Bill), func(a, b Case) int {
		return slices.Index(Cases, a) - slices.Index(Cases, b)
	}) {
		fmt.Fprint(t, c)
		for _, s := range stepNames {
			if d, some := r.Bill[c].Steps[s]; some {
				fmt.Fprintf(t, "\t%.2f", d)
			} else {
				fmt.Fprint(t, "\t-")
			}
		}
		fmt.Fprintf(t, "\t%.2f\n", slices.Max(r.Bill[c].Max))
	}
	_ = t.Flush()
}
