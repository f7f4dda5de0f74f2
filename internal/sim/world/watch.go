// Watch: what a world reports to checkers, and what it lets them ask.

package world

import (
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// ShardKey is one shard of a type.
type ShardKey struct {
	Type  route.TypeID
	Shard route.ShardID
}

// Watcher gets everything that happens in a world, at the moment at which it happens. It may look at all nodes and
// changes nothing: a world runs the same under every watcher. What it is given is valid until it returns.
type Watcher interface {
	// Refuses gets every message of from that a process does not take; Told a process that gets a report of n such tells
	// of its own from by; Untold n tells with a sender that may not have heard and never will; Refusal one with an ask
	// that was answered so, with the words of the answer.
	Refuses(p *Process, from peer.ID, e *wire.Envelope)
	Told(p *Process, by peer.ID, n uint64)
	Untold(p *Process, to peer.ID, n uint64)
	Refusal(p *Process, typ route.TypeID, from peer.ID, why route.Reason, text []byte)
	// Violate notes a rule that the world itself has found broken, at a process or, with nil, in the whole cluster.
	Violate(p *Process, rule, format string, args ...any)
	// Refused gets a verb of a node that returned an error.
	Refused(p *Process, err error)
	// Frame gets every control frame that reaches the control loop, Received what came in a segment.
	Frame(p *Process, from peer.ID, kind wire.Kind)
	Received(p *Process, r *node.Received)
	// Posted gets all mail before it leaves.
	Posted(p *Process, m *peer.Mail)
	// Replay gets the step from one view to the next (nil: there is none) with its events, before View, which gets a new
	// view, and Event, which gets each event after that.
	Replay(p *Process, old, next *membership.View, events []membership.Event)
	View(p *Process, v *membership.View)
	Event(p *Process, e *membership.Event)
	// Shard gets every event of sharding.
	Shard(p *Process, e *shard.Event)
	// Decided gets a decision of a resolver before it is carried out, Stops a process that suspends itself.
	Decided(p *Process, d *node.Decision)
	Stops(p *Process, why string)
	// Hosts gets a process that makes a shard live, Stopped one in which it lives no more: confirmed when all its entities
	// were stopped in order.
	Hosts(p *Process, key ShardKey, f route.Fence)
	Stopped(p *Process, key ShardKey, confirmed bool)
	// Keeps gets an owner that has something left of a shard which has stopped for a move, before its node is.
	Keeps(p *Process, key ShardKey)
	// Delivers gets an envelope that is about to reach its entity.
	Delivers(p *Process, key ShardKey, e *wire.Envelope)
	// Starts gets a new process, Ends one with a membership that is over, Died one that runs no more.
	Starts(p *Process)
	Ends(p *Process, e *membership.Ended)
	Died(p *Process)
	// Excuse gets a process that is, or will be, down for a good reason; Touch one that a fault has met.
	Excuse(id peer.ID)
	Touch(p *Process)
	// Pauses gets a process that stands still for d, Resumes one that goes on.
	Pauses(p *Process, d time.Duration)
	Resumes(p *Process)
	// Lost reports whether a process is down for another, so that what it still handles comes late.
	Lost(id peer.ID) bool
}

// EachType calls do for every type that the process has registered, with the shards of it that live here.
func (p *Process) EachType(do func(typ route.TypeID, live []route.ShardID)) {
	for _, r := range p.Regions {
		var live []route.ShardID
		for i, h := range r.shards.All {
			if *h != nil {
				live = append(live, i)
			}
		}
		do(r.ID, live)
	}
}
