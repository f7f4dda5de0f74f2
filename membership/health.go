// Health: where a node stands between its start and its end, with the reason, for health checks and people.

package membership

import (
	"time"

	"github.com/kith-io/kith/internal/enum"
)

// NodeState is where a node stands between its start and its end.
type NodeState uint8

// The states of a node. Only a node that is StateReady handles messages.
const (
	StateStarting  NodeState = iota // it looks for a cluster, or has asked to be admitted
	StateWaiting                    // it is a member, and has not been let in yet
	StateReady                      // it is Up, or waits for the end of its whole cluster
	StateSuspended                  // it handles no message until others have confirmed it
	StateLeaving                    // it leaves, or its coordinated shutdown runs
	StateEnded                      // it is over

	nodeStates
)

var stateNames = [nodeStates]string{"starting", "waiting", "ready", "suspended", "leaving", "ended"}

// String names the state as logs do.
func (s NodeState) String() string { return enum.Name(stateNames[:], s, "state") }

// MarshalText gives the name.
func (s NodeState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (s *NodeState) UnmarshalText(text []byte) error { return enum.Parse(s, text) }

// Health says where a node stands, since when on its clock, and why. Waiting is set in StateStarting and StateWaiting.
type Health struct {
	State   NodeState
	Since   time.Duration
	Reason  string // in words; empty in StateReady
	Waiting Waiting
}
