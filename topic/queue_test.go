// Tests of what waits for a subscriber.

package topic

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a subscriber takes comes in order, and Missed says exactly what it did not get, within its bounds (REP-2).
func TestQueueLaw(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := newQueue(Bounds{Messages: 1 + r.IntN(20), Bytes: 4 + r.IntN(400)})
		put, last := uint32(0), uint32(0)
		take := func() {
			if m, ok := q.take(); ok {
				number := binary.LittleEndian.Uint32(m.Payload)
				require.Equal(t, number, last+1+uint32(m.Missed), "seed %d", seed)
				last = number
			}
		}
		for range 500 {
			if r.IntN(3) == 0 {
				take()
				continue
			}
			lost := uint32(max(0, r.IntN(16)-12))
			put += 1 + lost
			payload := make([]byte, 4+r.IntN(100))
			binary.LittleEndian.PutUint32(payload, put)
			q.put(Message{Payload: payload}, uint64(lost))
			require.LessOrEqual(t, q.count, q.bounds.Messages)
			require.True(t, q.count == 1 || q.bytes <= q.bounds.Bytes)
		}
		for q.count > 0 {
			take()
		}
		require.Equal(t, put, last+uint32(q.missed))
		require.Zero(t, q.bytes)
	}
}

func TestBounds(t *testing.T) {
	require.NoError(t, Bounds{}.Validate())
	err := Bounds{Messages: MaxMessages + 1, Bytes: -1}.Validate()
	require.ErrorIs(t, err, ErrBadBounds)
	require.ErrorContains(t, err, "Messages is 1048577")
	require.ErrorContains(t, err, "Bytes is -1")
}
