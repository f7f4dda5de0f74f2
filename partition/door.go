// Door: what the partitions of a node have of it: the table in the gossiped state, and commands that change it.

package partition

import (
	"context"
	"log/slog"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// doorOf returns the door of a node.
func doorOf(node footing.Node) door { return nodeDoor{node} }

type nodeDoor struct{ on footing.Node }

// Table implements door.
func (d nodeDoor) Table() []State {
	if v := d.on.View(); v != nil {
		return v.Partitions
	}
	return nil
}

// Define implements door.
func (d nodeDoor) Define(ctx context.Context, is Definition) error {
	return d.on.Do(ctx, membership.DefineCommand{Definition: is})
}

// Undefine implements door.
func (d nodeDoor) Undefine(ctx context.Context, path string) error {
	return d.on.Do(ctx, membership.UndefineCommand{Path: path})
}

// Move implements door.
func (d nodeDoor) Move(ctx context.Context, path string, slot int, to kith.ID) error {
	return d.on.Do(ctx, membership.MoveInstanceCommand{Path: path, Slot: slot, To: to})
}

// Complete implements door.
func (d nodeDoor) Complete(ctx context.Context, c Change) error {
	return d.on.Do(ctx, membership.CompleteCommand{Change: c})
}

// maxNodes is the number of nodes that host instances of hand-offs that do not buffer: each has a shard. Tests have
// fewer: a node that leaves gives its share of them back, which takes long on a machine that is busy.
var maxNodes uint32 = 1024

// realNode is a node of package kith.
type realNode struct {
	ground.Real
	node *kith.Node
	d    *driver.Driver
	kept any
}

// ID implements footing.Node.
func (n *realNode) ID() kith.ID { return n.node.ID() }

// View implements footing.Node.
func (n *realNode) View() *membership.View { return n.d.View() }

// Follow implements footing.Node.
func (n *realNode) Follow(ctx context.Context, ping func()) {
	for range n.node.Events(ctx) {
		ping()
	}
}

// Do implements footing.Node.
func (n *realNode) Do(ctx context.Context, cmd membership.Command) error {
	return driver.PartitionsOf(n.node).Do(ctx, cmd)
}

// Lane implements footing.Node.
func (n *realNode) Lane(t entity.Type) (footing.Lane, error) {
	pool := driver.NewPool(t, 1)
	if err := pool.Register(n.d); err != nil {
		return nil, err
	}
	return lane{pool}, nil
}

// Hosts implements footing.Node.
func (*realNode) Hosts() uint32 { return maxNodes }

// Draining implements footing.Node.
func (n *realNode) Draining() bool { return n.node.Health().Draining }

// Converged implements footing.Node.
func (n *realNode) Converged(ctx context.Context) (bool, error) {
	c, err := n.d.Convergence(ctx)
	return c.Converged, err
}

// OnLeave implements footing.Node.
func (n *realNode) OnLeave(leave func(ctx context.Context) error) error {
	return n.node.OnShutdown(kith.PhaseBeforeClusterShutdown, "hand partitions over", leave)
}

// Err implements footing.Node.
func (n *realNode) Err() error { return n.node.Err() }

// AskTimeout implements footing.Node.
func (n *realNode) AskTimeout() time.Duration { return n.d.Config().AskTimeout }

// Log implements footing.Node.
func (n *realNode) Log() *slog.Logger { return n.d.Config().Logger }

// Kept implements footing.Node.
func (n *realNode) Kept() *any { return &n.kept }

// lane is a footing.Lane of such a node.
type lane struct{ pool *driver.Pool }

// Tell implements footing.Lane.
func (l lane) Tell(headers []byte, id string, payload []byte) error {
	return l.pool.Region().TellWith(&driver.Headers{B: headers}, id, payload)
}

// Ask implements footing.Lane.
func (l lane) Ask(ctx context.Context, headers []byte, id string, payload []byte) ([]byte, error) {
	return l.pool.Region().AskWith(ctx, &driver.Headers{B: headers}, id, payload)
}

// AskFunc implements footing.Lane.
func (l lane) AskFunc(d time.Duration, headers []byte, id string, payload []byte, done func([]byte, error)) error {
	return l.pool.Region().AskFuncWith(d, &driver.Headers{B: headers}, id, payload, done)
}

// Home implements footing.Lane.
func (l lane) Home(n route.ShardID) (kith.ID, bool) { return l.pool.Region().Home(n) }

// ShardAt implements footing.Lane.
func (l lane) ShardAt(node kith.ID) (route.ShardID, bool) { return l.pool.ShardAt(node) }

// Load implements footing.Lane.
func (l lane) Load(node kith.ID) int { return l.pool.Load(node) }

// SetHomes implements footing.Lane.
func (l lane) SetHomes(ctx context.Context, version uint64, wishes []strategy.Wish) error {
	return driver.SetHomes(ctx, l.pool.Region(), version, wishes)
}

// Move implements footing.Lane.
func (l lane) Move(ctx context.Context, n route.ShardID, to kith.ID) error {
	return driver.Move(ctx, l.pool.Region(), n, to)
}

// Linger implements footing.Lane.
func (l lane) Linger(ctx context.Context, on bool) error {
	return driver.Linger(ctx, l.pool.Region(), on)
}

// Refused implements footing.Lane.
func (l lane) Refused() error { return l.pool.Region().Refused() }
