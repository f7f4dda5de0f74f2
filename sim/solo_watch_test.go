// Tests of watches of an entity that is alone.

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

// mourner watches the entities that its messages name, and reports each end that it hears.
type mourner struct{}

func (mourner) Receive(c *entity.Context, payload []byte) error {
	if end, ok := c.Ended(); ok {
		return c.Tell("log", end.ID, []byte(end.Cause.String()))
	}
	switch string(payload) {
	case "go":
		c.Passivate()
	case "back":
		c.Unwatch("account", "anna")
	default:
		return c.Watch("account", string(payload))
	}
	return nil
}

func (mourner) Stop(*entity.Context) {}

// A test has its entity hear of ends as on a node: each once, not of what was taken back, and not in a later instance
// (SHD-12).
func TestEntityWatches(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		e := sim.NewEntity(t, entity.Type{Name: "m", Mode: mode,
			New: func(string, route.Fence) entity.Handler { return mourner{} }}, "m", sim.EntityConfig{})
		anna := entity.Ended{Type: "account", ID: "anna", Cause: entity.EndedMoved}
		require.NoError(t, e.Tell([]byte("anna")).Err)
		require.NoError(t, e.Tell([]byte("anna")).Err)
		require.NoError(t, e.Tell([]byte("bert")).Err)
		require.Equal(t, []sim.Watch{{Type: "account", ID: "anna"}, {Type: "account", ID: "bert"}}, e.Watches())
		c := e.End(anna)
		require.Len(t, c.Sent, 1)
		require.Equal(t, "moved", string(c.Sent[0].Payload))
		require.Empty(t, e.End(anna).Sent, "once")
		e.Tell([]byte("anna"))
		e.Tell([]byte("back"))
		require.Empty(t, e.End(anna).Sent)
		e.Tell([]byte("go"))
		require.Empty(t, e.Watches())
	}
}
