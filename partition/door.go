// Door: what the partitions of a node have of it: the table in the gossiped state, and commands that change it.

package partition

import (
	"context"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/membership"
)

// doorOf returns the door of a node.
func doorOf(node *kith.Node) door { return nodeDoor{driver.PartitionsOf(node)} }

type nodeDoor struct{ t driver.Partitions }

// Table implements door.
func (d nodeDoor) Table() []State { return d.t.Table() }

// Changed implements door: followers of the node's events hear of it.
func (nodeDoor) Changed() <-chan struct{} { return nil }

// Define implements door.
func (d nodeDoor) Define(ctx context.Context, is Definition) error {
	return d.t.Do(ctx, membership.DefineCommand{Definition: is})
}

// Undefine implements door.
func (d nodeDoor) Undefine(ctx context.Context, path string) error {
	return d.t.Do(ctx, membership.UndefineCommand{Path: path})
}

// Move implements door.
func (d nodeDoor) Move(ctx context.Context, path string, slot int, to kith.ID) error {
	return d.t.Do(ctx, membership.MoveInstanceCommand{Path: path, Slot: slot, To: to})
}

// Complete implements door.
func (d nodeDoor) Complete(ctx context.Context, c Change) error {
	return d.t.Do(ctx, membership.CompleteCommand{Change: c})
}
