// Status: what readers see of a lease.

package leases

import (
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/route"
)

// State is where a lease stands.
type State uint8

// The states.
const (
	Unwanted State = 0 // nothing lives here that needs it
	Waits    State = 1 // it is not held: the entity does not live
	Held     State = 2
)

var stateNames = []string{Unwanted: "unwanted", Waits: "waits", Held: "held"}

// String names the state.
func (s State) String() string { return enum.Name(stateNames, s, "lease") }

// EventKind says what happened to a lease.
type EventKind uint8

// The kinds of event.
const (
	Acquired EventKind = 0
	Refused  EventKind = 1 // it is not held, for a reason that is another than the last one
	Lost     EventKind = 2 // it was held
	Released EventKind = 3
	NotFreed EventKind = 4 // it could not be given back yet, for a reason that is another than the last one
)

// Event is something that operators want to know.
type Event struct {
	Kind  EventKind
	Fence route.Fence
	Why   string
}

// Counts is what was counted since the start.
type Counts struct {
	Acquired uint64 // times that it was acquired, confirmations left aside
	Refused  uint64 // answers that another has it
	Failed   uint64 // calls that ended with an error, or had no answer in time
	Lost     uint64 // times that it was lost while it was held
	Dropped  uint64 // ownerships with a lease that was not given back, since too many waited for that
}

// Valid returns until when the lease counts as held; zero: it is not.
func (h *Holder) Valid() time.Duration {
	if !h.held {
		return 0
	}
	return h.valid
}

// Owed returns the ownerships that may hold their lease in the store: that of what lives here, and those that are to be
// given back.
func (h *Holder) Owed() (list []route.Fence) {
	for i := range h.give {
		list = append(list, h.give[i].fence)
	}
	if h.asked && !h.fence.IsZero() {
		list = append(list, h.fence)
	}
	return list
}

// Status is where a lease stands, since when, why it is not held, and what was counted.
type Status struct {
	State  State
	Fence  route.Fence
	Since  time.Duration
	Why    string
	Giving int // ownerships with a lease that is to be given back
	Counts
}

// Status returns where the lease stands.
func (h *Holder) Status() Status {
	s := Status{Fence: h.fence, Since: h.since, Why: h.why, Giving: len(h.give), Counts: h.counts}
	switch {
	case h.fence.IsZero():
		s.State, s.Since, s.Why = Unwanted, 0, ""
	case h.held:
		s.State = Held
	default:
		s.State = Waits
	}
	return s
}
