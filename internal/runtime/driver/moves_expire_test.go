// What waits for a shard that moves does not expire, however long its owner takes to stop.

package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// stayer is an entity with a stop call that returns when it is let go.
type stayer struct {
	got      chan string
	stopping chan struct{}
	on       chan struct{}
}

func (h *stayer) Receive(_ *entity.Context, payload []byte) error {
	h.got <- string(payload)
	return nil
}

func (h *stayer) Stop(*entity.Context) {
	select {
	case h.stopping <- struct{}{}:
	default:
	}
	<-h.on
}

// What is parked in a move waits for longer than ParkTime, of each sender, and is handled when the shard has moved
// (SHD-9, parked-never-expire).
func TestParkedInAMoveNeverExpire(t *testing.T) {
	const park = 300 * time.Millisecond
	m := newMovers(t, func(c *Config) { c.Sharding.ParkTime, c.Sharding.DrainTime = park, 20*time.Millisecond })
	h := &stayer{make(chan string, 10), make(chan struct{}, 1), make(chan struct{})}
	for _, d := range m.nodes {
		_, err := d.Register(entity.Type{Name: "stayer", Shards: 1,
			New: func(string, route.Fence) entity.Handler { return h }})
		require.NoError(t, err)
		_, err = d.Register(entity.Type{Name: "nowhere", Role: "nobody", Shards: 1,
			New: func(string, route.Fence) entity.Handler { return h }})
		require.NoError(t, err)
	}
	for _, d := range m.nodes {
		require.NoError(t, d.regionNamed("stayer").Tell("a", []byte("first")))
		require.Equal(t, "first", <-h.got)
	}
	from, to := m.home("stayer", 0), m.nodes[0]
	if to == from {
		to = m.nodes[1]
	}
	eventually(t, func() bool { return m.move("stayer", 0, to) == nil })
	<-h.stopping
	for _, d := range m.nodes {
		require.NoError(t, d.regionNamed("stayer").Tell("a", []byte("parked")))
	}
	for i := range 4 { // a type without a home shows that the time of what waits is over, again and again
		require.NoError(t, from.regionNamed("nowhere").Tell("a", []byte("lost")))
		eventually(t, func() bool { return len(m.lostOf("nowhere")) > i })
	}
	close(h.on)
	eventually(t, func() bool { return m.home("stayer", 0) == to })
	got := 0
	eventually(t, func() bool {
		select {
		case text := <-h.got:
			require.Equal(t, "parked", text)
			got++
		default:
		}
		return got == len(m.nodes)
	})
	require.Empty(t, m.lostOf("stayer"))
}

// lostOf returns what was reported of a type.
func (m *movers) lostOf(typ string) (list []Undelivered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.lost {
		if u.Type == typ {
			list = append(list, u)
		}
	}
	return list
}
