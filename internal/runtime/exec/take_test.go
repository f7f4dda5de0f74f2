// Tests of the one way into a shard: whatever is not taken is counted, and reported as the way on which it came wants.

package exec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TestRefusedHoweverItCame stops a shard, so that it refuses whatever comes, and sends a message on each way: as a
// frame of another node, as one that lost a try-lock, from this node, as one that waited for a route, as a large one.
func TestRefusedHoweverItCame(t *testing.T) {
	const inbound, here, waited, left = "inbound", "here", "waited", "left"
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		for _, way := range []string{inbound, here, waited, left} {
			for _, flags := range []uint8{0, wire.FlagAsk, wire.FlagBulk} {
				if way == left && mode != entity.Inline {
					continue
				}
				t.Run(mode.String()+"/"+way, func(t *testing.T) { refusedOn(t, mode, way, flags, left) })
			}
		}
	}
}

func refusedOn(t *testing.T, mode entity.Mode, way string, flags uint8, left string) {
	x := newBare(t, typeOf(mode, 1, func(*entity.Context, []byte) error { return nil }), func(c *Config) {
		if way == left {
			c.Loops = make([]*loop.Loop, 2)
		}
	})
	var done route.Reason
	x.large = Large{Payload: []byte("large"), Release: func() { t.Error("released though it was not taken") },
		Done: func(r route.Reason) { done = r }}
	h := x.host("a")
	h.sh.Stop(0, entity.StopMoved) // the shard alone: its host stays in its place until the message comes
	env := x.envelope("a", []byte("x"))
	env.Flags = flags
	frame := wire.AppendEnvelope(nil, &env)
	told, from := true, x.other
	switch way {
	case left:
		h.mu.Lock()
		x.read(t, 1, frame)
		h.mu.Unlock()
		x.onLoop(t, 0, func() { h.pickUp(x.Clock.Now()) })
	case "inbound":
		x.read(t, 0, frame)
	case "here":
		from, told = nil, mode != entity.Blocking
		reason := h.Send(h.Lock(), &env, 0, "a")
		require.Equal(t, !told, reason == route.ShardStopping)
	case "waited":
		from, told = nil, mode != entity.Blocking
		reason, room := h.Forward(&env, frame)
		require.True(t, room)
		require.Equal(t, !told, reason == route.ShardStopping)
	}
	if !told {
		require.Empty(t, x.told(), "whoever sends it knows by what is returned")
		require.Equal(t, way == "here", x.typ.Refused(route.ShardStopping) == 1)
	} else {
		eventually(t, func() bool { return len(x.told()) == 1 })
		require.Equal(t, []refusal{{x.typ, from, "a", flags&wire.FlagAsk != 0, route.ShardStopping}}, x.told())
		require.EqualValues(t, 1, x.typ.Refused(route.ShardStopping))
	}
	if flags&wire.FlagBulk != 0 {
		require.Equal(t, route.ShardStopping, done)
	}
}

// A message of this node that waits for room is refused by a full mailbox, and gets one signal of room when half is
// free, whatever comes meanwhile; one that does not wait gets none (SHD-4).
func TestRoomHereIsTold(t *testing.T) {
	rooms, open := make(chan uint64, 16), make(chan struct{})
	typ := typeOf(entity.Blocking, 1, func(*entity.Context, []byte) error { <-open; return nil })
	typ.MailboxBytes = entity.MinMailboxBytes
	x := newBare(t, typ)
	x.needs.Room = func(_ route.TypeID, _ route.ShardID, hash uint64) { rooms <- hash }
	send := func(id string, flags uint8) route.Reason {
		h, env := x.host(id), x.envelope(id, make([]byte, 100))
		env.Flags = flags
		return h.Send(h.Lock(), &env, 0, id)
	}
	for _, id := range []string{"tells", "waits"} {
		eventually(t, func() bool { return send(id, 0) == route.MailboxFull })
	}
	for range 3 {
		require.Equal(t, route.MailboxFull, send("waits", wire.FlagWait))
	}
	close(open)
	require.Equal(t, entity.HashID([]byte("waits")), <-rooms)
	eventually(t, func() bool { return x.typ.Stats().QueuedBytes == 0 && x.typ.Stats().Filled == 1 })
	require.Empty(t, rooms)
	require.Equal(t, route.OK, send("waits", wire.FlagWait))
}
