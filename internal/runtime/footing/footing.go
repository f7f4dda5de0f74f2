// Footing: what package partition needs of a node.

// Package footing says what partitions stand on: a node of package kith, or a process of a simulated cluster, so that
// the same code hosts instances, hands them over and finds them on both.
package footing

import (
	"context"
	"log/slog"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Node is what partitions need of their node. Its methods are safe for concurrent use.
type Node interface {
	ground.Ground
	ID() peer.ID
	// View is the membership as the node knows it, with the partition table; nil before it is in a cluster. It must not
	// be changed.
	View() *membership.View
	// Follow calls ping after each change of the view, until ctx or the node ends. It waits that long.
	Follow(ctx context.Context, ping func())
	// Do gives the node a command, and returns what it says.
	Do(ctx context.Context, cmd membership.Command) error
	// Lane registers a type whose shards all have homes that all nodes know, as those of a pool of one worker a node.
	Lane(t entity.Type) (Lane, error)
	// Hosts is how many nodes can host instances of hand-offs that do not buffer.
	Hosts() uint32
	// Draining says whether everything is to move away from the node; Converged whether all members have seen one state.
	Draining() bool
	Converged(ctx context.Context) (bool, error)
	// OnLeave has leave called when the node leaves, before it gives its shards back.
	OnLeave(leave func(ctx context.Context) error) error
	// Err returns why the node has ended, nil while it runs.
	Err() error
	// AskTimeout is how long an ask without a limit of its own waits.
	AskTimeout() time.Duration
	Log() *slog.Logger
	// Kept is what the partitions of the node share.
	Kept() *any
}

// Lane carries messages to the entities of a type, and shows where its shards live.
type Lane interface {
	// Tell never waits; Ask waits for an answer; AskFunc has done called with it, once, unless it returns an error.
	// headers and payload are copied.
	Tell(headers []byte, id string, payload []byte) error
	Ask(ctx context.Context, headers []byte, id string, payload []byte) ([]byte, error)
	AskFunc(d time.Duration, headers []byte, id string, payload []byte, done func([]byte, error)) error
	// Home is where a shard lives as far as this node knows.
	Home(n route.ShardID) (peer.ID, bool)
	// ShardAt is a shard on a node, always the same one while it is there; Load how many bytes wait here for that node.
	ShardAt(node peer.ID) (route.ShardID, bool)
	Load(node peer.ID) int
	// SetHomes updates the wishes of strategy.External on this node; Move asks the coordinator to move a shard, and
	// returns nil when that has begun.
	SetHomes(ctx context.Context, version uint64, wishes []strategy.Wish) error
	Move(ctx context.Context, n route.ShardID, to peer.ID) error
	// Linger has the shards of this node stay while it drains, in all drains from now on; off, they go in the one under
	// way.
	Linger(ctx context.Context, on bool) error
	// Refused returns why the cluster does not have the type on this node.
	Refused() error
}
