// What the tests of this room begin with. The checkers stand above it, so the outside half of the tests brings them.

package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/sim/setup"
)

// Checkers watch the worlds of these tests. They have a method Broken, which returns the promises that are broken.
var Checkers func(w *World) Watcher

// broken returns the promises that are broken in a world.
func broken(w *World) []string { return w.Watcher.(interface{ Broken() []string }).Broken() }

// formed returns a world of n nodes that are Up, with these types.
func formed(t *testing.T, n int, cfg setup.Config, types ...*EntityType) *World {
	t.Helper()
	w := New(n, 1, cfg, Checkers)
	require.Empty(t, w.Form(types...))
	t.Cleanup(w.End)
	return w
}

type handlerFunc func(c *entity.Context, b []byte) error

func (h handlerFunc) Receive(c *entity.Context, b []byte) error { return h(c, b) }
func (h handlerFunc) Stop(*entity.Context)                      {}
