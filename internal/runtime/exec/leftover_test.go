// A test of what a loop does that finds an Inline shard taken by another one.

package exec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A loop that does not get the shard's lock leaves its messages to the holder, in order and up to a bound; beyond it
// they are refused to their sender (SHD-5).
func TestLoserOfTheTryLockLeavesItsMessages(t *testing.T) {
	const messages, size, buffer = 100, 8000, 512 << 10
	var got []string
	x := newBare(t, typeOf(entity.Inline, 1, func(_ *entity.Context, payload []byte) error {
		got = append(got, string(payload[:3]))
		return nil
	}), func(c *Config) { c.Loops, c.LocalBuffer = make([]*loop.Loop, 2), buffer })
	h := x.host("a")
	h.mu.Lock() // as another loop does
	var frames []byte
	for i := range messages {
		env := x.envelope("a", fmt.Appendf(nil, "%03d%s", i, strings.Repeat(".", size)))
		frames = wire.AppendEnvelope(frames, &env)
	}
	x.read(t, 1, frames)
	require.Empty(t, got)
	room := buffer / (len(frames) / messages)
	require.Len(t, x.told(), messages-room)
	for _, r := range x.told() {
		require.Equal(t, refusal{x.typ, x.other, "a", false, route.QueueFull}, r)
	}
	require.EqualValues(t, messages-room, x.typ.Refused(route.QueueFull))
	h.mu.Unlock()
	x.onLoop(t, 0, func() { h.pickUp(x.Clock.Now()) })
	require.Len(t, got, room)
	for i, b := range got {
		require.Equal(t, fmt.Sprintf("%03d", i), b)
	}
}
