// What a user's function may do to the goroutine that calls it.

package callback

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/invariant"
)

func TestCall(t *testing.T) {
	var log bytes.Buffer
	g := &Guard{Log: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, g.Call("Hook", func() {}))
	require.Zero(t, g.Count())
	for i := range 3 {
		err := g.Call("Hook", func() { panic("boom") })
		require.ErrorIs(t, err, ErrPanicked)
		require.ErrorContains(t, err, "Hook: boom")
		require.EqualValues(t, i+1, g.Count())
	}
	require.Equal(t, 1, strings.Count(log.String(), "callback panicked"), "the others a second later at most")
	require.Contains(t, log.String(), "TestCall", "the stack")
	require.ErrorIs(t, g.Call("Other", func() { panic(nil) }), ErrPanicked)
	require.Equal(t, 2, strings.Count(log.String(), "msg=\"callback panicked\""), "the first of each function")
	require.ErrorIs(t, (*Guard)(nil).Call("Hook", func() { panic("boom") }), ErrPanicked)
	require.Zero(t, (*Guard)(nil).Count())
	require.Panics(t, func() { _ = g.Call("Hook", func() { invariant.Check(false, "ours") }) })
}

func TestCallThatEndsItsGoroutine(t *testing.T) {
	g := &Guard{}
	ended := make(chan bool)
	go func() {
		returned := false
		defer func() { ended <- returned }()
		_ = g.Call("Hook", runtime.Goexit)
		returned = true
	}()
	require.False(t, <-ended)
	require.EqualValues(t, 1, g.Count())
}
