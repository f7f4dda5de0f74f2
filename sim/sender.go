// Senders: what a kith.Message is sent from in a test, and declarations of what lives without a message.

package sim

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// NodeSender sends from one node of a cluster, from outside of handlers: it is a kith.Sender.
type NodeSender struct {
	c *Cluster
	n int
}

// Node returns what sends from node n, also from those that start at its address later: request.Ask(c.Node(0), "7", m).
func (c *Cluster) Node(n int) NodeSender {
	c.t.Helper()
	c.proc(n)
	return NodeSender{c, n}
}

// Tell is Cluster.Tell.
func (s NodeSender) Tell(typ, id string, payload []byte) error {
	return s.c.Tell(s.n, typ, id, payload)
}

// Ask is Cluster.AskWithin.
func (s NodeSender) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	return s.c.AskWithin(d, s.n, typ, id, payload)
}

// Kept is a declaration of entities that live without a message: a kith.Singleton, or a kith.Daemons.
type Kept interface {
	// Kept returns the type that they are of, and how they are kept alive. The error has all faults.
	Kept() (entity.Type, *entity.Keep, error)
}

// Keep makes a singleton or daemons known on all nodes, also on those that are restarted later, as Node.Singleton and
// Node.Daemons do. Singleton.Lease is left out: it lives without the lock. A daemon that waits does so by Wait, or
// returns and is called again after its rest.
func (c *Cluster) Keep(d Kept) {
	c.t.Helper()
	t, k, err := d.Kept()
	if err != nil {
		c.t.Fatalf("sim: %v", err)
	}
	c.add(&world.EntityType{Type: t, Keep: k})
}

// Crewed is a declaration of workers of which any may handle a message: a kith.Pool.
type Crewed interface {
	// Crew returns the type of the workers, and how many a node has. The error has all faults.
	Crew() (t entity.Type, perNode int, err error)
}

// Pool makes a pool known on all nodes, also on those that are restarted later, as Pool.Register does. Any worker gets
// what is sent to it with no id: shrink.Ask(c.Node(0), "", &picture), here as in a handler. An id that is not empty is
// that of one worker.
func (c *Cluster) Pool(p Crewed) {
	c.t.Helper()
	t, perNode, err := p.Crew()
	if err != nil {
		c.t.Fatalf("sim: %v", err)
	}
	c.add(&world.EntityType{Type: t, PerNode: perNode})
}

// Register makes a type known on all nodes, also on those that are restarted later.
func (c *Cluster) Register(t entity.Type) {
	c.t.Helper()
	c.add(&world.EntityType{Type: t})
}

func (c *Cluster) add(t *world.EntityType) {
	c.t.Helper()
	t.Type = t.WithDefaults()
	if err := t.Validate(); err != nil {
		c.t.Fatalf("sim: %v", err)
	}
	c.w.AddType(t)
}

// EntitySender sends to an Entity: it is a kith.Sender.
type EntitySender struct{ e *Entity }

// Sender returns what sends to the entity, and to no other: request.Ask(e.Sender(), "7", m).
func (e *Entity) Sender() EntitySender { return EntitySender{e} }

// check judges for which entity a message is.
func (s EntitySender) check(typ, id string) error {
	if typ != s.e.typ.Name {
		return fmt.Errorf("%w: %.80q, here is one of %q", route.ErrNotRegistered, typ, s.e.typ.Name)
	}
	if id != s.e.id {
		return fmt.Errorf("%w: %.80q, here is %q alone", route.ErrBadID, id, s.e.id)
	}
	return nil
}

// Tell is Entity.Tell. What comes of it in the handler is nobody's to hear, as on a node.
func (s EntitySender) Tell(typ, id string, payload []byte) error {
	if err := s.check(typ, id); err != nil {
		return err
	}
	return s.e.Tell(payload).Refused
}

// Ask is Entity.Do of an ask by a sender that waits for d.
func (s EntitySender) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	if err := s.check(typ, id); err != nil {
		return nil, err
	}
	if d <= 0 {
		return nil, route.NotRun(route.ErrTimeout)
	}
	return s.e.Do(Message{Payload: payload, Ask: true, Within: d}).Reply()
}
