// Suspensions, the times in which a node handled no messages, and outages, those of others as it knows them.

package stats

import (
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/peer"
)

// Suspension is a snapshot of a node's suspensions: it handled no message in them. The data plane's own short waits,
// while the control goroutine is late, are not among them.
type Suspension struct {
	Now    bool          // it is suspended
	Since  time.Time     // when this one began; zero unless Now
	Reason string        // of this one, or of the last one that is over
	Count  uint64        // those that began
	Total  time.Duration // how long all of them took, this one included
	// Session is the session lease of the node; without one that is held it is suspended.
	Session Session
	// Tenure is the tenure of the node; without one that is held it is suspended.
	Tenure Tenure
}

// Tenure is where the tenure of a node stands, and which members vouch for it (kith.Sharding.Tenure).
type Tenure struct {
	On    bool          // nodes have tenures
	Held  bool          // else no message is handled here
	Since time.Time     // it is held, or is not
	Left  time.Duration // for which it is held without another grant
	Least time.Duration // the least that was left when it was renewed, since it was last gained
	Why   string        // it is not held
	Seats []Seat        // by number, from 1 on; none before the first list

	Number  uint32 // of the list of seats, which grows with each change
	Granted uint64 // grants that counted here
	Refused uint64 // questions that a holder answered with no
	RanOut  uint64 // times that it ran out
	Given   uint64 // grants that this node gave, as the holder of a seat
	Ended   uint64 // tenures of lost members that this node has proven over
}

// Seat is one seat of a tenure's electorate, as one node knows it.
type Seat struct {
	Holder peer.ID       // zero: it is empty
	Left   time.Duration // for which it vouches for the node that reports it; zero: it does not
}

// Session is where the session lease of a node stands (kith.Sharding.Session).
type Session struct {
	On    bool          // nodes have sessions
	Held  bool          // else no message is handled here
	Since time.Time     // it is held, or is not
	Left  time.Duration // for which it is held without another answer
	Why   string        // it is not held

	Renewed uint64 // calls that were answered with yes
	Failed  uint64 // calls that were answered with an error, or too late
	RanOut  uint64 // times that it ran out
	Ended   uint64 // sessions of lost members that this node has ended
}

// String says in a sentence which members vouch for the node; empty without tenures.
func (t Tenure) String() string {
	if !t.On {
		return ""
	}
	var yes, no, empty int
	var holders []string
	for i, s := range t.Seats {
		what := " vouches"
		switch {
		case s.Holder.IsZero():
			empty++
			continue
		case s.Left > 0:
			yes++
		default:
			no++
			what = " does not vouch"
		}
		holders = append(holders, fmt.Sprintf("seat %d, %v,%s", i+1, s.Holder, what))
	}
	text := fmt.Sprintf("its tenure is held, %v are left", t.Left.Round(time.Millisecond))
	if !t.Held {
		text = "it has no tenure: " + t.Why
	}
	if len(holders) == 0 {
		return text
	}
	return fmt.Sprintf("%s; %d of %d seats vouch for this node, %d are empty: %s", text, yes, yes+no+empty, empty,
		strings.Join(holders, "; "))
}

// Outage is a member that does not answer, or that was lost and has shards that wait, as one node knows it
// (kith.Health.Outages). Where a process is proven dead, or has handed all over, nothing waits, and there is none.
type Outage struct {
	Member peer.ID
	Since  time.Time // when this node first heard of it
	// Decided: it is Down, or removed. Before, it may still turn out to live.
	Decided bool
	// ServedBy is when what lived there may be served elsewhere at the earliest; while it is not Decided, if nothing
	// changes until then. Zero: nobody decides (ResolverOff) or proves its end, an operator has to say so.
	ServedBy time.Time
	Shards   int // of all types, that lived there as far as this node knew when it heard of it
	// Late: ServedBy is over, and what lived there waits still.
	Late bool
	// NoQuorum: with tenures, half of the seats or more are held by members that do not answer or were lost. Then nobody's
	// end is proven, and ServedBy is zero unless it is assumed (RefoundByTakeover).
	NoQuorum bool
}

// String says it in a sentence.
func (o Outage) String() string {
	where := "%v does not answer since %s, %d shards are known to live there"
	if o.Decided {
		where = "%v is lost since %s, %d shards lived there"
	}
	where = fmt.Sprintf(where, o.Member, o.Since.Format(time.TimeOnly), o.Shards)
	by := o.ServedBy.Format(time.TimeOnly)
	switch {
	case o.Late && o.Decided:
		return where + "; they were to be served again from " + by + " on, and wait, for its end is not proven yet"
	case o.Late:
		return where + "; they were to be served again from " + by + " on, and wait, for nobody has decided yet"
	case !o.ServedBy.IsZero():
		return where + "; they are served again from " + by + " on"
	case o.NoQuorum:
		return where + "; they wait, for half of the seats or more are held by members that do not answer: until these do, " +
			"or an operator says that they are dead (down for each, then refound)"
	}
	return where + "; they wait until it is heard again, or an operator downs it"
}
