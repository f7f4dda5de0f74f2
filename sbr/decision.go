// Decision: what was decided and why, in values and in one sentence.

package sbr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// Decision is one decision with everything that led to it. Its sets are the receiver's to read, not to change.
type Decision struct {
	At       time.Duration // when, on this node's monotonic clock
	Strategy Strategy
	Role     string
	Self     peer.ID
	Leader   bool // this node carries the decision out for its side
	// Reachable and Unreachable are how many members count on each side, with the role; indirectly connected ones are
	// among the reachable.
	Reachable, Unreachable int
	Quorum                 int
	Seats, Held            int      // how many seats there are, and on our side, where the sides count them; else 0
	Lost                   peer.Set // unreachable members of any role
	Indirect               peer.Set // connected only through others
	Mark                   peer.ID  // the lowest or oldest member that decided it; zero when none did
	Outcome                Outcome
	Why                    string   // the rule that decided, in words
	Down                   peer.Set // the members that go
	Cause                  membership.Cause
	Lives                  bool // this node is not among them
	StableAfter            time.Duration
	Lease                  LeaseState // lease-majority: what came of asking

	later   bool
	first   peer.ID  // the member that carries it out: the lowest that counts and is plainly reachable; zero for nobody
	next    peer.ID  // the one that does when those before it are late
	refused peer.Set // the members that go when the lease is refused
}

// LeaseState is what came of asking for the lease.
type LeaseState uint8

// The states of a decision's lease.
const (
	LeaseNone     LeaseState = iota // not asked for
	LeasePending                    // the leader of this side asks
	LeaseAcquired                   // this side has it
	LeaseRefused                    // another side has it, or it did not answer
)

var leaseWords = []string{LeaseNone: "none", LeasePending: "pending", LeaseAcquired: "acquired",
	LeaseRefused: "refused"}

// String names the state.
func (s LeaseState) String() string { return enum.Name(leaseWords, s, "lease") }

// MarshalText gives the name.
func (s LeaseState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (s *LeaseState) UnmarshalText(text []byte) error { return enum.Parse(s, text) }

var leaseNames = [...]string{LeaseNone: "", LeasePending: "; the lease is being asked for",
	LeaseAcquired: "; we have the lease", LeaseRefused: "; we did not get the lease"}

// String explains the decision in one plain sentence.
func (d Decision) String() string {
	var b strings.Builder
	b.WriteString(d.Strategy.String())
	if d.Role != "" {
		fmt.Fprintf(&b, " with role %s", d.Role)
	}
	fmt.Fprintf(&b, ": %d of %d members reachable", d.Reachable, d.Reachable+d.Unreachable)
	if d.Strategy == StaticQuorum {
		fmt.Fprintf(&b, ", the quorum is %d", d.Quorum)
	}
	if d.Seats > 0 {
		fmt.Fprintf(&b, ", %d of %d seats", d.Held, d.Seats)
	}
	if len(d.Lost) > 0 {
		fmt.Fprintf(&b, ", lost %s", list(d.Lost))
	}
	if len(d.Indirect) > 0 {
		fmt.Fprintf(&b, ", indirectly connected %s", list(d.Indirect))
	}
	fmt.Fprintf(&b, "; %s", d.Why)
	if !d.Mark.IsZero() {
		fmt.Fprintf(&b, " (%s)", d.Mark)
	}
	b.WriteString(leaseNames[d.Lease])
	switch {
	case len(d.Down) == 0:
		b.WriteString("; nobody is downed")
	default:
		fmt.Fprintf(&b, "; downs %s", list(d.Down))
	}
	if d.Lives {
		b.WriteString("; this node lives")
	} else {
		b.WriteString("; this node stops")
	}
	return b.String()
}

// maxListed bounds how many members a sentence names.
const maxListed = 8

func list(s peer.Set) string {
	var names []string
	for _, id := range s[:min(len(s), maxListed)] {
		names = append(names, id.Addr.String())
	}
	if more := len(s) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

// same reports whether o says the same as d, time apart.
func (d Decision) same(o Decision) bool {
	return d.Outcome == o.Outcome && d.Why == o.Why && d.Lives == o.Lives && d.Leader == o.Leader && d.Lease == o.Lease &&
		slices.Equal(d.Down, o.Down) && slices.Equal(d.Lost, o.Lost) && slices.Equal(d.Indirect, o.Indirect)
}

// MaxDecisions is how many decisions a resolver remembers; the oldest go first.
const MaxDecisions = 64
