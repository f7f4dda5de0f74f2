// What the tests of several rooms begin with.

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// checks are the checkers of a world.
func checks(w *world) *checker { return w.check.(*checker) }

// broken returns the promises that are broken in a world.
func broken(w *world) []string { return checks(w).Broken() }

// formed returns a world of n nodes that are Up, with these types.
func formed(t *testing.T, n int, cfg Config, types ...*entityType) *world {
	t.Helper()
	w, _ := newChecked(n, 1, cfg)
	require.Empty(t, w.form(types...))
	t.Cleanup(w.end)
	return w
}

type handlerFunc func(c *entity.Context, b []byte) error

func (h handlerFunc) Receive(c *entity.Context, b []byte) error { return h(c, b) }
func (h handlerFunc) Stop(*entity.Context)                      {}

// silent is an entity that does nothing.
func silent(string, route.Fence) entity.Handler {
	return handlerFunc(func(*entity.Context, []byte) error { return nil })
}
