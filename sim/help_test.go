// What the tests of the kit begin with.

package sim

import (
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
)

// checks are the checkers of a world.
func checks(w *world.World) *check.Checker { return w.Watcher.(*check.Checker) }

type handlerFunc func(c *entity.Context, b []byte) error

func (h handlerFunc) Receive(c *entity.Context, b []byte) error { return h(c, b) }
func (h handlerFunc) Stop(*entity.Context)                      {}
