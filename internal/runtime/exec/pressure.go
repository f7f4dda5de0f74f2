// Pressure: senders that wait for room learn when all mailboxes together are full, and when they have room again.

package exec

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// here is this node as the sender of messages to its own Blocking entities that waits for room. It is an entity.Sender.
type here Exec

// Full is not called: a sender here learns by the reason that Send returns.
func (*here) Full(route.TypeID, route.ShardID, uint64, int) (allowance int) { return 0 }

// Room passes on that an entity has room again.
func (x *here) Room(t route.TypeID, n route.ShardID, hash uint64) { x.needs.Room(t, n, hash) }

// Gone is false: nothing breaks between a node and itself.
func (*here) Gone() bool { return false }

// strained holds the connections of the senders that know that the budget of all mailboxes is used up.
type strained struct {
	some  atomic.Bool
	mu    sync.Mutex
	conns []*transport.Waiting
}

// senderOf returns the connection of the sender that waits for room for an envelope, nil if none waits; a reason other
// than route.OK refuses it because of the budget. c is the connection that it came on.
func (x *Exec) senderOf(env *wire.Envelope, c *transport.Waiting) (entity.Sender, route.Reason) {
	size := len(env.Payload) + entity.RecordOverhead
	switch plane.BudgetStrain(x.cfg.MailboxUsed(), size, x.cfg.MailboxBudget, c.Allowance()) {
	case plane.Strains:
		x.strain(c)
	case plane.Refuses:
		x.strain(c)
		if env.Flags&wire.FlagParked == 0 {
			return nil, route.BudgetFull
		}
	}
	return c, route.OK
}

// strain tells the sender of a connection that the budget is used up.
func (x *Exec) strain(c *transport.Waiting) {
	if !c.BudgetFull(x.cfg.MailboxBudget) {
		return
	}
	s := &x.strained
	s.mu.Lock()
	s.conns = append(slices.DeleteFunc(s.conns, (*transport.Waiting).Gone), c)
	s.some.Store(true)
	s.mu.Unlock()
}

// relieve tells them all when there is room again.
func (x *Exec) relieve() {
	s := &x.strained
	if !s.some.Load() || !plane.BudgetHasRoom(x.cfg.MailboxUsed(), x.cfg.MailboxBudget) {
		return
	}
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.some.Store(false)
	s.mu.Unlock()
	for _, c := range conns {
		c.BudgetRoom()
	}
}
