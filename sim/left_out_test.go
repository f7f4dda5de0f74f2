// Flight records of nodes that hand over much: they go on, they replay, and the states are not in them.

package sim

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/route"
)

// secretState is an entity with a state of 200 KiB that nobody is to read in a record.
type secretState struct{}

const secret = "nobody is to read this"

func (secretState) Receive(*entity.Context, []byte) error { return nil }
func (secretState) Stop(*entity.Context)                  {}
func (secretState) TakeUp(*entity.Context, []byte) error  { return nil }
func (secretState) HandOver(*entity.Context) ([]byte, error) {
	return bytes.Repeat([]byte(secret), 200<<10/len(secret)), nil
}

// TestRecordsGoOnBehindHandOvers: a node's ring holds 40 KiB, and shards of megabytes move. The records of the giver
// and of the takers go on and replay to the end; they say how much was left out of them, and none of it is in them
// (OPS-1).
func TestRecordsGoOnBehindHandOvers(t *testing.T) {
	c := New(t, 3, 1, func(cfg *Config) { cfg.FlightBytes, cfg.Network.Rate = 40<<10, 1_200_000 })
	c.Register(entity.Type{Name: "x", Shards: 12, New: func(string, route.Fence) entity.Handler { return secretState{} }})
	c.AwaitUp()
	for i := range 400 {
		require.NoError(t, c.Tell(0, "x", fmt.Sprint(i), nil))
	}
	c.Advance(5 * time.Second)
	c.Leave(0)
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(0) }))
	c.Advance(5 * time.Second)
	left := uint64(0)
	for _, p := range c.w.Processes {
		rec, err := p.Node.Record()
		require.NoError(t, err)
		require.Empty(t, rec.Over)
		left += rec.LeftOut
		var file bytes.Buffer
		require.NoError(t, rec.Write(&file))
		require.NotContains(t, file.String(), secret)
		read, err := flight.Read(&file)
		require.NoError(t, err)
		require.Equal(t, rec.Header, read.Header)
		require.NoError(t, read.Replay(func(*flight.Step) error { return nil }), p.ID)
	}
	require.Greater(t, left, uint64(10<<20))
}
