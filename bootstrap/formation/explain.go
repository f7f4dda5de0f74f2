// Explain: why this node has not joined yet, at any moment, for people.

package formation

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
)

// Explanation says where a node's search for its cluster stands. All of it is the caller's.
type Explanation struct {
	Action   Action // what it has decided: KeepLooking, or what its membership does now
	Member   bool   // the search is over
	Hold     Hold   // why it waits
	Detail   string // the same in words
	Cluster  uint64 // that it is a member of
	Seeds    []peer.Addr
	Required int
	Expected int

	Stable, Margin time.Duration // for how long look-ups have shown the same, and must have
	LookupAge      time.Duration // since one succeeded; negative: none has
	LookupFailed   string        // why the last one failed; empty: it did not
	Failures       int           // look-ups in a row that failed
	Promised       peer.ID       // the node that has this node's promise; zero: none
	Points         []PointState
}

// PointState is one contact point.
type PointState struct {
	Point  peer.Addr
	Listed bool          // look-ups show it
	Age    time.Duration // of its last answer; negative: none
	Reply  Reply         // the last one, if there is one
	Failed string        // why the last probe failed; empty: it did not
}

// Explain says why this node has not joined yet, as of now.
func (m *Machine) Explain(now time.Duration) Explanation {
	now = max(now, m.now)
	e := Explanation{Action: m.decision.Action, Member: m.stage == inCluster, Hold: m.decision.Hold,
		Detail: m.decision.Detail, Cluster: m.cluster, Seeds: append([]peer.Addr{}, m.given...), Required: m.cfg.Required,
		Expected: m.cfg.Expected, Margin: m.cfg.Margin, LookupAge: -1, LookupFailed: m.lookErr, Failures: m.failures,
		Promised: m.promise.to}
	if m.known {
		e.Stable, e.LookupAge = m.shownAt-m.changedAt, now-m.shownAt
	}
	switch m.stage {
	case inCluster:
		e.Detail = fmt.Sprintf("this node is a member of cluster %016x", m.cluster)
	case formingNow:
		e.Action, e.Hold = FormCluster, HoldNothing
		e.Detail = "all have promised themselves: this node forms the cluster"
	case ordered:
		e.Action, e.Hold = JoinCluster, HoldNothing
		e.Detail = fmt.Sprintf("an operator has told this node to join through %v", m.given)
	case joining:
		e.Action, e.Hold = JoinCluster, HoldNothing
		e.Detail = fmt.Sprintf("this node joins through %v", m.given)
	}
	for i := range m.points {
		p := &m.points[i]
		s := PointState{Point: p.addr, Listed: p.listed, Age: -1, Failed: p.err}
		if p.reply != nil {
			s.Age, s.Reply = now-p.at, *p.reply
		}
		e.Points = append(e.Points, s)
	}
	return e
}
