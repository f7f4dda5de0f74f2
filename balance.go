// Balance: what a program says of where shards live: moves by hand, readiness, wishes, a pause for the whole cluster.

package kith

import (
	"context"

	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
)

// Move moves a shard to another node: whatever the strategy, with nothing lost or overtaken. Any node may say it; the
// coordinator of the type begins the move, and Move returns when it has, or why it has not. ShardEvents on the
// coordinator's node tells how it ends, and on the owner's, by MoveUntaken, why it came back. The strategy may move the
// shard on at its next round, but for External, which leaves shards without a wish where they are. Errors, of the
// coordinator or of this node: ErrNotCoordinator, ErrNoHome, ErrMoveInProgress, ErrUnknownNode, ErrUnknownShard,
// ErrAtHome, ErrIneligible, ErrTooManyMoves, ErrUnstable, ErrOldPeer. When ctx ends first, the move may have begun.
func (r *Region) Move(ctx context.Context, s ShardID, to ID) error {
	return driver.Move(ctx, r.r, s, to)
}

// SetReady declares whether this node may be given shards of the type; it may until SetReady says otherwise. A node
// that is not ready keeps what it has, the rest of a shard in a move included, and nothing moves to it or from it for
// balance. The declaration outlives a change of coordinator, not the process. SetReady returns when the node has noted
// it, not when the coordinator has.
func (r *Region) SetReady(ctx context.Context, ready bool) error {
	return driver.SetReady(ctx, r.r, ready)
}

// SetHomes updates the wishes of a type that goes by External on this node: where shards are to live, at a node's
// address, whatever its incarnation; a zero address takes a wish back. Rounds carry them out. Wishes are this node's
// own, and those of the node that coordinates count: give them to every node that may. Errors: ErrNotExternal,
// strategy.ErrStaleVersion for a version that is not above the last one, strategy.ErrBadWish.
func (r *Region) SetHomes(ctx context.Context, version uint64, wishes []ShardWish) error {
	return driver.SetHomes(ctx, r.r, version, wishes)
}

// ShardWish is where a shard is to live (Region.SetHomes).
type ShardWish = strategy.Wish

// RebalancingPausedKey is the key of the cluster's metadata (View.MetadataValue) that holds, while nothing moves for
// balance, the id of the node on which PauseRebalancing was called.
const RebalancingPausedKey = shard.PauseKey

// PauseRebalancing stops moves for balance of all types in the whole cluster until ResumeRebalancing. Moves under way
// end, leavers hand off their shards, Region.Move works. The pause is a key of the cluster's metadata,
// RebalancingPausedKey: it outlives every node but the last. Errors: those of SetMetadata.
func (n *Node) PauseRebalancing(ctx context.Context) error {
	return n.d.SetMetadata(ctx, shard.PauseKey, []byte(n.ID().String()))
}

// ResumeRebalancing takes back the word of PauseRebalancing, whichever node gave it.
func (n *Node) ResumeRebalancing(ctx context.Context) error {
	return n.d.SetMetadata(ctx, shard.PauseKey, nil)
}
