// Topics: what package topic needs of a node.

package footing

import (
	"context"
	"iter"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// Topics is what topics need of their node. Its methods are safe for concurrent use.
type Topics interface {
	ground.Ground
	ID() peer.ID
	// View is the membership as the node knows it; nil before it is in a cluster. It must not be changed.
	View() *membership.View
	// Views yields each view in which members have come or gone, until ctx or the node ends.
	Views(ctx context.Context) iter.Seq[*membership.View]
	// Err returns why the node has ended, nil while it runs.
	Err() error
	// MaxPayload is the largest payload of a message, in bytes.
	MaxPayload() int
	// Crew registers a type of which each node has one worker.
	Crew(t entity.Type) (Crew, error)
	// Nodes is a replicated set of nodes under a name, a replicated.ORSet[string].
	Nodes(name string) (Value, error)
}

// Crew carries messages to the worker of a node.
type Crew interface {
	// TellAt never waits, and copies payload.
	TellAt(node peer.ID, payload []byte) error
}

// Value is a replicated value.
type Value interface {
	Load() any
	// Update changes it by change, and waits until all members have the change where all is true.
	Update(ctx context.Context, all bool, change func(v any) any) error
	// Watch yields the value, and then each later one, until ctx or the node ends; those in between may be left out.
	Watch(ctx context.Context) iter.Seq[any]
}
