// A test of what a loop does that finds an Inline shard taken by another one.

package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// A loop that does not get the shard's lock leaves its messages to whoever has it, in order and up to a bound; beyond
// it they are refused, and their sender is told so (SHD-5).
func TestLoserOfTheTryLockLeavesItsMessages(t *testing.T) {
	const messages, size, buffer = 100, 8000, 64 << 10
	p := newPair(t, func(c *Config) { c.DataLoops, c.LinkBuffer, c.MaxPayload = 2, buffer, 10<<10 })
	r := p.at[entity.Inline]
	_, err := r.AskWithin(patience, "a", nil, nil)
	require.NoError(t, err)
	h := p.b.regions.Load().byID[r.id].hosts[r.Shard("a")].Load()
	h.mu.Lock() // as another loop does
	for i := range messages {
		require.NoError(t, r.TellWait(t.Context(), "a", fmt.Appendf(nil, "%03d%s", i, strings.Repeat(".", size))))
	}
	count := func() (refused int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, u := range p.failed {
			require.Equal(t, route.QueueFull, u.Reason)
			require.Equal(t, p.b.self, u.Peer)
			refused += int(u.Count)
		}
		return refused
	}
	room := 8 * buffer / (size + 36) // an envelope's header, the id and the number beside the payload
	eventually(t, func() bool { return count() >= messages-room })
	require.Empty(t, p.got)
	h.mu.Unlock()
	h.pickUp(p.b.now())
	eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.got) == room
	})
	for i, b := range p.got {
		require.Equal(t, fmt.Sprintf("%03d", i), b[:3])
	}
	require.Equal(t, messages-room, count())
}
