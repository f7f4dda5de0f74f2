// Reports: what all members have of a type, for people and dashboards.

package kith

import (
	"context"
	"maps"
	"slices"

	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/shard"
)

// Regions returns the types registered on this node, in the order of their registration. The slice is the caller's.
func (n *Node) Regions() []*Region {
	var list []*Region
	for _, r := range driver.Regions(n.d) {
		list = append(list, &Region{r: r})
	}
	return list
}

// TypeReport is what the members had of a type when they answered, each at a moment of its own: a shard that moves may
// be listed twice, or nowhere. It is the caller's.
type TypeReport struct {
	Name        string
	Shards      uint32       // of the type
	Coordinator ID           // zero: no member that answered coordinates it
	Nodes       []NodeReport // one for each member that answered, by identity
	Moves       []MoveState  // under way, by shard: as the coordinator knows them
	Missing     []ID         // members that did not answer in time, or are of a version that cannot (before 5)
}

// NodeReport is what one member has of a type.
type NodeReport struct {
	Node       ID
	Registered bool   // the type is registered there
	Entities   uint64 // that live there, up to a tenth of a second ago, or 20 µs for each shard that the node has
	Shards     []ShardReport
	// Leases are the singletons that would live there and wait for their lease: of this node only. One that waits at
	// another node has a shard there, and no entity.
	Leases []LeaseWait
}

// ShardReport is one shard that lives at a node.
type ShardReport struct {
	Shard    ShardID
	Entities uint32 // that live in it, as old as those of its node
	Stopping bool   // it is being stopped, to be moved or because its node leaves
}

// The parts of TypeReport that package shard holds.
type (
	// MoveState is a move of a shard under way: Shard, From, To, Number, Phase, and Age since it began.
	MoveState = shard.MoveState
	// MovePhase is how far a move is: MoveHolds, MoveWaits, MoveStarts.
	MovePhase = shard.MovePhase
)

// The phases of a move.
const (
	MoveHolds  = shard.MoveHolds  // senders hold back and mark; the owner works off what it has, and stops
	MoveWaits  = shard.MoveWaits  // the owner has stopped; the shard waits for a member that takes it
	MoveStarts = shard.MoveStarts // the next owner was ordered to host it
)

// Report asks all members what they have of the type: where its shards live, how many entities they hold, and which
// moves are under way. It returns when all have answered or ctx ends; then Missing names those that have not, and that
// is no error. It costs a message to each member and back, more than one for a member with over 4,096 shards; reports
// of a type that are wanted at the same time cost it once, and share answers that are up to 350 ms older than the call.
// Errors: that of a node that has ended, and that of a ctx that has ended before the call.
func (r *Region) Report(ctx context.Context) (TypeReport, error) {
	typ := r.r.Type()
	result, err := driver.Survey(ctx, r.r)
	if err != nil {
		return TypeReport{}, err
	}
	rep := TypeReport{Name: typ.Name, Shards: typ.Shards, Missing: result.Missing}
	term := uint32(0)
	for _, id := range slices.SortedFunc(maps.Keys(result.Answers), ID.Compare) {
		a := result.Answers[id]
		n := NodeReport{Node: id, Registered: a.Known, Entities: a.Entities}
		for _, s := range a.List {
			n.Shards = append(n.Shards, ShardReport{s.ID, s.Entities, s.Stopping})
		}
		if list, here := driver.LeaseWaits(r.r, id); here {
			n.Leases = list
		}
		rep.Nodes = append(rep.Nodes, n)
		if a.Term > term { // of two, the later one
			term, rep.Coordinator, rep.Moves = a.Term, id, a.Moves
		}
	}
	return rep, nil
}
