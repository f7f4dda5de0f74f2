// Tests of what is around the messages of a type between two nodes: every form of sending, both ends.

package driver

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// aroundSends is what was around sends, in order.
type aroundSends struct {
	mu   sync.Mutex
	sent []entity.Sending
	ends []error
	end  chan struct{}
}

// send is an Around.Send: it signs, and refuses what the payload says.
func (s *aroundSends) send(m *entity.Sending) (func([]byte, error), error) {
	switch string(m.Payload) {
	case "refuse":
		return nil, errUnsigned
	case "panic":
		panic("oops")
	}
	m.Headers = append(slices.Clone(m.Headers), "signed"...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, *m)
	return func(_ []byte, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ends = append(s.ends, err)
		s.end <- struct{}{}
	}, nil
}

var errUnsigned = route.NewError("unsigned", route.KindDenied, "not signed")

// signed is an Around.Receive.
func signed(c *entity.Context, payload []byte, next func([]byte) error) error {
	if !bytes.HasSuffix(c.Headers(), []byte("signed")) {
		return errUnsigned
	}
	return next(payload)
}

// aroundTypes registers a type of each mode at both nodes of p: the first signs, the second looks.
func aroundTypes(t *testing.T, p *pair, mode entity.Mode, signs bool) (*Region, *aroundSends) {
	s := &aroundSends{end: make(chan struct{}, 100)}
	typ := entity.Type{Name: "around " + mode.String(), Role: "host", Shards: 4, Mode: mode,
		New: func(string, route.Fence) entity.Handler { return &plain{p.note} }}
	if !signs {
		typ.Name += " unsigned"
	}
	there := typ
	there.Around = []entity.Around{{Receive: signed}}
	_, err := p.b.Register(there)
	require.NoError(t, err)
	if signs {
		typ.Around = []entity.Around{{Send: s.send}}
	}
	r, err := p.a.Register(typ)
	require.NoError(t, err)
	return r, s
}

// forms are all forms of sending; each returns when its end is known.
func forms(r *Region) map[string]func(payload string) error {
	return map[string]func(payload string) error{
		"Tell":     func(b string) error { return r.TellWith(nil, "e", []byte(b)) },
		"TellWait": func(b string) error { return r.TellWaitWith(context.Background(), nil, "e", []byte(b)) },
		"TellBulk": func(b string) error { return r.TellBulkWith(context.Background(), nil, "e", []byte(b), nil) },
		"Ask": func(b string) error {
			ctx, end := context.WithTimeout(context.Background(), patience)
			defer end()
			_, err := r.AskWith(ctx, nil, "e", []byte(b))
			return err
		},
		"AskWithin": func(b string) error {
			_, err := r.AskWithinWith(patience, nil, "e", []byte(b), nil)
			return err
		},
		"AskFunc": func(b string) error {
			over := make(chan error, 1)
			if err := r.AskFuncWith(patience, nil, "e", []byte(b), func(_ []byte, err error) { over <- err }); err != nil {
				return err
			}
			return <-over
		},
	}
}

// TestAroundBothEnds: each form of sending calls what is around it and is let in by what it has added; one that is
// refused here reaches nobody, and a message that is not signed is turned away there, by an error that says that
// nothing ran.
func TestAroundBothEnds(t *testing.T) {
	p := newPair(t)
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		r, s := aroundTypes(t, p, mode, true)
		bare, _ := aroundTypes(t, p, mode, false)
		for name, send := range forms(r) {
			before := p.b.count.callbacks.Count()
			require.NoError(t, send("x"), name)
			<-s.end
			err := send("refuse")
			require.ErrorIs(t, err, errUnsigned, name)
			require.False(t, route.MayHaveRun(err), name)
			panics := p.a.count.callbacks.Count()
			err = send("panic")
			require.ErrorIs(t, err, route.ErrPanic, name)
			require.False(t, route.MayHaveRun(err), name)
			require.Equal(t, panics+1, p.a.count.callbacks.Count())
			require.Equal(t, before, p.b.count.callbacks.Count())
		}
		s.mu.Lock()
		require.Len(t, s.sent, 6)
		require.Equal(t, make([]error, 6), s.ends)
		asks, within, deadlines := 0, 0, 0
		for _, m := range s.sent {
			require.Equal(t, r.typ.Name, m.Type)
			require.Equal(t, "e", m.ID)
			if m.Asks {
				asks++
			}
			if m.Within == patience {
				within++
			}
			if _, ok := m.Context.Deadline(); ok {
				deadlines++
			}
		}
		require.Equal(t, []int{3, 2, 1}, []int{asks, within, deadlines})
		s.mu.Unlock()
		for name, send := range forms(bare) {
			err := send("unsigned " + name)
			if name[0] == 'T' {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, errUnsigned, name)
			require.ErrorIs(t, err, route.ErrHandler, name)
			require.False(t, route.MayHaveRun(err), name)
		}
	}
	eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.got) >= 9 })
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Equal(t, slices.Repeat([]string{"x"}, 9), p.got, "tells that were signed")
}

// sender tells and asks another type from its handler.
type sender struct{}

func (sender) Receive(c *entity.Context, payload []byte) error {
	if err := c.Tell("around inline", "e", payload); err != nil {
		return err
	}
	b, err := c.Ask(patience, "around inline", "e", payload)
	if err != nil {
		return err
	}
	return c.Reply(b)
}

func (sender) Stop(*entity.Context) {}

// TestAroundOfHandlers: what a handler sends goes by what its own node has around the receiver's type.
func TestAroundOfHandlers(t *testing.T) {
	p := newPair(t)
	_, s := aroundTypes(t, p, entity.Inline, true)
	typ := entity.Type{Name: "sender", Shards: 1, New: func(string, route.Fence) entity.Handler { return sender{} }}
	r, err := p.a.Register(typ)
	require.NoError(t, err)
	got, err := r.AskWithinWith(patience, nil, "s", []byte("x"), nil)
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
	require.Len(t, s.sent, 2)
	require.Equal(t, []bool{false, true}, []bool{s.sent[0].Asks, s.sent[1].Asks})
	_, err = r.AskWithinWith(patience, nil, "s", []byte("refuse"), nil)
	require.ErrorIs(t, err, errUnsigned)
}

// TestAroundSeesFailures: done gets the error that the sender gets, also of an ask that was not taken.
func TestAroundSeesFailures(t *testing.T) {
	p := newPair(t)
	r, s := aroundTypes(t, p, entity.Worker, true)
	_, err := r.AskWithinWith(-time.Second, nil, "e", []byte("x"), nil)
	require.ErrorIs(t, err, route.ErrTimeout)
	<-s.end
	require.ErrorIs(t, r.AskFuncWith(-time.Second, nil, "e", []byte("x"), func([]byte, error) { panic("called") }),
		route.ErrTimeout)
	<-s.end
	require.ErrorIs(t, r.TellWith(nil, "", []byte("x")), route.ErrBadID)
	<-s.end
	require.ErrorIs(t, errors.Join(s.ends[0], s.ends[1]), route.ErrTimeout)
	require.ErrorIs(t, s.ends[2], route.ErrBadID)
}
