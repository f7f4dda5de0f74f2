// A shard at the deadline of its move, behind what waits for others of its worker.

package exec

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// What waits for a shard at its deadline is taken out of its worker's queue, however much waits there for others: own
// messages and those of others, in order. The others lose nothing and keep theirs (SHD-9, deadline).
func TestCutTakesItOutOfTheBacklog(t *testing.T) {
	const sent = 400
	got, on := make(chan string, 4*sent), make(chan struct{})
	var slow atomic.Int64
	x := newBare(t, typeOf(entity.Worker, 2, func(c *entity.Context, payload []byte) error {
		if c.Shard == 0 {
			<-on
			slow.Add(1)
		}
		got <- fmt.Sprint(c.Shard, " ", string(payload))
		return nil
	}))
	ids := [2]string{}
	for i := 0; ids[0] == "" || ids[1] == ""; i++ {
		id := fmt.Sprint(i)
		ids[route.ShardOf(id, 2)] = id
	}
	var frames []byte
	require.Equal(t, route.OK, x.send(ids[0], []byte("first")))
	for i := range sent {
		for _, id := range ids {
			require.Equal(t, route.OK, x.send(id, fmt.Appendf(nil, "own %03d", i)))
			env := x.envelope(id, fmt.Appendf(nil, "other %03d", i))
			frames = wire.AppendEnvelope(frames, &env)
		}
	}
	x.read(t, 0, frames)
	h := x.host(ids[1])
	h.Stop(entity.StopMoved, 0, time.Millisecond, 0)
	eventually(t, func() bool { return Overdue(h) })
	for x.typ.Host(1) != nil {
		select {
		case on <- struct{}{}:
		case <-time.After(time.Millisecond):
		}
	}
	require.Less(t, slow.Load(), int64(sent/2), "it waited for what others had before it")
	left, _ := Rest(h)
	require.Len(t, left, 2*sent)
	x.typ.Begin(1, x.fence, left, nil)
	close(on)
	next := map[string]int{}
	for range 4*sent + 1 {
		var s, n int
		var from string
		text := <-got
		if text == "0 first" {
			continue
		}
		_, err := fmt.Sscanf(text, "%d %s %d", &s, &from, &n)
		require.NoError(t, err)
		key := fmt.Sprint(s, from)
		require.Equal(t, next[key], n, "of %s", key)
		next[key]++
	}
	require.Empty(t, x.told())
}
