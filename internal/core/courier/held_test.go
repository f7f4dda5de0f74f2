// A test of how many bytes a courier holds that came before one that is missing.

package courier

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// What waits for a message before it is bounded in bytes too: of large ones fewer are held, and the rest comes again.
func TestHeldBytesAreBounded(t *testing.T) {
	const size, n = maxHeldBytes / 16, 40
	w := newNet(t, 1, 2, Config{Bytes: 2 * n * size, TotalBytes: 2 * n * size})
	a, b := w.posts[0], w.posts[1]
	first := true
	w.lose = func(from peer.ID, m *peer.Mail) bool {
		drop := first && from == a.id
		first = first && !drop
		return drop || from == b.id
	}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i, strings.Repeat(".", size-2)))
		require.NoError(t, w.say(a, b, all[i]))
	}
	w.run(100*time.Millisecond, never)
	held := b.m.links[0].held
	require.LessOrEqual(t, b.m.links[0].heldBytes, maxHeldBytes)
	require.Len(t, held, maxHeldBytes/len(held[len(held)-1].body))
	require.Equal(t, uint64(n-1-len(held)), b.m.Stats().NotHeld)
	w.lose = nil
	require.True(t, w.run(time.Minute, w.quiet))
	require.Equal(t, all, b.got[a.id])
}
