// Typed: Tell and Ask of a simulated cluster with values instead of bytes.

package sim

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/route"
)

// TypedRegion sends values of type Q to entities of one type and gets replies of type R.
type TypedRegion[Q, R any] struct {
	c     *Cluster
	typ   string
	ask   route.Codec[Q]
	reply route.Codec[R]
}

// Typed returns a typed layer over the type of that name, as kith.Typed does over a region.
func Typed[Q, R any](c *Cluster, typ string, ask route.Codec[Q], reply route.Codec[R]) *TypedRegion[Q, R] {
	return &TypedRegion[Q, R]{c, typ, ask, reply}
}

// Tell is Cluster.Tell with a value. route.ErrBadPayload wraps the codec's error.
func (t *TypedRegion[Q, R]) Tell(on int, id string, m *Q) error {
	b, err := t.ask.Append(nil, m)
	if err != nil {
		return fmt.Errorf("%w: %w", route.ErrBadPayload, err)
	}
	return t.c.Tell(on, t.typ, id, b)
}

// Ask is Cluster.Ask with values. route.ErrBadPayload wraps the error of either codec.
func (t *TypedRegion[Q, R]) Ask(on int, id string, m *Q) (R, error) {
	return t.AskWithin(patience, on, id, m)
}

// AskWithin is Cluster.AskWithin with values.
func (t *TypedRegion[Q, R]) AskWithin(d time.Duration, on int, id string, m *Q) (r R, err error) {
	b, err := t.ask.Append(nil, m)
	if err != nil {
		return r, fmt.Errorf("%w: %w", route.ErrBadPayload, err)
	}
	if b, err = t.c.AskWithin(d, on, t.typ, id, b); err != nil {
		return r, err
	}
	if err := t.reply.ParseInto(b, &r); err != nil {
		return r, route.Ran(fmt.Errorf("%w: %w", route.ErrBadPayload, err)) // the reply
	}
	return r, nil
}
