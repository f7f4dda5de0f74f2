// What the tests of this room begin with.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/sim/setup"
)

// checks are the checkers of a world.
func checks(w *world.World) *check.Checker { return w.Watcher.(*check.Checker) }

// formed returns a world of n nodes that are Up, with these types.
func formed(t *testing.T, n int, cfg setup.Config, types ...*world.EntityType) *world.World {
	t.Helper()
	w, _ := check.NewWorld(n, 1, cfg)
	require.Empty(t, w.Form(types...))
	t.Cleanup(w.End)
	return w
}
