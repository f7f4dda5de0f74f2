// Status of a member and the allowed transitions.

package cluster

import "github.com/kith-io/kith/internal/base/enum"

// Status is where a member stands in its life. Numbers stand on the wire.
type Status uint8

// The states of a member. Unreachable is a flag beside the status, not one of them.
const (
	Joining Status = 0 // admitted by some member, not yet confirmed by the leader
	Up      Status = 1 // confirmed by the leader under convergence
	Leaving Status = 2 // asked to leave
	Exiting Status = 3 // its leaving is known to all
	Down    Status = 4 // marked as gone, by an operator, a resolver or a new incarnation at its address
	Removed Status = 5 // out of the cluster for good; only in events and tombstones
	// WeaklyUp is a joining member that the leader let in without convergence. It counts nowhere and hosts nothing.
	WeaklyUp Status = 6
	// PreparingForShutdown is a member that was Up when the shutdown of the whole cluster was ordered.
	PreparingForShutdown Status = 7
	// ReadyForShutdown is a preparing member of which all know that it prepares.
	ReadyForShutdown Status = 8

	lastStatus = ReadyForShutdown
)

var statusNames = [...]string{Joining: "joining", Up: "up", Leaving: "leaving", Exiting: "exiting", Down: "down",
	Removed: "removed", WeaklyUp: "weakly-up", PreparingForShutdown: "preparing-for-shutdown",
	ReadyForShutdown: "ready-for-shutdown"}

// Known reports whether there is such a status.
func (s Status) Known() bool { return s <= lastStatus }

// String names the status as the reference does.
func (s Status) String() string { return enum.Name(statusNames[:], s, "status") }

// MarshalText gives the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (s *Status) UnmarshalText(text []byte) error { return enum.Parse(s, text) }

// ranks places each status on the chain along which a member only moves forward, so that any two records of it join
// into the later one. Ready stands before Leaving: a member that is ready may still leave or be downed, and neither is
// ever undone by a record that has not heard of it.
var ranks = [...]int{Joining: 0, WeaklyUp: 1, Up: 2, PreparingForShutdown: 3, ReadyForShutdown: 4, Leaving: 5,
	Exiting: 6, Down: 7, Removed: 8}

// Rank is a status's place on the chain from Joining (0) to Removed: a member never goes to a lower one.
func (s Status) Rank() int { return ranks[s] }

// transitions holds, as bits by status, what a member may become in one step. The merge may skip steps, a change never
// does.
var transitions = [...]uint16{
	Joining:              1<<WeaklyUp | 1<<Up | 1<<Leaving | 1<<Down | 1<<Removed,
	WeaklyUp:             1<<Up | 1<<Leaving | 1<<Down | 1<<Removed,
	Up:                   1<<Leaving | 1<<Down | 1<<Removed | 1<<PreparingForShutdown,
	PreparingForShutdown: 1<<ReadyForShutdown | 1<<Leaving | 1<<Down | 1<<Removed,
	ReadyForShutdown:     1<<Leaving | 1<<Down | 1<<Removed,
	Leaving:              1<<Exiting | 1<<Down | 1<<Removed,
	Exiting:              1<<Down | 1<<Removed,
	Down:                 1 << Removed,
	Removed:              0,
}

// CanBecome reports whether a member may go from s to that status in one step.
func (s Status) CanBecome(to Status) bool { return transitions[s]&(1<<to) != 0 }

// Counts reports whether a member of this status takes part in convergence and may lead.
func (s Status) Counts() bool { return s.Working() || s == Leaving }

// Working reports whether a member was confirmed and has not been asked to go: Up, or that in a full shutdown.
func (s Status) Working() bool { return s == Up || s == PreparingForShutdown || s == ReadyForShutdown }

// Numbered says whether a member of this status must have an up-number (1), must have none (-1), or may (0).
func (s Status) Numbered() int {
	switch {
	case s.Working():
		return 1
	case s == Joining || s == WeaklyUp:
		return -1
	}
	return 0
}

// Cause says why a member was marked Down. Numbers stand on the wire.
type Cause uint8

// The causes of a Down.
const (
	CauseNone     Cause = 0 // not Down
	CauseOperator Cause = 1 // a person, or a program in a person's stead, said that it is gone
	CauseReplaced Cause = 2 // a new incarnation was admitted at its address
	CauseResolver Cause = 3 // the resolver found it on the losing side of a partition
	CauseUnstable Cause = 4 // the resolver downed everybody because the cluster did not become stable
	CauseLease    Cause = 5 // the resolver could not get or keep the lease
	// CauseProvenDead: a new process at its address got the lock that its process held to the end, so it is dead; or a
	// member has ended its session lease, so it handles nothing any more. Of two causes of one member the higher number
	// is kept, so this one outlasts every other.
	CauseProvenDead Cause = 6

	lastCause = CauseProvenDead
)

var causeNames = [...]string{CauseNone: "none", CauseOperator: "operator", CauseReplaced: "replaced",
	CauseResolver: "resolver", CauseUnstable: "unstable", CauseLease: "lease", CauseProvenDead: "proven-dead"}

// Known reports whether there is such a cause.
func (c Cause) Known() bool { return c <= lastCause }

// String names the cause in one word.
func (c Cause) String() string { return enum.Name(causeNames[:], c, "cause") }

// MarshalText gives the name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (c *Cause) UnmarshalText(text []byte) error { return enum.Parse(c, text) }
