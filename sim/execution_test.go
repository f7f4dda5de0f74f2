// Scenarios of execution: full mailboxes, a full budget, an entity that rests after a panic while its shard goes away.

package sim

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// void takes asks and never answers: its asker waits.
func void() entity.Type {
	return entity.Type{Name: "void", Shards: 4, Mode: entity.Worker, New: func(string, route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, _ []byte) error { c.Detach(); return nil })
	}}
}

// slow is a Blocking type with entities that take a minute for each message.
func slow(mailbox int) entity.Type {
	return entity.Type{Name: "slow", Shards: 4, MailboxBytes: mailbox, New: func(string, route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, _ []byte) error {
			_, err := c.Ask(time.Minute, "void", "v", nil)
			return err
		})
	}}
}

// hostStats are the figures of the shard that holds an entity, at its owner.
func hostStats(c *Cluster, typ, id string) entity.Stats {
	r := c.proc(c.Owner(typ, id)).Region(route.TypeOf(typ))
	return r.Lives(route.ShardOf(id, r.Type.Shards)).Stats()
}

// owned returns the owner of an entity, made by a first message, and another node that knows it.
func owned(t *testing.T, c *Cluster, typ, id string) (owner, other int) {
	require.NoError(t, c.Tell(0, typ, id, []byte("0")))
	require.NoError(t, c.Tell(1, typ, id, []byte("0")))
	require.True(t, c.Until(patience, func() bool { return c.Owner(typ, id) >= 0 }))
	c.Advance(time.Second)
	owner = c.Owner(typ, id)
	return owner, 1 - owner
}

// A slow entity fills its own mailbox: what is over the bound is refused, counted, reported to its sender, an ask is
// answered with the reason, and another entity of the same link goes on.
func TestFullMailboxIsTold(t *testing.T) {
	c := New(t, 2, 11)
	c.Register(void())
	c.Register(slow(4 << 10))
	c.Register(echo())
	c.AwaitUp()
	_, other := owned(t, c, "slow", "a")
	before := hostStats(c, "slow", "a").Refused[route.MailboxFull]
	for range 20 {
		require.NoError(t, c.Tell(other, "slow", "a", make([]byte, 480)))
	}
	c.Advance(time.Second)
	st := hostStats(c, "slow", "a")
	require.LessOrEqual(t, st.QueuedBytes, 4<<10)
	refused := st.Refused[route.MailboxFull] - before
	require.Equal(t, uint64(13), refused, "eight records of 512 bytes fit, one of them the first message's room")
	own, _ := world.Refusals(c.proc(1-other), route.MailboxFull)
	require.Equal(t, refused, own)
	_, told := world.Refusals(c.proc(other), route.MailboxFull)
	require.Positive(t, told, "the sender was told; how many, is tested on sockets")
	_, err := c.AskWithin(time.Second, other, "slow", "a", make([]byte, 480))
	require.ErrorIs(t, err, route.ErrMailboxFull)
	_, err = c.Ask(other, "echo", "b", []byte("still here"))
	require.NoError(t, err)
}

// All mailboxes of a node share one budget: when it is used up, an entity with an empty mailbox is refused too, and
// gets room again when others have worked theirs off.
func TestFullBudgetIsSharedByAllEntities(t *testing.T) {
	c := New(t, 2, 12, With(func(cfg *setup.Config) { cfg.Data.MailboxBudget = 64 << 10 }))
	c.Register(void())
	c.Register(slow(1 << 20))
	c.AwaitUp()
	owner, other := owned(t, c, "slow", "a")
	for range 40 {
		require.NoError(t, c.Tell(other, "slow", "a", make([]byte, 2000)))
	}
	c.Advance(time.Second)
	_, told := world.Refusals(c.proc(other), route.BudgetFull)
	require.Positive(t, told)
	require.LessOrEqual(t, world.Mailboxes(c.proc(owner)), 64<<10)
	neighbour := ""
	for i := 0; neighbour == ""; i++ {
		if id := strconv.Itoa(i); c.Owner("slow", id) == owner && route.ShardOf(id, 4) == route.ShardOf("a", 4) {
			neighbour = id
		}
	}
	_, err := c.AskWithin(time.Second, other, "slow", neighbour, make([]byte, 60<<10))
	require.ErrorIs(t, err, route.ErrBudgetFull, "it has nothing in its mailbox, and no budget")
	c.Advance(2 * time.Minute) // the asks of the first calls are over
	require.True(t, c.Until(2*time.Hour, func() bool { return world.Mailboxes(c.proc(owner)) < 4<<10 }))
	_, err = c.AskWithin(time.Second, other, "slow", neighbour, make([]byte, 30<<10))
	require.ErrorIs(t, err, route.ErrTimeout, "accepted: it waits in its handler")
}

