// Tests of messages in a row: what changes between two of them counts for the second.

package exec

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// row is execution with entities of a mode that do what a test says.
type row struct {
	*bare
	own     bool // messages of this node itself
	receive atomic.Pointer[func(c *entity.Context, payload []byte)]
}

// inRows runs a test for each goroutine that handles messages in a row, and each way to it.
func inRows(t *testing.T, f func(t *testing.T, x *row)) {
	for _, mode := range []entity.Mode{entity.Worker, entity.Inline} {
		for _, own := range []bool{false, true} {
			for _, shards := range []uint32{16, farShards + 1} {
				t.Run(fmt.Sprintf("%v/own=%t/shards=%d", mode, own, shards), func(t *testing.T) {
					f(t, newRow(t, mode, own, shards))
				})
			}
		}
	}
}

// newRow returns one with the entities a, b and c there already: the first message takes another way.
func newRow(t *testing.T, mode entity.Mode, own bool, shards uint32) *row {
	x := &row{own: own}
	made := make(chan struct{})
	f := func(*entity.Context, []byte) { made <- struct{}{} }
	x.receive.Store(&f)
	x.bare = newBare(t, typeOf(mode, shards, func(c *entity.Context, payload []byte) error {
		(*x.receive.Load())(c, payload)
		return nil
	}))
	for _, id := range []string{"a", "b", "c"} {
		require.Equal(t, route.OK, x.send(id, nil))
		<-made
	}
	return x
}

// read has a goroutine that calls handlers take messages with these payloads to the entities named, as one read.
func (x *row) read(t *testing.T, messages ...[2]string) {
	var frames []byte
	for _, m := range messages {
		env := x.envelope(m[0], []byte(m[1]))
		frames = wire.AppendEnvelope(frames, &env)
	}
	p, from := x.passes[0], x.other
	if x.own {
		from = nil
	}
	if x.typ.typ.Mode == entity.Worker {
		x.workers[0].queue.appendRead(nil, from, frames)
		return
	}
	if x.own {
		p.local.appendFrame(frames)
		return
	}
	require.NoError(t, p.loop.Execute(task(func() {
		p.sit()
		defer p.rise()
		p.frames(x.Clock.Now(), nil, x.other, frames)
	})))
}

// The receiver of each message of a batch is looked up before the first is handled, also of a type of very many shards.
// What is not for a shard here, under its fence, is left to the slow path (CARD-3).
func TestRowsAreForeseen(t *testing.T) {
	for _, shards := range []uint32{16, farShards, farShards + 1} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			x := newRow(t, entity.Worker, false, shards)
			gone := x.host("c")
			require.NotSame(t, gone, x.host("a"))
			require.NotSame(t, gone, x.host("b"))
			a, b, c := x.envelope("a", nil), x.envelope("b", nil), x.envelope("c", nil)
			gone.t.hosts.At(gone.shard).Store(nil)
			old, none := a, b
			old.Epoch++
			none.ID = []byte("nobody")
			var frames []byte
			list := []*wire.Envelope{&a, &old, &b, &c, &none, &a}
			for range 5 { // what was found for one look is nothing to the next
				for _, env := range list {
					frames = wire.AppendEnvelope(frames, env)
				}
				reply := make([]byte, wire.ReplySize)
				wire.PutReply(reply, uint16(route.OK), 1, nil)
				frames = append(frames, reply...)
			}
			look, seen := &ahead{x: x.Exec, queue: x.host("a").queue}, 0
			for rest := frames; len(rest) > 0; {
				rest = look.look(rest)
				for _, f := range look.next[:look.n] {
					env := (*wire.Envelope)(nil) // of a reply
					if n := seen % (len(list) + 1); n < len(list) {
						env = list[n]
					}
					seen++
					switch env {
					case nil, &old, &c:
						require.Nil(t, f.h)
						require.Nil(t, f.e)
					case &none:
						require.True(t, x.host("b") == f.h)
						require.Nil(t, f.e)
					default:
						require.True(t, x.host(string(env.ID)) == f.h)
						require.Equal(t, string(env.ID), f.e.ID())
					}
				}
			}
			require.Equal(t, 35, seen)
			gone.t.hosts.At(gone.shard).Store(gone)
		})
	}
}

// A gate that closes while a row of messages is worked off holds up the rest of the row, in its order (SHD-9).
func TestGateClosesWithinARow(t *testing.T) {
	inRows(t, func(t *testing.T, x *row) {
		var early atomic.Int64
		got := make(chan string, 64)
		f := func(_ *entity.Context, payload []byte) {
			if x.Gate.Closed() {
				early.Add(1)
			}
			if string(payload) == "close" {
				x.Gate.Order() // until the node's next step
			}
			got <- string(payload)
		}
		x.receive.Store(&f)
		for i := range 3 {
			n := fmt.Sprint(i)
			x.read(t, [2]string{"a", "close"}, [2]string{"b", "b" + n}, [2]string{"a", "a" + n}, [2]string{"c", "c" + n})
			for _, want := range []string{"close", "b" + n, "a" + n, "c" + n} {
				require.Equal(t, want, <-got)
				x.Gate.Judge(false, false) // as a step does
			}
		}
		require.Zero(t, early.Load(), "handled while the gate was closed")
	})
}

// A shard that is lost while a row is worked off takes no more of it (SHD-8).
func TestShardIsLostWithinARow(t *testing.T) {
	inRows(t, func(t *testing.T, x *row) {
		lost := x.host("b")
		require.NotSame(t, lost, x.host("a"))
		got := make(chan string, 16)
		f := func(_ *entity.Context, payload []byte) {
			if string(payload) == "lose" {
				lost.lose()
			}
			got <- string(payload)
		}
		x.receive.Store(&f)
		x.read(t, [2]string{"a", "lose"}, [2]string{"b", "b"}, [2]string{"a", "a"})
		require.Equal(t, "lose", <-got)
		require.Equal(t, "a", <-got, "b is refused")
		require.EqualValues(t, 1, x.typ.Refused(route.NotOwner))
	})
}

// A handler that panics ends its own message only, wherever it stands in a row.
func TestPanicWithinARow(t *testing.T) {
	inRows(t, func(t *testing.T, x *row) {
		got := make(chan string, 64)
		f := func(_ *entity.Context, payload []byte) {
			if payload[0] == '!' {
				panic("told to")
			}
			got <- string(payload)
		}
		x.receive.Store(&f)
		x.read(t, [2]string{"a", "!"}, [2]string{"a", "1"}, [2]string{"b", "2"}, [2]string{"b", "!"}, [2]string{"c", "!"},
			[2]string{"b", "3"}, [2]string{"a", "4"}, [2]string{"c", "5"}, [2]string{"c", "!"})
		for _, want := range []string{"1", "2", "3", "4", "5"} {
			require.Equal(t, want, <-got)
		}
	})
}
