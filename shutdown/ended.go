// Ended: why a node is no member any more.

package shutdown

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// EndClosed is how the membership of a node ends on which Close was called. The other kinds are package membership's.
const EndClosed = membership.EndClosed

// EndedError tells why a node ended. It matches route.ErrStopped.
type EndedError struct {
	Kind   membership.EndKind
	By     peer.ID          // which node said so; zero when this one did itself
	At     time.Time        // when it was learnt here
	Reason string           // the evidence in words
	Cause  membership.Cause // of the Down; membership.CauseNone when the node was not marked down
	Seeds  []string         // of EndDuplicate: where the older cluster was met, host:port; seeds for the next node
}

var endNames = map[membership.EndKind]string{
	membership.EndLeft: "left", membership.EndDowned: "was marked down", membership.EndRemoved: "was removed",
	membership.EndJoinRefused: "was refused", membership.EndJoinTimeout: "was not admitted in time",
	membership.EndIsolated: "was cut off from the cluster", membership.EndRejoin: "left for another cluster",
	membership.EndDuplicate: "ended as the younger of two clusters", EndClosed: "was closed",
}

// Error says what happened, which node said so and why.
func (e *EndedError) Error() string {
	name := endNames[e.Kind]
	if name == "" {
		name = fmt.Sprintf("ended (%d)", e.Kind)
	}
	s := "kith: this node " + name
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if !e.By.IsZero() {
		s += ", says " + e.By.String()
	}
	return s
}

// Unwrap returns route.ErrStopped.
func (e *EndedError) Unwrap() error { return route.ErrStopped }
