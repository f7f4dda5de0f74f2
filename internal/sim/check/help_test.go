// What the tests of this room begin with.

package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// checks are the checkers of a world.
func checks(w *world.World) *Checker { return w.Watcher.(*Checker) }

// formed returns a world of n nodes that are Up, with these types.
func formed(t *testing.T, n int, cfg setup.Config, types ...*world.EntityType) *world.World {
	t.Helper()
	w, _ := NewWorld(n, 1, cfg)
	require.Empty(t, w.Form(types...))
	t.Cleanup(w.End)
	return w
}

type handlerFunc func(c *entity.Context, b []byte) error

func (h handlerFunc) Receive(c *entity.Context, b []byte) error { return h(c, b) }
func (h handlerFunc) Stop(*entity.Context)                      {}

// silent is an entity that does nothing.
func silent(string, route.Fence) entity.Handler {
	return handlerFunc(func(*entity.Context, []byte) error { return nil })
}
