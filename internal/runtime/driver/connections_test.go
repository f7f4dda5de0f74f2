// Tests of several data connections between two nodes: the shard chooses, answers come on the loop that read the ask,
// and what breaks fails its own asks only.

package driver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A shard's messages go over one connection, different shards' over different ones, and the answer to an ask leaves on
// the loop that read it, if the answering node has a link there (SHD-5).
func TestTheShardChoosesTheConnection(t *testing.T) {
	p := newPair(t, func(c *Config) { c.DataConnections, c.DataLoops = 3, 2 })
	r := p.at[entity.Inline]
	used := map[int]bool{}
	for i := range 40 {
		id := fmt.Sprint("entity", i)
		reply, err := r.Ask(t.Context(), id, []byte(id))
		require.NoError(t, err)
		require.Equal(t, id, string(reply))
		sh := r.Shard(id)
		e := opened(t, r, sh)
		require.Same(t, e.remote, p.a.remote(p.b.self, sh))
		require.Equal(t, int(sh)%3, e.link.Number())
		used[e.link.Number()] = true
	}
	require.Len(t, used, 3)
	require.EqualValues(t, 3, p.a.Stats().Transport.Data.Out)
	back := p.b.peerNode(p.a.self)
	for _, c := range back.conns {
		require.Same(t, p.b.wires.Loops()[c.link.Number()%2], c.link.Loop())
	}
}

// A connection that breaks fails the asks that went over it at once, and no others (SHD-10).
func TestABrokenConnectionFailsItsOwnAsks(t *testing.T) {
	p := newPair(t, func(c *Config) { c.DataConnections = 2 })
	r := p.at[entity.Blocking]
	type outcome struct {
		number int
		err    error
	}
	out := make(chan outcome, 2)
	to := p.a.peerNode(p.b.self)
	for number := range 2 {
		_, corr, err := p.a.asks.begin(patience, r, 0, nil, func(_ []byte, err error) { out <- outcome{number, err} })
		require.NoError(t, err)
		p.a.asks.goes(corr, &routeEntry{remote: to.conns[number]})
		if number == 0 {
			t.Cleanup(func() { p.a.asks.failIfWaiting(corr, route.TimedOut) })
		}
	}
	p.a.LinkDown(p.b.self, wire.LaneControl, 0, 0, nil)
	p.a.LinkDown(p.b.self, wire.LaneData, 7, 0, nil)
	p.a.LinkDown(p.b.self, wire.LaneData, 1, 100, nil)
	o := <-out
	require.Equal(t, 1, o.number)
	require.ErrorIs(t, o.err, route.ErrPeerLost)
	require.Empty(t, out)
}
