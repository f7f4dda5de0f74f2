// Queues of package delivery on the nodes of a simulated cluster, over its store.

package durabletest

import (
	"context"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
)

// Queues is a queue on all nodes of a simulated cluster.
type Queues struct {
	k  *Kit
	of map[*node]queued
}

// queued is the queue on one of them.
type queued struct {
	p *delivery.Producer
	t kith.EntityType
}

// RegisterQueue makes a queue known on all nodes of the cluster, also on those that are restarted later. to names the
// type that messages are for, which delivery.Consumer made and the cluster knows (sim.Cluster.Register). q.Store may be
// nil: the kit's is taken. q.To is not looked at. Errors are those of delivery.Register for what is wrong with q.
func RegisterQueue(k *Kit, to string, q delivery.Queue) (*Queues, error) {
	if q.Store == nil {
		q.Store = k.store
	}
	_, typ, err := delivery.On(&node{kit: k}, to, q)
	if err != nil {
		return nil, err
	}
	s := &Queues{k, map[*node]queued{}}
	open := func(n *node) {
		p, typ, err := delivery.On(n, to, q)
		if err != nil {
			panic(err) // it went well just now
		}
		s.of[n] = queued{p, typ}
	}
	for _, p := range k.w.Processes { // in the order of their starts
		if n := k.nodes[p]; n != nil {
			open(n)
		}
	}
	k.types = append(k.types, open)
	typ.New = func(id string, f kith.Fence) kith.Handler { return s.here().t.New(id, f) }
	typ.Hosted = func(ctx context.Context, n kith.ShardID, f kith.Fence) { s.here().t.Hosted(ctx, n, f) }
	k.c.Register(typ)
	return s, nil
}

// here is the queue on the node that runs handlers now.
func (s *Queues) here() queued { return s.of[s.k.node(s.k.w.Acting)] }

// On returns what sends from node n, as its latest process. What a test asks lets virtual time pass until the answer
// comes: as long as its context says, if that is one of Kit.Within, else two minutes at most.
func (s *Queues) On(n int) *delivery.Producer { return s.of[s.k.node(s.k.w.Hosts[n].Process)].p }
