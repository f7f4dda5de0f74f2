// Tests of the window and of the loads, against peers that exist in this process only.

package rig

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// The window never lets more messages be under way than it has room for, and lets the next ones go when some arrived.
func TestWindow(t *testing.T) {
	in := newInbound()
	addr, err := in.listen()
	require.NoError(t, err)
	w, err := dialWindow(within(t), addr)
	require.NoError(t, err)
	var over atomic.Bool
	for range 2 { // the second load begins where the first one ended
		w.open(100)
		require.True(t, w.take(60, &over))
		require.True(t, w.take(40, &over))
		took := make(chan bool, 1)
		go func() { took <- w.take(1, &over) }()
		require.Never(t, func() bool { return len(took) > 0 }, 30*time.Millisecond, time.Millisecond)
		for i := range 100 {
			in.Count(i)
		}
		require.True(t, <-took)
		in.Count(0)
		require.Eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.done == w.taken }, 10*time.Second,
			time.Millisecond)
	}
	require.EqualValues(t, 202, in.total())
	require.True(t, w.take(100, &over))
	took := make(chan bool, 1)
	go func() { took <- w.take(1, &over) }()
	over.Store(true)
	w.wake()
	require.False(t, <-took, "the load is over")
}

func TestWindowOfAReceiverThatIsGone(t *testing.T) {
	w := &window{gone: true}
	w.room.L = &w.mu
	var over atomic.Bool
	require.False(t, w.take(1, &over))
}

// A program with a function call as its peer counts what it says it sent, one way and asked.
func TestProgram(t *testing.T) {
	var in *Inbound
	const room = 1000
	s := &server{program: &Program{Module: "none",
		Serve: func(_ context.Context, i *Inbound) (string, error) { in = i; return "here", nil },
		Dial: func(_ context.Context, addr string) (Sender, error) {
			require.Equal(t, "here", addr)
			return Variants{"v": {
				Tell: func(_, entity int, payload []byte) error { in.Count(entity); return nil },
				Ask: func(_, entity int, payload []byte) error {
					if entity == 3 {
						return errors.New("three")
					}
					in.Count(entity)
					return nil
				}}}, nil
		},
		Window: func(int) uint64 { return room }}}
	ctx := within(t)
	_, err := s.load(ctx, Load{})
	require.ErrorContains(t, err, "not dialled")
	at, err := s.serve(ctx, struct{}{})
	require.NoError(t, err)
	_, err = s.dial(ctx, DialArgs{at.Addr})
	require.NoError(t, err)
	r, err := s.load(ctx, Load{Work: Tell, Variant: "v", Size: 1, Nanos: int64(20 * time.Millisecond)})
	require.NoError(t, err)
	require.Positive(t, r.Sent)
	require.Zero(t, r.P50)
	require.Zero(t, r.Failed)
	u, err := s.usage(ctx, struct{}{})
	require.NoError(t, err)
	require.Equal(t, r.Sent, u.Count)
	require.NotNil(t, u.Mallocs)
	a, err := s.load(ctx, Load{Work: Ask, Variant: "v", Size: 1, Inflight: 4, Nanos: int64(20 * time.Millisecond)})
	require.NoError(t, err)
	require.Positive(t, a.Sent)
	require.Positive(t, a.P50)
	require.GreaterOrEqual(t, a.P99, a.P50)
	require.Positive(t, a.Failed)
	require.Equal(t, "three", a.FirstErr)
	u, err = s.usage(ctx, struct{}{})
	require.NoError(t, err)
	require.Equal(t, r.Sent+a.Sent, u.Count)
	_, err = s.load(ctx, Load{Work: Ask, Variant: "w", Size: 1, Inflight: 1, Nanos: 1})
	require.ErrorContains(t, err, `no variant "w"`)
	_, err = s.load(ctx, Load{Work: Call, Variant: "v", Size: 1, Inflight: 1, Nanos: 1})
	require.ErrorContains(t, err, "has no load")
}

func TestLoadValidate(t *testing.T) {
	good := Load{Work: Ask, Size: 64, Inflight: 1, Nanos: 1}
	require.NoError(t, good.Validate())
	for _, bad := range []Load{{}, {Work: Tell, Nanos: 1}, {Work: Tell, Size: 1 << 21, Nanos: 1}, {Work: Tell, Size: 1},
		{Work: Ask, Size: 1, Nanos: 1}} {
		require.Error(t, bad.Validate())
	}
}

func TestVersionOfUnknownModules(t *testing.T) {
	require.Empty(t, Version(""))
	require.Empty(t, Version("example.com/none"))
	port, err := FreePort()
	require.NoError(t, err)
	require.Positive(t, port)
}
