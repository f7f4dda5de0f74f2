// Tests of messages in a row: what changes between two of them counts for the second.

package driver

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// row is one node whose entities of a mode do what a test says.
type row struct {
	d       *Driver
	r       *Region
	receive atomic.Pointer[func(c *entity.Context, payload []byte)]
}

type inRow struct{ *row }

func (h inRow) Receive(c *entity.Context, payload []byte) error {
	if f := h.receive.Load(); f != nil {
		(*f)(c, payload)
	}
	return nil
}

func (h inRow) Stop(*entity.Context) {}

// newRow returns one whose entities a, b and c are there already: the first message takes another way.
func newRow(t *testing.T, mode entity.Mode) *row {
	d, err := Start(t.Context(), Config{Workers: 1, DataLoops: 1}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, d.Ready(t.Context()))
	x := &row{d: d}
	x.r, err = d.Register(entity.Type{Name: "row", Shards: 16, Mode: mode,
		New: func(string, route.Fence) entity.Handler { return inRow{x} }})
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c"} {
		_, err := x.r.AskWithin(patience, id, nil, nil)
		require.ErrorIs(t, err, route.ErrNoReply)
	}
	return x
}

// host returns where an entity lives.
func (x *row) host(id string) *host { return x.r.hosts[x.r.Shard(id)].Load() }

// read has a goroutine that calls handlers take messages with these payloads to the entities named, as one read.
func (x *row) read(t *testing.T, messages ...[2]string) {
	var frames []byte
	for _, m := range messages {
		h := x.host(m[0])
		frames = wire.AppendEnvelope(frames, &wire.Envelope{Type: uint32(x.r.id), Shard: uint32(h.shard), Term: h.term,
			Epoch: h.epoch, ID: []byte(m[0]), Payload: []byte(m[1])})
	}
	from := x.d.remote(x.d.self, 0)
	if x.r.typ.Mode == entity.Worker {
		w := x.d.workers[0]
		w.queue.appendRead(nil, from, frames)
		return
	}
	p := x.d.passes[0]
	require.NoError(t, p.loop.Execute(onLoop(func() { p.frames(x.d.now(), nil, from, frames) })))
}

type onLoop func()

func (f onLoop) Run(*transport.Loop) { f() }

// A gate that closes while a row of messages is worked off holds up the rest of the row, in its order (SHD-9).
func TestGateClosesWithinARow(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			x := newRow(t, mode)
			var early atomic.Int64
			got := make(chan string, 64)
			f := func(_ *entity.Context, payload []byte) {
				if x.d.gate.bits.Load() != 0 {
					early.Add(1)
				}
				if string(payload) == "close" {
					x.d.gate.bits.Or(gateOrdered) // until the node's next step
				}
				got <- string(payload)
			}
			x.receive.Store(&f)
			for i := range 3 { // the step may come at once
				n := fmt.Sprint(i)
				x.read(t, [2]string{"a", "close"}, [2]string{"b", "b" + n}, [2]string{"a", "a" + n}, [2]string{"c", "c" + n})
				for _, want := range []string{"close", "b" + n, "a" + n, "c" + n} {
					require.Equal(t, want, <-got)
					x.d.inbox.post(func() {}) // a step, which opens the gate
				}
			}
			require.Zero(t, early.Load(), "handled while the gate was closed")
		})
	}
}

// A shard that is lost while a row is worked off takes no more of it (SHD-8).
func TestShardIsLostWithinARow(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			x := newRow(t, mode)
			lost := x.host("b")
			require.NotSame(t, lost, x.host("a"))
			got := make(chan string, 16)
			f := func(_ *entity.Context, payload []byte) {
				if string(payload) == "lose" {
					lost.abandoned.Store(true)
				}
				got <- string(payload)
			}
			x.receive.Store(&f)
			x.read(t, [2]string{"a", "lose"}, [2]string{"b", "b"}, [2]string{"a", "a"})
			require.Equal(t, "lose", <-got)
			require.Equal(t, "a", <-got, "b is refused")
			require.EqualValues(t, 1, x.r.count.refusedHere[route.NotOwner].Load())
		})
	}
}

// A handler that panics ends its own message only, wherever it stands in a row.
func TestPanicWithinARow(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			x := newRow(t, mode)
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
}
