// The result of failover: seconds from the loss to the first answers, by case, with the bill.

package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
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
	RestartOwner         Case = "restart" // kill -9 of the owner, which starts again at its address at once
	RestartCoordinator   Case = "restart-coordinator"
	RestartUnproven      Case = "restart-unproven" // of the owner, with kith.Config.Sharding.NoLockProof
)

// Cases are all cases, in the order in which they are tried.
var Cases = []Case{LoseOwner, LoseCoordinator, LoseBoth, PauseOwner, LoseOwnerProof, LoseCoordinatorProof,
	LoseBothProof, RestartOwner, RestartCoordinator, RestartUnproven}

// ParseCases reads names of cases; none are all.
func ParseCases(names []string) ([]Case, error) { return parse(names, Cases) }

func (c Case) proof() bool {
	return c == LoseOwnerProof || c == LoseCoordinatorProof || c == LoseBothProof
}
func (c Case) owner() bool {
	return c != LoseCoordinator && c != LoseCoordinatorProof && c != RestartCoordinator
}

// restarts reports whether what is killed starts again at its address: then its lock proves it dead.
func (c Case) restarts() bool {
	return c == RestartOwner || c == RestartCoordinator || c == RestartUnproven
}
func (c Case) coordinator() bool {
	return c == LoseCoordinator || c == LoseCoordinatorProof || c == LoseBoth || c == LoseBothProof ||
		c == RestartCoordinator
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

// bound returns how long the slowest entity may take in a cluster of that pace. The silence of a paused owner must be
// noticed first. With the pace that five nodes have by default no case may take more than boundDefault: a silence that
// is noticed as late as can be leaves less than boundMore for the rest.
func (c Case) bound(p pace) time.Duration {
	if c.proof() || c.restarts() && c != RestartUnproven {
		return boundProof
	}
	d := p.stable + p.takeover + boundMore
	if c == PauseOwner {
		d += p.silence
	}
	if p == paceOf(5, cluster.PatienceNormal, 0) {
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
	bill    breakdown
	cost
}

// longest is how long the slowest entity took.
func (o *outage) longest() time.Duration {
	return slices.Max(append(slices.Collect(maps.Values(o.took)), 0)) // order does not show in a maximum
}

// violations counts what must not be, however long it took.
func (o *outage) violations() int {
	return max(0, o.verdict.Woke-boundWoke) + o.cost.violations()
}

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
	Restart             *float64 `json:"restart_s,omitempty"`
	RestartMax          *float64 `json:"restart_max_s,omitempty"`
	// RestartCoordinator and RestartUnproven are the same of the coordinator, and without the proof.
	RestartCoordinator    *float64 `json:"restart_coordinator_s,omitempty"`
	RestartCoordinatorMax *float64 `json:"restart_coordinator_max_s,omitempty"`
	RestartUnproven       *float64 `json:"restart_unproven_s,omitempty"`
	RestartUnprovenMax    *float64 `json:"restart_unproven_max_s,omitempty"`
}

// FailoverResult is the last line of failover.
type FailoverResult struct {
	Nodes  int `json:"nodes"`
	Rounds int `json:"rounds"` // of each case
	// StableAfter is what was set of it, in seconds; zero: the default.
	StableAfter float64 `json:"stable_after_s,omitempty"`
	// Patience is the preset that the nodes had.
	Patience cluster.Patience `json:"patience"`
	FailoverTimes
	Toll
	Overrun  int            `json:"overrun"` // handlings in hand when their process was stopped, over after others'
	Bill     map[Case]*Bill `json:"bill"`
	WallTime float64        `json:"wall_seconds"`

	found cli.Faults // of single rounds
}

// Bill is where the time of a case goes: seconds from the signal until each step, medians of the rounds.
type Bill struct {
	Steps map[stepName]float64 `json:"steps"`
	P50   []float64            `json:"p50_s"` // of each round, over entities
	Max   []float64            `json:"max_s"` // of each round

	times map[stepName][]time.Duration
	most  time.Duration
}

// add takes a round of a case.
func (r *FailoverResult) add(c Case, o *outage) {
	b := r.Bill[c]
	if b == nil {
		b = &Bill{Steps: map[stepName]float64{}, times: map[stepName][]time.Duration{}}
		r.Bill[c] = b
	}
	for step, d := range o.bill { // a map into a map: no order
		b.times[step] = append(b.times[step], d)
		b.Steps[step] = *inSeconds(median(b.times[step]))
	}
	b.P50 = append(b.P50, *inSeconds(o.bill[stepAnswered]))
	b.Max = append(b.Max, *inSeconds(o.longest()))
	b.most = max(b.most, o.longest())
	r.Toll.add(&o.cost, len(o.took))
	r.Overrun += o.verdict.Overrun
	r.found.Must(o.verdict.Woke <= boundWoke, "%s: %d handlings began when their process had stood still, more than %d", c,
		o.verdict.Woke, boundWoke)
	r.found.Must(o.fenced == 0 || c == PauseOwner, "%s: the store refused %d writes, and no process stood still", c,
		o.fenced)
	typical, slowest := r.times(c)
	*typical, *slowest = inSeconds(median(b.times[stepAnswered])), inSeconds(b.most)
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
	case RestartOwner:
		return &t.Restart, &t.RestartMax
	case RestartCoordinator:
		return &t.RestartCoordinator, &t.RestartCoordinatorMax
	case RestartUnproven:
		return &t.RestartUnproven, &t.RestartUnprovenMax
	}
	return &t.Paused, &t.PausedMax
}

// faults returns what must not be of a cluster in which nothing changes for stable before it decides.
func (r *FailoverResult) faults(cases []Case, p pace) (all cli.Faults) {
	all = slices.Concat(r.found, r.Toll.faults("without an answer", "nothing was lost"))
	for _, c := range cases {
		_, slowest := r.times(c)
		if most := c.bound(p); *slowest != nil {
			all.Must(**slowest <= most.Seconds(), "%s: %.3f s, more than %v", c, **slowest, most)
		}
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
