// Source: where messages of other nodes come from, and where what is said to them goes.

package exec

import (
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/peer"
)

// Source is one data connection to another node, as execution knows it: immutable, compared by its address, and nil for
// this node itself. Its maker holds it in its own value for the connection, and finds that again by Origin.
type Source struct {
	ID     peer.ID
	Origin entity.Origin // answers what came over the connection
}

// originOf is where the answers to an ask go; nil stands for this node.
func (x *Exec) originOf(from *Source) entity.Origin {
	if from == nil {
		return x.cfg.Origin
	}
	return from.Origin
}
