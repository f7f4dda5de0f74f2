// Config: what a programmer says of a partition, and the words for it.

package partition

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/route"
)

// MaxOpen is how many partitions a node opens at most.
const MaxOpen = 64

// maxHops is how often a message is sent on by nodes that do not host the instance.
const maxHops = 8

// Words of package cluster.
type (
	// Count is how many instances there are, as data: Exactly, Survives, Share, Scaled.
	Count = cluster.Count
	// Handoff is how an instance goes from one node to another: Stateless, Ordered, Lossy, or options of your own.
	Handoff = cluster.Handoff
	// State is a partition in the table: its definition, where its instances are, what is being handed over.
	State = cluster.Partition
	// Change is an instance that is being handed over.
	Change = cluster.PartitionChange
	// Definition is what all nodes know of Config.
	Definition = cluster.PartitionDefinition
)

// The hand-offs that have a name.
var (
	Stateless = cluster.Stateless // no gap, no order across a move, two instances for a moment
	Ordered   = cluster.Ordered   // the order of each sender, one instance at a time, state moves
	Lossy     = cluster.Lossy     // what comes meanwhile is refused and reported
)

// Exactly is n instances, 1 to 32.
func Exactly(n int) Count { return table.Exactly(n) }

// Survives is so many instances that one is left when that many nodes fail: one more, at most 32.
func Survives(failures int) Count { return table.Survives(failures) }

// Share is that many percent of the nodes, 1 to 100, rounded up.
func Share(percent int) Count { return table.Share(percent) }

// Scaled is one instance for each load that one carries: at least least and at most most, 1 to 32. The load is
// Config.Hint, in a unit of your own. Without a Hint it is how many messages a second all instances handle: the node
// of the first asks the others each ten seconds, and defines the partition anew when another number carries the load in
// two looks one after the other. The number falls when the rest has a fifth of room left. State.Hint is the load that
// it follows.
func Scaled(least, most, load int) Count { return table.Scaled(least, most, load) }

// Errors of what defines a partition; match them with errors.Is.
var (
	ErrBadPath    = cluster.ErrBadPath
	ErrBadCount   = cluster.ErrBadCount
	ErrBadHandoff = cluster.ErrBadHandoff
	ErrFull       = cluster.ErrPartitionsFull
	ErrBadConfig  = errors.New("partition: bad configuration")
	ErrOpen       = errors.New("partition: the path is open on this node")
	ErrTooMany    = errors.New("partition: too many are open on this node")
	ErrNoRules    = errors.New("partition: it has no rules of its own, and no partition above it is defined")
	ErrUndefined  = errors.New("partition: its definition was taken back")
)

// Errors of messages and moves; match them with errors.Is. Nobody has handled the message then. All but the first and
// the last may come from another node.
var (
	ErrNotPlaced        = errors.New("partition: no leader has placed it yet, as far as this node knows")
	ErrNoInstance error = route.NewError("partition.no-instance", route.KindNotFound, "partition: no such instance")
	ErrMoving     error = route.NewError("partition.moving", route.KindUnavailable,
		"partition: the instance is being handed over, and refuses messages meanwhile")
	ErrMoved error = route.NewError("partition.moved", route.KindUnavailable,
		"partition: the instance has moved, and its old node sends nothing on")
	ErrNotOpen error = route.NewError("partition.not-open", route.KindUnavailable,
		"partition: the node of the instance has not opened the path")
	ErrAstray error = route.NewError("partition.astray", route.KindUnavailable,
		"partition: sent on too often: the tables of the nodes differ")
	ErrUnreachable error = route.NewError("partition.unreachable", route.KindUnavailable,
		"partition: no way to the node of the instance")
	ErrNotMade  error = route.NewError("partition.not-made", route.KindInternal, "partition: New made no handler")
	ErrNotMoved       = errors.New("partition: the leader has not moved it: the node may not host it, or was full by then")
)

