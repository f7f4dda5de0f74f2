// A scenario of asks that nest: entities of two shards that move ask each other.

package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// asker asks another entity when its message says so, after it has waited for a while, and answers everything else.
type asker struct {
	c     *Cluster
	ended map[string]time.Duration // when the ask of an entity ended, with errs
	errs  map[string]error
}

const (
	nestedWait  = 300 * time.Millisecond
	nestedLimit = time.Minute // of every ask
)

func (h *asker) Receive(c *entity.Context, other []byte) error {
	switch {
	case c.ID == "mute":
		c.Detach()
		return nil
	case len(other) == 0:
		return c.Reply([]byte("here"))
	}
	_, _ = c.Ask(nestedWait, "asks", "mute", nil) // until both shards move
	_, err := c.Ask(nestedLimit, "asks", string(other), nil)
	h.ended[c.ID], h.errs[c.ID] = h.c.Now(), err
	if err != nil {
		return err
	}
	return c.Reply([]byte("both"))
}

func (*asker) Stop(*entity.Context) {}

// Two shards leave one node, and an entity of each asks one of the other: each move waits for a handler, and each
// handler for the end of the other's move. DrainTime ends that for both: the handlers' asks fail with ErrShardStopping,
// their askers have a typed error by then, and not when its own limit is over; both shards move, and are asked there
// (SHD-9, SHD-12).
func TestMovesWhoseEntitiesAskEachOther(t *testing.T) {
	for seed := range uint64(10) {
		c := New(t, 3, 60+seed)
		h := &asker{c, map[string]time.Duration{}, map[string]error{}}
		c.Register(entity.Type{Name: "asks", Shards: 16, Mode: entity.Blocking,
			New: func(string, route.Fence) entity.Handler { return h }})
		c.AwaitUp()
		ids := sharing(t, c, 2)
		from := c.Owner("asks", ids[0])
		to := (from + 1) % 3
		began := c.Now()
		ends := map[string]time.Duration{}
		failed := map[string]error{}
		for i, id := range ids {
			err := c.proc(to).Ask(nestedLimit, "asks", id, []byte(ids[1-i]), func(_ []byte, err error) {
				ends[id], failed[id] = c.Now(), err
			})
			require.NoError(t, err)
		}
		c.Advance(nestedWait / 2) // both handlers run, and wait
		for _, id := range ids {
			moves(t, c, id, to)
		}
		require.True(t, c.Until(nestedLimit, func() bool { return len(ends) == 2 }))
		for _, id := range ids {
			require.ErrorIs(t, h.errs[id], route.ErrShardStopping, id)
			require.Less(t, h.ended[id]-began, shard.DefaultDrainTime+time.Second, id)
			require.ErrorIs(t, failed[id], route.ErrHandler, id)
			require.Less(t, ends[id]-began, shard.DefaultDrainTime+time.Second, id)
			require.True(t, c.Until(time.Second, func() bool { return c.Owner("asks", id) == to }), id)
			reply, err := c.Ask(from, "asks", id, nil)
			require.NoError(t, err)
			require.Equal(t, "here", string(reply))
		}
	}
}

// sharing returns ids of so many shards that live at one node, which is not where the mute entity lives.
func sharing(t *testing.T, c *Cluster, n int) (ids []string) {
	_, err := c.AskWithin(time.Second, 0, "asks", "mute", nil) // it has a home; it answers nobody
	require.ErrorIs(t, err, route.ErrTimeout)
	shards := map[route.ShardID]bool{route.ShardOf("mute", 16): true}
	from := -1
	for i := 0; len(ids) < n; i++ {
		id := string(rune('a' + i))
		if s := route.ShardOf(id, 16); shards[s] {
			continue
		}
		_, err := c.Ask(0, "asks", id, nil)
		require.NoError(t, err)
		if at := c.Owner("asks", id); (from < 0 || at == from) && at != c.Owner("asks", "mute") {
			from = at
			shards[route.ShardOf(id, 16)] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// moves makes the coordinator of the type move the shard of an entity.
func moves(t *testing.T, c *Cluster, id string, to int) {
	cmd := shard.MoveCommand{Type: route.TypeOf("asks"), Shard: route.ShardOf(id, 16), To: c.proc(to).ID}
	var err error
	for i := range 3 {
		if err = c.proc(i).Command(cmd); !errors.Is(err, shard.ErrNotCoordinator) {
			break
		}
	}
	require.NoError(t, err)
}
