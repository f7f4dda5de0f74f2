// The test kit itself: what it says when a promise breaks, and what users of it rely on.

package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// fakeTB is a test that may fail without failing this one.
type fakeTB struct {
	errors, logs []string
	cleanups     []func()
}

func (f *fakeTB) Helper()                      {}
func (f *fakeTB) Name() string                 { return "Fake/with space" }
func (f *fakeTB) Logf(format string, a ...any) { f.logs = append(f.logs, fmt.Sprintf(format, a...)) }
func (f *fakeTB) Errorf(format string, a ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, a...))
}
func (f *fakeTB) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (f *fakeTB) Failed() bool                   { return len(f.errors) > 0 }
func (f *fakeTB) Cleanup(do func())              { f.cleanups = append(f.cleanups, do) }

func echo() entity.Type {
	return entity.Type{Name: "echo", Shards: 8, Mode: entity.Worker, New: func(string, route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, b []byte) error { return c.Reply(b) })
	}}
}

func TestBrokenPromiseFailsTheTest(t *testing.T) {
	fake := &fakeTB{}
	c := New(fake, 2, 4711)
	c.AwaitUp()
	checks(c.w).Violate(c.proc(1), "two-owners", "for the sake of this test")
	for _, do := range fake.cleanups {
		do()
	}
	require.Len(t, fake.errors, 1)
	require.Contains(t, fake.errors[0], "two-owners")
	require.Len(t, fake.logs, 1)
	require.Contains(t, fake.logs[0], "seed 4711")
	_, path, ok := strings.Cut(fake.logs[0], "trace in ")
	require.True(t, ok)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.Contains(t, string(text), "VIOLATION two-owners")
}

func TestHealthyClusterSaysNothing(t *testing.T) {
	fake := &fakeTB{}
	c := New(fake, 3, 1)
	c.Register(echo())
	c.AwaitUp()
	got, err := c.Ask(2, "echo", "x", []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.NotEmpty(t, c.Events(0))
	require.Equal(t, 3, c.View(1).CountUp())
	for _, do := range fake.cleanups {
		do()
	}
	require.Empty(t, fake.errors)
	require.Empty(t, fake.logs)
}

func TestMisuseIsFatal(t *testing.T) {
	require.Panics(t, func() { New(&fakeTB{}, 0, 1) })
	c := New(&fakeTB{}, 1, 1)
	require.Panics(t, func() { c.Crash(5) })
	require.Panics(t, func() { c.Register(entity.Type{Name: "no New"}) })
	require.Panics(t, func() { c.AtMostOne("nobody registered this") })
	_, err := c.Ask(0, "nobody registered this", "x", nil)
	require.ErrorIs(t, err, route.ErrNotRegistered)
	require.ErrorIs(t, c.Tell(0, "nobody registered this", "x", nil), route.ErrNotRegistered)
}

func TestBadMessagesAreRefusedAtTheSender(t *testing.T) {
	c := New(t, 1, 1)
	c.Register(echo())
	c.AwaitUp()
	require.ErrorIs(t, c.Tell(0, "echo", "", nil), route.ErrBadID)
	require.ErrorIs(t, c.Tell(0, "echo", strings.Repeat("x", 1025), nil), route.ErrBadID)
	require.ErrorIs(t, c.Tell(0, "echo", "x", make([]byte, 64<<20+1)), route.ErrTooLarge, "over the room for large ones")
	c.Crash(0)
	require.ErrorIs(t, c.Tell(0, "echo", "x", nil), route.ErrStopped)
}

// Seed 001: "two application specific functions to extract the entity identifier and the shard identifier from incoming
// messages. A Shard is a group of entities that will be managed together": orders of a customer live on one node,
// before and after it has left (SHD-1).
func TestShardFunctionKeepsTogether(t *testing.T) {
	c := New(t, 3, 1)
	typ := echo()
	typ.ShardBy = entity.ShardBy{Name: "customer", Of: func(id string) route.ShardID {
		customer, _, _ := strings.Cut(id, "/")
		if customer == "nobody" {
			return route.ShardID(typ.WithDefaults().Shards)
		}
		return route.ShardOf(customer, typ.WithDefaults().Shards)
	}}
	c.Register(typ)
	c.AwaitUp()
	together := func(from int) int {
		home := -1
		for i := range 20 {
			id := fmt.Sprint("anna/", i)
			_, err := c.Ask(from, "echo", id, []byte("hello"))
			require.NoError(t, err)
			if i == 0 {
				home = c.Owner("echo", id)
			}
			require.Equal(t, home, c.Owner("echo", id), id)
		}
		return home
	}
	home := together(0)
	require.ErrorIs(t, c.Tell(0, "echo", "nobody/1", nil), route.ErrBadShard)
	require.ErrorIs(t, c.Tell(0, "echo", "nobody/1", make([]byte, 4<<20)), route.ErrBadShard, "a large one")
	_, err := c.Ask(1, "echo", "nobody/1", nil)
	require.ErrorIs(t, err, route.ErrBadShard)
	c.Leave(home)
	c.Advance(time.Minute)
	require.NotEqual(t, home, together((home+1)%3))
}

func TestAskOfAPausedOwnerTimesOut(t *testing.T) {
	c := New(t, 2, 3)
	c.Register(echo())
	c.AwaitUp()
	_, err := c.Ask(0, "echo", "x", []byte("1"))
	require.NoError(t, err)
	owner := c.Owner("echo", "x")
	c.Pause(owner, 10*time.Second)
	_, err = c.AskWithin(2*time.Second, 1-owner, "echo", "x", []byte("2"))
	require.ErrorIs(t, err, route.ErrTimeout)
}

// TestThousandShards: all shards of a type of a fresh cluster get a home within a second, in a handful of mails.
func TestThousandShards(t *testing.T) {
	typ := echo()
	typ.Shards = 1000
	c := New(t, 3, 1)
	c.Register(typ)
	c.AwaitUp()
	before, sent := c.Now(), c.w.Net.Sent
	r := c.proc(1).Region(route.TypeOf("echo"))
	asked := map[route.ShardID]bool{}
	for i := 0; len(asked) < 1000; i++ {
		id := fmt.Sprintf("e%d", i)
		if n := route.ShardOf(id, 1000); !asked[n] {
			asked[n] = true
			require.NoError(t, c.Tell(1, "echo", id, nil))
		}
	}
	homed := func() bool { return r.Homeless() == 0 }
	require.True(t, c.Until(time.Second, homed), "after a second not all shards have a home")
	t.Logf("1000 shards have homes after %v and %d packets", c.Now()-before, c.w.Net.Sent-sent)
	require.Less(t, c.w.Net.Sent-sent, uint64(200))
	for n := range 3 {
		hosted := 0
		for i := range typ.Shards {
			if c.proc(n).Regions[0].Lives(route.ShardID(i)) != nil {
				hosted++
			}
		}
		require.InDelta(t, 333, hosted, 2, "node %d", n)
	}
}
