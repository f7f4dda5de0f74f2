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
	"github.com/kith-io/kith/internal/lab/leasestore"
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

// The cases that last for a time of their own; the owner is that of the others.
const (
	PauseShort   Case = "paused-3s" // SIGSTOP of the owner, and SIGCONT after so long
	PauseMiddle  Case = "paused-10s"
	PauseLong    Case = "paused-30s"
	SilentHost   Case = "silent"        // the owner's host is cut off from all others, and from the store of sessions
	CutStore     Case = "store-cut"     // the owner alone does not reach the store of sessions, for 20 s
	CutStoreAll  Case = "store-cut-all" // nobody does
	StopStore    Case = "store-stopped" // it stands still for 60 s
	RestartStore Case = "store-restart" // it is killed (kill -9), and starts again with its data
)

// SessionCases are those that are tried where nodes hold sessions.
var SessionCases = []Case{LoseOwner, LoseCoordinator, LoseBoth, PauseShort, PauseMiddle, PauseLong, SilentHost,
	CutStore, CutStoreAll, StopStore, RestartStore}

// Cases are all cases, in the order in which they are tried.
var Cases = []Case{LoseOwner, LoseCoordinator, LoseBoth, PauseOwner, LoseOwnerProof, LoseCoordinatorProof,
	LoseBothProof, RestartOwner, RestartCoordinator, RestartUnproven}

// NamedCases are all that may be asked for.
func NamedCases() []Case {
	all := slices.Clone(Cases)
	for _, c := range SessionCases {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// ParseCases reads names of cases; none are all of Cases, and of SessionCases where nodes hold sessions or have tenures
// in s: without sessions nobody has a store that could fail.
func ParseCases(names []string, s Sessions) ([]Case, error) {
	if len(names) == 0 && (s.on() || s.tenures()) {
		return slices.DeleteFunc(slices.Clone(SessionCases), func(c Case) bool { return !c.can(s) }), nil
	}
	if len(names) == 0 {
		return Cases, nil
	}
	all, err := parse(names, NamedCases())
	for _, c := range all {
		if !c.can(s) {
			return nil, fmt.Errorf("case %s is of sessions in a store that can do it, and %q is none", c, s.Store)
		}
	}
	return all, err
}

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
func (c Case) bound(p pace, s Sessions) time.Duration {
	if d, some := c.boundWith(s); some {
		return d
	}
	if c.proof() || c.restarts() && c != RestartUnproven {
		return boundProof
	}
	d := p.stable + p.takeover + boundMore
	if s.tenures() {
		d = s.Tenure.Grant + sessionMore
	}
	if c == PauseOwner || c == PauseLong || c == SilentHost || c == PauseMiddle { // which is decided 9.5 s after it came
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
	from    time.Duration // when it came
	at      time.Duration // from when on it counts how long entities take: when it came, or when the store was back
	until   time.Duration // everything answered again, of one that nobody should end for
	ended   int           // processes that ended for it all the same
	others  time.Duration // the longest time without an answer from an entity that it should not touch
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
	// Sessions is the store of their sessions, which last SessionTTL seconds.
	Sessions   leasestore.Kind `json:"sessions,omitempty"`
	SessionTTL float64         `json:"session_ttl_s,omitempty"`
	// Seats is how many seats vouch for nodes with tenures; their grants count for Grant seconds.
	Seats int     `json:"tenure_seats,omitempty"`
	Grant float64 `json:"tenure_grant_s,omitempty"`
	FailoverTimes
	Lasting map[Case]*LastingTimes `json:"lasting,omitempty"`
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
	r.found.Must(o.fenced == 0 || c == PauseOwner || c.pause() > 0,
		"%s: the store refused %d writes, and no process stood still", c, o.fenced)
	r.found.Must(o.ended == 0, "%s: %d processes ended, nobody should", c, o.ended)
	r.found.Must(o.others <= boundOthers, "%s: an entity of another node did not answer for %v", c, o.others)
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
	case PauseOwner:
		return &t.Paused, &t.PausedMax
	}
	if r.Lasting == nil {
		r.Lasting = map[Case]*LastingTimes{}
	}
	if r.Lasting[c] == nil {
		r.Lasting[c] = &LastingTimes{}
	}
	return &r.Lasting[c].P50, &r.Lasting[c].Max
}

// LastingTimes are FailoverTimes of a case that lasts for a time of its own. Where a session is lost they count from
// when it came; where nobody should end for it: of a pause and of a store that starts again they are the longest times
// without an answer, of a store that is away they count from when it is back.
type LastingTimes struct {
	P50 *float64 `json:"p50_s,omitempty"`
	Max *float64 `json:"max_s,omitempty"`
}

// faults returns what must not be of a cluster in which nothing changes for stable before it decides.
func (r *FailoverResult) faults(cases []Case, p pace, s Sessions) (all cli.Faults) {
	all = slices.Concat(r.found, r.Toll.faults("without an answer", "nothing was lost"))
	for _, c := range cases {
		if r.Bill[c] == nil {
			continue
		}
		_, slowest := r.times(c)
		if most := c.bound(p, s); *slowest != nil {
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
		return slices.Index(NamedCases(), a) - slices.Index(NamedCases(), b)
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
