// Tests of asks with a context that ends early: the handler's ends too, here and there, in every mode, and nobody
// else's.

package driver

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// waiting has asks that wait for the end of their context, on goroutines of their own, and answer why it came.
type waiting struct {
	began chan context.Context
	ended chan error
}

func (w *waiting) Receive(c *entity.Context, payload []byte) error {
	ctx := c.Context()
	if string(payload) == "answer" {
		return c.Reply([]byte(lives(ctx.Err())))
	}
	token := c.Detach()
	w.began <- ctx
	wait := func() {
		<-ctx.Done()
		w.ended <- context.Cause(ctx)
		_ = token.Reply(nil) // nobody waits for it
	}
	if c.Type() == "blocking cancels" {
		wait()
	} else {
		go wait()
	}
	return nil
}

func (w *waiting) Stop(*entity.Context) {}

func lives(err error) string {
	if err == nil {
		return "lives"
	}
	return err.Error()
}

// cancelPair is a pair with types of each mode that wait: on b alone, or on both.
func cancelPair(t *testing.T) (p *pair, there, here map[entity.Mode]*Region, w *waiting) {
	p = newPair(t)
	w = &waiting{began: make(chan context.Context, 10), ended: make(chan error, 10)}
	there, here = map[entity.Mode]*Region{}, map[entity.Mode]*Region{}
	for _, m := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		typ := entity.Type{Name: m.String() + " cancels", Role: "host", Shards: 4, Mode: m,
			New: func(string, route.Fence) entity.Handler { return w }}
		var err error
		here[m], err = p.b.Register(typ)
		require.NoError(t, err)
		there[m], err = p.a.Register(typ)
		require.NoError(t, err)
	}
	return p, there, here, w
}

// TestCancelledAskEndsItsHandlersContext: in every mode, from another node and from its own; another ask's lives on.
func TestCancelledAskEndsItsHandlersContext(t *testing.T) {
	_, there, here, w := cancelPair(t)
	for mode := range there {
		for _, r := range []*Region{there[mode], here[mode]} {
			other, endOther := context.WithCancel(context.Background())
			over := make(chan error, 2)
			ask := func(ctx context.Context, id string) context.Context {
				go func() {
					_, err := r.AskWith(ctx, nil, id, []byte("wait"))
					over <- err
				}()
				return <-w.began
			}
			left := ask(other, "other")
			ctx, end := context.WithCancel(context.Background())
			gone := ask(ctx, "e")
			require.NoError(t, gone.Err())
			end()
			err := <-over
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, route.MayHaveRun(err))
			require.Equal(t, route.ErrAskCancelled, <-w.ended)
			require.Equal(t, context.Canceled, gone.Err())
			require.NoError(t, left.Err())
			reply, err := r.AskWithinWith(patience, nil, "f", []byte("answer"), nil)
			require.NoError(t, err)
			require.Equal(t, "lives", string(reply))
			endOther()
			require.ErrorIs(t, <-over, context.Canceled)
			require.Equal(t, route.ErrAskCancelled, <-w.ended)
			require.EqualValues(t, 2, r.stats().Cancels.Told)
			require.Zero(t, r.stats().Cancels.Untold)
		}
		eventually(t, func() bool { return here[mode].stats().Cancels.Ended == 4 })
	}
}

// TestDeadlineIsNotTold: a handler knows the time of its ask, so nothing is sent when that is over.
func TestDeadlineIsNotTold(t *testing.T) {
	_, there, _, w := cancelPair(t)
	r := there[entity.Worker]
	_, err := r.AskWithinWith(patience, nil, "e", []byte("answer"), nil)
	require.NoError(t, err)
	ctx, end := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer end()
	_, err = r.AskWith(ctx, nil, "e", []byte("wait"))
	require.ErrorIs(t, err, route.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, <-w.ended, route.ErrTimeout)
	require.Zero(t, r.stats().Cancels)
}

// TestCancelsOfOthers: a node cancels what it has asked itself and nothing else, whatever number it says; what came too
// late, or says nothing that makes sense, ends nothing.
func TestCancelsOfOthers(t *testing.T) {
	p, there, here, w := cancelPair(t)
	for mode, r := range there {
		var corr uint64
		over := make(chan error, 1)
		a, number, err := r.d.asks.begin(patience, r, r.Shard("e"), nil, func(_ []byte, err error) { over <- err })
		require.NoError(t, err)
		corr = number
		require.NoError(t, r.send(entity.HashID([]byte("e")), "e", []byte("wait"), corr, &a, nil))
		ctx := <-w.began
		for from, number := range map[peer.ID]uint64{p.b.self: corr, {}: corr, p.a.self: corr + 1<<40} {
			exec.Cancel(from, number, &p.b.exec)
			require.NoError(t, ctx.Err())
		}
		frame := make([]byte, wire.CancelSize)
		wire.PutCancel(frame, corr)
		before := p.b.nonsense.count.Load()
		sends(t, r, wire.AppendFrame(nil, wire.KindCancel, 0, 0, []byte("short")))
		eventually(t, func() bool { return p.b.nonsense.count.Load() == before+1 })
		require.NoError(t, ctx.Err())
		sends(t, r, frame)
		require.Equal(t, route.ErrAskCancelled, <-w.ended)
		require.NoError(t, <-over, "who still waits gets what the handler says")
		sends(t, r, slices.Repeat(frame, 3)) // late, and again
		reply, err := r.AskWithinWith(patience, nil, "e", []byte("answer"), nil)
		require.NoError(t, err)
		require.Equal(t, "lives", string(reply), "the next ask of the same waiter is another one")
		require.EqualValues(t, 1, here[mode].stats().Cancels.Ended)
	}
}

