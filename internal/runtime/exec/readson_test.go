// What loops do with what they read while an Inline shard moves.

package exec

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// While an Inline shard moves a loop heeds its marker when it has read it, however much waits before that, for the
// shard and for others of its loop, and however slow their handlers are. At the deadline what it has kept for the shard
// is handed over, and the others lose nothing; all in order (SHD-9).
func TestMarkerOvertakesInlineHandlers(t *testing.T) {
	for loops := range 2 {
		t.Run(fmt.Sprint(loops+1, " loops"), func(t *testing.T) { overtakes(t, loops+1) })
	}
}

func overtakes(t *testing.T, loops int) {
	const sent = 400
	got, on := make(chan string, 4*sent), make(chan struct{})
	x := newBare(t, typeOf(entity.Inline, 2*uint32(loops), func(c *entity.Context, payload []byte) error {
		<-on
		got <- fmt.Sprint(c.ID, " ", string(payload))
		return nil
	}), func(c *Config) { c.Loops = make([]*loop.Loop, loops) })
	other, h := x.typ.Host(0), x.typ.Host(route.ShardID(loops)) // of one loop
	ids := map[*Host]string{}
	for i := 0; ids[h] == "" || ids[other] == ""; i++ {
		ids[x.host(fmt.Sprint(i))] = fmt.Sprint(i)
	}
	var frames []byte
	for i := range sent {
		for _, of := range []*Host{other, h} {
			env := x.envelope(ids[of], fmt.Appendf(nil, "other %d", i))
			frames = wire.AppendEnvelope(frames, &env)
		}
	}
	Moves(true, h)
	x.read(t, loops-1, frames) // it returns while no handler does: a marker behind that is heeded
	h.Stop(entity.StopMoved, 0, time.Millisecond, 0)
	eventually(t, func() bool { return Overdue(h) })
	handled := 0
	for x.typ.Host(h.shard) != nil {
		select {
		case on <- struct{}{}:
			handled++
		case <-time.After(time.Millisecond):
		}
	}
	require.Less(t, handled, sent/2, "it waited for what others had before it")
	left, _ := Rest(h)
	require.Greater(t, len(left), sent/2)
	x.typ.Begin(h.shard, x.fence, left, nil)
	close(on)
	next := map[string]int{}
	for range 2 * sent {
		var id, from string
		var n int
		_, err := fmt.Sscanf(<-got, "%s %s %d", &id, &from, &n)
		require.NoError(t, err)
		require.Equal(t, next[id], n, "of %s", id)
		next[id]++
	}
	require.Empty(t, x.told())
	eventually(t, func() bool { return !x.readsOn.now() })
}

// What is read after a move that was given up comes behind what was kept, and then loops keep no more (SHD-9).
func TestKeptComesFirstWhenTheShardStays(t *testing.T) {
	var got []string
	entered, on := make(chan struct{}, 1), make(chan struct{})
	x := newBare(t, typeOf(entity.Inline, 1, func(_ *entity.Context, payload []byte) error {
		if len(got) == 0 {
			entered <- struct{}{}
			<-on
		}
		got = append(got, string(payload))
		return nil
	}))
	h := x.host("a")
	row := func(first int) (frames []byte) {
		for i := range 100 {
			env := x.envelope("a", fmt.Append(nil, first+i))
			frames = wire.AppendEnvelope(frames, &env)
		}
		return frames
	}
	Moves(true, h)
	x.read(t, 0, row(0))
	<-entered
	Moves(false, h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.read(t, 0, row(100))
		x.read(t, 0, row(200))
	}()
	close(on)
	<-done
	eventually(t, func() bool { return !x.readsOn.now() })
	x.read(t, 0, row(300))
	x.onLoop(t, 0, func() { require.Len(t, got, 400, "the last row was handled as it was read") })
	want := make([]string, 400)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	require.Equal(t, want, got)
	require.Empty(t, x.told())
}

// A gate that closes keeps what a loop has kept where it is, before what comes meanwhile (SHD-9, MEM-10).
func TestGateClosesBeforeWhatIsKept(t *testing.T) {
	got := make(chan int, 256)
	var x *bare
	x = newBare(t, typeOf(entity.Inline, 1, func(_ *entity.Context, payload []byte) error {
		if payload[0]%10 == 3 {
			x.Gate.Order()
		}
		got <- int(payload[0])
		return nil
	}))
	h := x.host("a")
	Moves(true, h)
	for first := range 5 {
		var frames []byte
		for i := range 20 {
			env := x.envelope("a", []byte{byte(20*first + i)})
			frames = wire.AppendEnvelope(frames, &env)
		}
		x.read(t, 0, frames)
	}
	for want := range 100 {
		require.Equal(t, want, <-got)
		if want%10 == 3 {
			x.onLoop(t, 0, func() {})
			require.Empty(t, got, "handled while the gate was closed")
			x.Gate.Judge(false, false)
		}
	}
	require.Empty(t, x.told())
}

// A loop that has kept as much as it may works off before it reads on (SHD-9).
func TestKeptIsBounded(t *testing.T) {
	handled := 0
	x := newBare(t, typeOf(entity.Inline, 1, func(*entity.Context, []byte) error { handled++; return nil }),
		func(c *Config) { c.Backlog = 1000 })
	env := x.envelope("a", make([]byte, 100))
	frame := wire.AppendEnvelope(nil, &env)
	Moves(true, x.host("a"))
	x.onLoop(t, 0, func() {
		p := x.passes[0]
		for i := range 50 {
			p.mayKeep()
			require.LessOrEqual(t, x.readsOn.kept.Load(), int64(1000))
			p.from = x.other
			p.frames(x.Clock.Now(), nil, x.other, frame)
			p.flush()
			require.LessOrEqual(t, handled, i)
		}
		require.Positive(t, handled)
	})
}
