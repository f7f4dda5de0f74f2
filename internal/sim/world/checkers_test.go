// The checkers, from above: they watch the worlds of the tests of this room as they watch any other.

package world_test

import (
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
)

func init() { world.Checkers = func(w *world.World) world.Watcher { return check.New(w) } }