// sends writes whole frames to the host of the entity e.
func sends(t *testing.T, r *Region, frames []byte) {
	l := opened(t, r, r.Shard("e")).link
	l.Lock()
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		b, err := l.Reserve(n)
		require.NoError(t, err)
		copy(b, frames[:n])
		frames = frames[n:]
	}
	wake := l.Commit()
	l.Unlock()
	if wake {
		l.Wake(nil)
	}
}

// TestCancelBeforeTheHandlerIsCalled: it finds its context ended when it looks.
func TestCancelBeforeTheHandlerIsCalled(t *testing.T) {
	p, there, _, w := cancelPair(t)
	r := there[entity.Blocking]
	ctx, end := context.WithCancel(context.Background())
	defer end()
	over := make(chan error, 2)
	for range 2 {
		go func() { _, err := r.AskWith(ctx, nil, "e", []byte("wait")); over <- err }()
	}
	first := <-w.began
	eventually(t, func() bool { return p.b.exec.Handled() >= 2 })
	end()
	require.ErrorIs(t, <-over, context.Canceled)
	require.ErrorIs(t, <-over, context.Canceled)
	<-first.Done()
	second := <-w.began
	<-second.Done()
	require.Equal(t, route.ErrAskCancelled, context.Cause(second))
}

// TestCancelOfAParkedAsk: nothing of it has left, so nothing is sent, and nothing has run.
func TestCancelOfAParkedAsk(t *testing.T) {
	p := newPair(t)
	r, err := p.a.Register(entity.Type{Name: "nowhere", Role: "nobody", Shards: 4,
		New: func(string, route.Fence) entity.Handler { return &plain{p.note} }})
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	end()
	_, err = r.AskWith(ctx, nil, "e", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, route.MayHaveRun(err))
	require.Zero(t, r.stats().Cancels)
}

// TestCancelThatFindsNoRoom is counted, and that is all.
func TestCancelThatFindsNoRoom(t *testing.T) {
	_, there, _, w := cancelPair(t)
	r := there[entity.Worker]
	ctx, end := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { _, err := r.AskWith(ctx, nil, "e", []byte("wait")); over <- err }()
	handler := <-w.began
	e := opened(t, r, r.Shard("e"))
	fill := func() {
		e.link.Lock()
		defer e.link.Unlock()
		for {
			b, err := e.link.Reserve(wire.CancelSize)
			if err != nil {
				require.ErrorIs(t, err, route.ErrLinkFull)
				return
			}
			wire.PutCancel(b, 1<<40) // nobody's
		}
	}
	gone, stop := context.WithCancel(context.Background())
	stop()
	eventually(t, func() bool { // the loop may write it out meanwhile
		fill()
		bare{r}.giveUp(gone, e, r.Shard("e"), 1<<40, true)
		return r.stats().Cancels.Untold > 0
	})
	require.NoError(t, handler.Err())
	e.link.Lock()
	e.link.Commit()
	e.link.Unlock()
	e.link.Wake(nil)
	eventually(t, func() bool { e.link.Lock(); defer e.link.Unlock(); queued, _ := e.link.Backlog(); return queued == 0 })
	end()
	require.ErrorIs(t, <-over, context.Canceled)
	require.Equal(t, route.ErrAskCancelled, <-w.ended)
}

// TestContextsOfAskersThatAreGone: asks that came with a shard, of askers that are members no more, may have one
// number, and share no context.
func TestContextsOfAskersThatAreGone(t *testing.T) {
	_, _, here, _ := cancelPair(t)
	r := here[entity.Worker]
	eventually(t, func() bool {
		_, err := r.AskWithinWith(patience, nil, "e", []byte("answer"), nil)
		return err == nil
	})
	x, now := hostRuntime{r.hosts.Host(r.Shard("e")), r}, r.d.now()
	long, ok := x.Context(now+time.Hour, goneOrigin{}, 7).Deadline()
	require.True(t, ok)
	short, ok := x.Context(now+time.Minute, goneOrigin{}, 7).Deadline()
	require.True(t, ok)
	require.True(t, short.Before(long))
}
