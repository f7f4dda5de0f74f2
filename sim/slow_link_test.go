// Slow links: what is planned takes longer there, and is no reason to take anybody for dead.

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// heavyState is an entity with a state of 200 KiB that it hands over.
type heavyState struct{ taken *int }

func (h *heavyState) Receive(c *entity.Context, _ []byte) error { return nil }
func (h *heavyState) Stop(*entity.Context)                      {}
func (h *heavyState) HandOver(*entity.Context) ([]byte, error)  { return make([]byte, 200<<10), nil }
func (h *heavyState) TakeUp(_ *entity.Context, state []byte) (err error) {
	*h.taken++
	return nil
}

// TestLeaveOverSlowLinks: nodes with links of 3.2 Mbit/s leave one after the other, each with ten megabytes of states.
// It takes as long as the bytes take, and nobody is late with a sign of life meanwhile (SHD-12, FD-1).
func TestLeaveOverSlowLinks(t *testing.T) {
	const entities = 240
	c := New(t, 5, 1, func(cfg *Config) { cfg.Network = Network{Rate: 400_000} })
	taken := 0
	c.Register(entity.Type{Name: "x", Shards: 60, New: func(string, route.Fence) entity.Handler {
		return &heavyState{&taken}
	}})
	c.AwaitUp()
	for i := range entities {
		require.NoError(t, c.Tell(0, "x", fmt.Sprint(i), nil))
	}
	c.Advance(10 * time.Second)
	for n := range 2 {
		began := c.Now()
		c.Leave(n)
		require.True(t, c.Until(3*time.Minute, func() bool { return !c.Running(n) }))
		require.Less(t, c.Now()-began, 30*time.Second, "before the leave gives up")
		require.Equal(t, membership.EndLeft, c.Ended(n).Kind)
		c.Advance(5 * time.Second)
	}
	require.Greater(t, taken, entities/5+entities/5)
	for n := 2; n < 5; n++ {
		require.True(t, c.Running(n))
		for _, e := range c.Events(n) {
			require.NotContains(t, []membership.EventKind{membership.UnreachableMember, membership.MemberDowned}, e.Kind,
				"n%d of %s", n+1, e.Member.ID)
		}
	}
}

// TestLeaveOverLinksThatLose: control messages get lost and are repeated, so each move takes long however few there
// are. The leaver's states move in time all the same (SHD-9, SHD-12).
func TestLeaveOverLinksThatLose(t *testing.T) {
	c := New(t, 4, 1, func(cfg *Config) {
		cfg.Network = Network{Raw: RawNetwork{Loss: 0.07, Duplicate: 0.04, Spread: 150 * time.Millisecond}}
	})
	taken := 0
	c.Register(entity.Type{Name: "x", Shards: 128, New: func(string, route.Fence) entity.Handler {
		return &heavyState{&taken}
	}})
	c.AwaitUp()
	for i := range 256 {
		require.NoError(t, c.Tell(0, "x", fmt.Sprint(i), nil))
	}
	c.Advance(15 * time.Second)
	c.Pause(2, 4*time.Second)
	c.Leave(3)
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(3) }))
	require.Zero(t, c.w.Plane.StatesLost)
	require.Greater(t, taken, 256/5)
}
