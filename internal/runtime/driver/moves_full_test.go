// Buffers at their limit in the middle of a move.

package driver

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// numbered is a stayer that takes as long for each message as the test does.
type numbered struct {
	stayer
	numbers chan uint32
}

func (h *numbered) Receive(_ *entity.Context, payload []byte) error {
	h.numbers <- binary.LittleEndian.Uint32(payload) // as many as it has room for: then it waits
	return nil
}

// What finds no room in a move any more is refused by name, at once, other shards of the type are served, and all that
// was accepted is handled in order, though it is many times what a mailbox holds (SHD-4, SHD-12, parked-never-refused).
func TestBuffersThatAreFullInAMove(t *testing.T) {
	const size, bound = 1000, 2 << 20
	m := newMovers(t, func(c *Config) { c.Sharding.ParkBytes, c.Sharding.DrainTime = bound, 20*time.Millisecond })
	h := &numbered{stayer{stopping: make(chan struct{}, 1), on: make(chan struct{})}, make(chan uint32, 4)}
	for _, d := range m.nodes {
		_, err := d.Register(entity.Type{Name: "full", Shards: 2, MailboxBytes: entity.MinMailboxBytes,
			New: func(string, route.Fence) entity.Handler { return h }})
		require.NoError(t, err)
	}
	d := m.nodes[1]
	r := d.regionNamed("full")
	id, other := "a", "b"
	for r.Shard(other) == r.Shard(id) {
		other += "b"
	}
	payload := make([]byte, size)
	require.NoError(t, r.Tell(id, payload))
	require.NoError(t, r.Tell(other, payload))
	require.Zero(t, <-h.numbers+<-h.numbers)
	from, to := m.home("full", r.Shard(id)), m.nodes[0]
	if to == from {
		to = m.nodes[2]
	}
	eventually(t, func() bool { return m.move("full", r.Shard(id), to) == nil })
	<-h.stopping
	sent, refused := uint32(0), 0
	for refused < 10 {
		binary.LittleEndian.PutUint32(payload, sent+1)
		err := r.Tell(id, payload)
		var full *route.ParkFullError
		switch {
		case err == nil:
			sent++
		case errors.As(err, &full):
			require.ErrorIs(t, err, route.ErrParkFull)
			require.NotZero(t, full.Limit)
			refused++
		default:
			require.NoError(t, err)
		}
	}
	require.Greater(t, int(sent)*size, 4*entity.MinMailboxBytes)
	binary.LittleEndian.PutUint32(payload, 0)
	require.NoError(t, r.Tell(other, payload))
	require.Zero(t, <-h.numbers, "another shard is served")
	close(h.on)
	for n := range sent {
		var got uint32
		eventually(t, func() bool {
			select {
			case got = <-h.numbers:
				return true
			default:
				return false
			}
		})
		require.Equal(t, n+1, got)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, m.lost)
}
