// Watch: what a world tells those who hold it against the rules, and what it lets them ask.

package sim

import (
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// shardKey is one shard of a type.
type shardKey struct {
	typ   route.TypeID
	shard route.ShardID
}

// watcher is told of everything that happens in a world, at the moment at which it happens. It may look at all nodes
// and changes nothing: a world runs the same under every watcher. What it is given is valid until it returns.
type watcher interface {
	// refuses is told of every message that a process does not take, told of a process that hears of n such tells, and
	// refusal of one whose ask was answered so, with the words of the answer.
	refuses(from peer.ID, e *wire.Envelope)
	told(p *proc, n uint64)
	refusal(p *proc, typ route.TypeID, from peer.ID, why route.Reason, text []byte)
	// violate notes a rule that the world itself has found broken, at a process or, with nil, in the whole cluster.
	violate(p *proc, rule, format string, args ...any)
	// refused is told of a verb of a node that returned an error.
	refused(p *proc, err error)
	// frame is told of every control frame that reaches the control loop, received of what came in a parcel.
	frame(p *proc, from peer.ID, kind wire.Kind)
	received(p *proc, r *node.Received)
	// posted is told of all mail before it leaves.
	posted(p *proc, m *peer.Mail)
	// replay is told of the step from one view to the next (nil: there is none) with its events, before view, which is
	// told of a new view, and event, which is told of each event after that.
	replay(p *proc, old, next *membership.View, events []membership.Event)
	view(p *proc, v *membership.View)
	event(p *proc, e *membership.Event)
	// shard is told of every event of sharding.
	shard(p *proc, e *shard.Event)
	// decided is told of a decision of a resolver before it is carried out, stops of a process that suspends itself.
	decided(p *proc, d *node.Decision)
	stops(p *proc, why string)
	// hosts is told of a process that makes a shard live, stopped of one in which it lives no more: confirmed when all
	// its entities were stopped in order.
	hosts(p *proc, key shardKey, f route.Fence)
	stopped(p *proc, key shardKey, confirmed bool)
	// delivers is told of an envelope that is about to reach its entity.
	delivers(p *proc, key shardKey, e *wire.Envelope)
	// starts is told of a new process, ends of one whose membership is over, died of one that runs no more.
	starts(p *proc)
	ends(p *proc, e *membership.Ended)
	died(p *proc)
	// excuse is told of a process that is, or will be, down for a good reason; touch of one that a fault has met.
	excuse(id peer.ID)
	touch(p *proc)
	// pauses is told of a process that stands still for d, resumes of one that goes on.
	pauses(p *proc, d time.Duration)
	resumes(p *proc)
	// lost reports whether a process is down for somebody, so that what it still handles comes late.
	lost(id peer.ID) bool
}

// eachType calls do for every type that the process has registered, with the shards of it that live here.
func (p *proc) eachType(do func(typ route.TypeID, live []route.ShardID)) {
	for _, r := range p.regions {
		var live []route.ShardID
		for i := range r.shards {
			if r.shards[i] != nil {
				live = append(live, route.ShardID(i))
			}
		}
		do(r.id, live)
	}
}