// Config declares a partition. Path, Instances, Handoff, Role and Hint are to be the same on all nodes: where two
// differ the one that was opened last stands for all, and both nodes report it (Partition.Err, a log line).
type Config struct {
	// Path names the partition in the whole cluster: "market/prices", at most 255 bytes and 16 segments.
	Path string
	// Instances is how many there are. The zero value takes Instances, Handoff, Role and Hint from the nearest partition
	// above in the path that is defined, and follows it.
	Instances Count
	// Handoff is how an instance goes to another node; the zero value is Stateless.
	Handoff Handoff
	// Role limits the nodes that host instances to members with it; empty means all. A member that may host an instance
	// has to open the partition.
	Role string
	// Hint is the load that is expected, in the unit of Scaled; 0: it is measured.
	Hint int
	// New makes the instance of a slot, 0 to 31, when it begins on this node. The fence grows from instance to instance of
	// a slot, but where the partition goes over from a hand-off that buffers to one that does not: all fences of the
	// former are above those of the latter. Of hand-offs that buffer (Ordered) it is that of an owner, with 2^31 more as
	// its term, and no other instance lives under a later one. Of all others two instances of a slot may live at a time,
	// so that it only tells which began later. Context.Fence is the same one. The instance gets one call at a time, and
	// may block. If it is Stateful and the hand-off buffers, its state moves.
	New func(slot int, f kith.Fence) kith.Handler
	// Refused, if not nil, is called for each message of Tell, TellAny, TellAt and TellAll from this node that another
	// node, or this one, has refused later: by its hand-off, or because the tables of nodes differed. It may block: other
	// reports of the partition wait for it then. What was lost with a node or a connection, or found no room there (a
	// full mailbox or budget), is counted in the Undelivered of kith.Config.
	Refused func(Refused)
}

// Refused is a message that came back.
type Refused struct {
	Path    string
	Slot    int
	By      kith.ID // the node that refused it
	Err     error   // why: ErrMoving, ErrMoved, ErrNoInstance, ErrNotOpen, ErrAstray, ErrUnreachable, ErrNotMade
	Payload []byte  // valid during the call
}

// inherits reports whether the rules are those of a partition above.
func (c *Config) inherits() bool { return c.Instances == Count{} }

// definition is what all nodes know.
func (c *Config) definition() Definition {
	return Definition{Path: c.Path, Count: c.Instances, Handoff: c.Handoff, Role: c.Role, Hint: c.Hint}
}

// Validate returns what is wrong with c: ErrBadPath, ErrBadCount, ErrBadHandoff, ErrBadConfig.
func (c Config) Validate() error {
	if c.New == nil {
		return fmt.Errorf("%w: %.300q: New is nil", ErrBadConfig, c.Path)
	}
	if !c.inherits() {
		if err := table.Check(c.definition()); err != nil {
			return fmt.Errorf("partition: open: %w", err)
		}
		return nil
	}
	if c.Handoff != (Handoff{}) || c.Role != "" || c.Hint != 0 {
		return fmt.Errorf("%w: %.300q: it has a Handoff, Role or Hint, but no Instances", ErrBadConfig, c.Path)
	}
	if err := table.CheckPath(c.Path); err != nil {
		return fmt.Errorf("partition: open: %w", err)
	}
	return nil
}

// DiffersError says that another node defined the partition later and differently: its definition stands.
type DiffersError struct {
	Mine, Theirs Definition
	By           kith.ID
}

// Error names both.
func (e *DiffersError) Error() string {
	a, b := &e.Theirs, &e.Mine
	return fmt.Sprintf("partition: %q: %s defined it later as %s %d, %s, role %q, not %s %d, %s, role %q", b.Path, e.By,
		a.Count.Kind, a.Count.N, a.Handoff, a.Role, b.Count.Kind, b.Count.N, b.Handoff, b.Role)
}