// An entity rests after a panic for longer than its shard stays: when its owner leaves, what waited is worked off by a
// new instance, in order and under the old fence, before the shard goes.
func TestRestEndsWithTheShard(t *testing.T) {
	type got struct {
		text  string
		fence route.Fence
	}
	var seen []got
	c := New(t, 2, 13)
	c.Register(entity.Type{Name: "book", Shards: 4, RestartBackoff: time.Hour, RestartWindow: time.Hour,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(c *entity.Context, b []byte) error {
				if string(b) == "bad" {
					panic("poison")
				}
				seen = append(seen, got{string(b), c.Fence})
				if c.Asked() {
					return c.Reply(b)
				}
				return nil
			})
		}})
	c.AwaitUp()
	c.Advance(30 * time.Second) // a young node cannot know which were lost before it came
	owner, other := owned(t, c, "book", "a")
	fence := seen[0].fence
	seen = nil
	require.NoError(t, c.Tell(other, "book", "a", []byte("bad")))
	for i := range 5 {
		require.NoError(t, c.Tell(other, "book", "a", []byte(strconv.Itoa(i))))
	}
	c.Advance(10 * time.Second)
	require.Empty(t, seen, "it rests")
	require.Equal(t, 1, hostStats(c, "book", "a").Crashed)
	_, err := c.AskWithin(time.Second, other, "book", "b", []byte("b"))
	require.NoError(t, err, "others go on")
	seen = nil
	c.Leave(owner)
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(owner) }))
	reply, err := c.AskWithin(time.Minute, other, "book", "a", []byte("5"))
	require.NoError(t, err)
	require.Equal(t, "5", string(reply), "the new owner knows of no rest")
	require.Len(t, seen, 6)
	for i := range 5 {
		require.Equal(t, got{strconv.Itoa(i), fence}, seen[i])
	}
	require.Equal(t, 1, seen[5].fence.Compare(fence))
}

// The bound on active entities holds for a node, over all of its shards, as they come and go.
func TestMaxActiveOfANode(t *testing.T) {
	made := 0
	c := New(t, 2, 14)
	c.Register(entity.Type{Name: "user", Shards: 16, Mode: entity.Worker, MaxActive: 64,
		New: func(string, route.Fence) entity.Handler {
			made++
			return handlerFunc(func(c *entity.Context, b []byte) error { return c.Reply(b) })
		}})
	c.AwaitUp()
	for i := range 600 {
		_, err := c.Ask(i%2, "user", strconv.Itoa(i), nil)
		require.NoError(t, err)
	}
	for n := range 2 {
		live := 0
		r := c.proc(n).Region(route.TypeOf("user"))
		for i := range r.Type.Shards {
			if s := r.Lives(route.ShardID(i)); s != nil {
				live += s.Stats().Live
			}
		}
		require.LessOrEqual(t, live, 64+16, "a shard's share is rounded, and as its shards come the share shrinks")
		require.Greater(t, live, 30)
	}
	require.Equal(t, 600, made)
}

// While the store is away no entity can be made: asks get that error and were certainly not executed, tells are counted
// where they ended. An entity that rests after that keeps what waits, and works it off when the store is back.
func TestOpenThatFails(t *testing.T) {
	for mode := entity.Blocking; mode <= entity.Inline; mode++ {
		t.Run(mode.String(), func(t *testing.T) {
			down, handled := true, 0
			c := New(t, 3, 12)
			c.Register(entity.Type{Name: "shelf", Mode: mode, RestartBackoff: 5 * time.Second,
				Open: func(ctx *entity.Context) (entity.Handler, error) {
					if down {
						return nil, errors.New("no store for " + ctx.ID)
					}
					return handlerFunc(func(c *entity.Context, b []byte) error {
						handled++
						if c.Asked() {
							return c.Reply(b)
						}
						return nil
					}), nil
				}})
			c.AwaitUp()
			_, err := c.Ask(0, "shelf", "a", nil)
			require.ErrorIs(t, err, route.ErrNewFailed)
			require.ErrorContains(t, err, "no store for a")
			require.NoError(t, c.Tell(1, "shelf", "b", nil))
			require.True(t, c.Until(patience, func() bool { return c.Owner("shelf", "b") >= 0 }))
			c.Advance(time.Second)
			own, _ := world.Refusals(c.proc(c.Owner("shelf", "b")), route.NewFailed)
			require.Positive(t, own)
			require.Zero(t, handled)
			for range 4 {
				require.NoError(t, c.Tell(2, "shelf", "b", nil), "or refused there, and told")
			}
			down = false
			c.Advance(20 * time.Second)
			if mode == entity.Blocking {
				require.Equal(t, 4, handled, "what waits while the entity rests is worked off")
			} else {
				require.Zero(t, handled, "nothing waits for others: it was refused")
			}
			_, err = c.Ask(0, "shelf", "a", nil)
			require.NoError(t, err)
		})
	}
}

// ACC-4: what a test of entities sees of time: Context.Now is virtual, and a timer that is set right after a stall is
// not early.
func TestTimersOfAStalledNode(t *testing.T) {
	const wait = time.Second
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			c := New(t, 1, 7)
			var set, came time.Time
			c.Register(entity.Type{Name: "timed", Shards: 4, Mode: mode, New: func(string, route.Fence) entity.Handler {
				return handlerFunc(func(x *entity.Context, _ []byte) error {
					if name, ok := x.Timer(); ok {
						require.Equal(t, "wait", name)
						came = x.Now()
						return nil
					}
					set = x.Now()
					return x.SetTimer("wait", wait, nil)
				})
			}})
			c.AwaitUp()
			for _, stall := range []time.Duration{0, 4 * time.Second} {
				set, came = time.Time{}, time.Time{}
				c.Pause(0, stall)
				c.Advance(stall + time.Millisecond)
				require.NoError(t, c.Tell(0, "timed", "a", nil))
				require.True(t, c.Until(patience, func() bool { return !set.IsZero() && !came.IsZero() }))
				require.GreaterOrEqual(t, came.Sub(set), wait)
				require.Less(t, came.Sub(set), 2*wait, "virtual time, and nothing else to do")
			}
		})
	}
}
