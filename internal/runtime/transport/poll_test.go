// Tests of loops that poll before they sleep.

package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/wire"
)

// Frames go back and forth between two loops that poll.
func TestPollingTransports(t *testing.T) {
	a, b := newRider(), newRider()
	polling := func(c *Config) { c.PollFor = loop.MaxPollFor }
	ta, tb := start(t, a, polling), start(t, b, polling)
	there, back := ta.Link(tb.Self()), tb.Link(ta.Self())
	b.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func([]byte) { _ = send(t, back, 0, 0, 64, nil) })
		c.Consumed(len(frames))
	}
	got := make(chan int, 100)
	a.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func(f []byte) { got <- len(f) })
		c.Consumed(len(frames))
	}
	for range 200 {
		require.NoError(t, send(t, there, 0, 0, 64, nil))
		require.Equal(t, wire.SizeEnvelope(1, 64), want(t, got))
	}
	require.NotZero(t, ta.Stats().Data.Polls)
}
func TestPollForIsBounded(t *testing.T) {
	for _, d := range []time.Duration{-1, loop.MaxPollFor + 1} {
		_, err := New(Config{Incarnation: 1, Name: "x", PollFor: d}, newRider())
		require.ErrorContains(t, err, "PollFor")
	}
}
