// State: a node between two verbs as bytes, and a node that goes on from there.

package flight

import (
	"fmt"

	"github.com/kith-io/kith/internal/core/node"
)

// Freeze appends the state of a node between a Drain and its next verb, and returns b as it was with an error when that
// is more than limit bytes (0: no limit), or holds what is no plain value, such as a detector of somebody's own.
func Freeze(b []byte, n *node.Node, limit int) ([]byte, error) {
	b, err := appendValue(b, n, limit)
	if err != nil {
		return b, fmt.Errorf("flight: state of the node: %w", err)
	}
	return b, nil
}

// Thaw returns a node that goes on as the one that was frozen did, if it was made with cfg; it calls the functions of
// cfg.
func Thaw(cfg node.Config, state []byte) (*node.Node, error) {
	n, _, err := thaw(cfg, state, false)
	return n, err
}

// freezeBare is Freeze for a record: without the contents of what shards hand over.
func freezeBare(n *node.Node, limit int) ([]byte, error) {
	b, err := appendBare(nil, n, limit)
	if err != nil {
		return b, fmt.Errorf("flight: state of the node: %w", err)
	}
	return b, nil
}

// thaw returns the strategies, too, that somebody has to answer for. bare: contents were left out.
func thaw(cfg node.Config, state []byte, bare bool) (*node.Node, []*Asked, error) {
	n, d := node.New(cfg), decoder{b: state, bare: bare}
	if err := d.top(n); err != nil {
		return nil, nil, fmt.Errorf("flight: state of the node: %w", err)
	}
	return n, d.asked, nil
}
