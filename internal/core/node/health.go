// Health: where this node stands, from what its machines know, and what its suspensions have cost.

package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// Suspensions is a node's account of the times in which it handled no messages.
type Suspensions struct {
	On    bool
	Since time.Duration // when this one began; only while On
	Why   string        // the latest reason of this one, or of the last one
	Count uint64        // those that began
	Total time.Duration // how long those took that are over
}

// health is where a node stands and since when.
type health struct {
	state membership.NodeState
	since time.Duration
	self  membership.Status // of this node in its view
	known bool              // it is in one
	types bool              // it was ready once: its types were acknowledged, and it does not wait for them again
	ended *membership.Ended
	// refusals says that a type was refused or registered since refused was looked at.
	refusals bool
	refused  []error // why the cluster does not have types of this node
}

// standing ends a step: it decides where this node stands, and notes since when.
func (n *Node) standing() {
	if s := n.stands(); s != n.health.state {
		n.health.state, n.health.since = s, n.now
	}
}

func (n *Node) stands() membership.NodeState {
	h := &n.health
	if h.refusals {
		h.refusals, h.refused = false, shard.RefusedTypes(n.shards)
	}
	switch {
	case h.ended != nil:
		return membership.StateEnded
	case n.Suspended():
		return membership.StateSuspended
	case n.leaving || n.left || h.known && (h.self == membership.Leaving || h.self == membership.Exiting):
		return membership.StateLeaving
	case !h.known:
		return membership.StateStarting
	case len(h.refused) > 0:
		return membership.StateWaiting
	case h.self.Working() && (h.types || shard.Acknowledged(n.shards)):
		h.types = true
		return membership.StateReady
	}
	return membership.StateWaiting
}

// State says where this node stands, as of its last step.
func (n *Node) State() membership.NodeState { return n.health.state }

// Duplicates lists the other clusters of this one's name, and other sides of this one, that a node met lately.
func Duplicates(n *Node) []membership.Duplicate { return membership.Duplicates(n.members) }

// Health says the same, since when, and why.
func (n *Node) Health() membership.Health {
	h := membership.Health{State: n.health.state, Since: n.health.since}
	switch h.State {
	case membership.StateStarting, membership.StateWaiting:
		if h.Waiting = n.members.Waiting(); h.Waiting.For == membership.WaitNothing {
			h.Waiting = waitingForTypes(n.health.refused, shard.Unacknowledged(n.shards))
		}
		h.Reason = h.Waiting.Detail
	case membership.StateSuspended:
		h.Reason = n.suspension.told.Why
	case membership.StateLeaving:
		h.Reason = "this node leaves the cluster"
	case membership.StateEnded:
		h.Reason = n.health.ended.Reason
	}
	return h
}

// refusedNamed is how many refused types a node that is not ready names.
const refusedNamed = 8

// waitingForTypes says which types keep a node that is Up from being ready: first those that an operator has to mend.
func waitingForTypes(refused []error, unacknowledged []string) membership.Waiting {
	if len(refused) > 0 {
		w := membership.Waiting{For: membership.WaitRefusedTypes, Detail: "the cluster refuses what is registered here"}
		for i, err := range refused {
			if i == refusedNamed {
				w.Detail += fmt.Sprintf("; and %d more", len(refused)-i)
				break
			}
			w.Detail += "; " + err.Error()
		}
		return w
	}
	return membership.Waiting{For: membership.WaitTypes, Detail: "their coordinators have not acknowledged these types " +
		"yet: " + strings.Join(unacknowledged, ", ")}
}

// tell accounts for a suspension that begins, or for a reason that is added to one, and returns the event of it.
func (s *suspension) tell(now time.Duration, why string) membership.Event {
	t := &s.told
	if !t.On {
		t.On, t.Since = true, now
		t.Count++
	}
	t.Why = why
	return membership.Event{Kind: membership.NodeSuspended, Detail: why}
}

// over accounts for a suspension that ends, and returns the event of it.
func (s *suspension) over(now time.Duration, why string) membership.Event {
	t := &s.told
	took := now - t.Since
	t.On, t.Since, t.Total = false, 0, t.Total+took
	return membership.Event{Kind: membership.NodeResumed, Detail: why, For: took}
}
