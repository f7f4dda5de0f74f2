// A test of which is next among large messages that share a bulk connection.

package flow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

// TestBulkTurnsGoOn: when one of several is over, the next chunk is that of the one behind it, not of one that has just
// had its turn.
func TestBulkTurnsGoOn(t *testing.T) {
	p := newBulkPair(t, 10_000, 0, 50_000)
	var all [3]*BulkTransfer
	for i := range all {
		all[i] = p.send(1000, byte(i))
	}
	for _, f := range bulkFrames(t, p.s.Append(0, nil)) { // all begin, nothing is granted yet
		p.read(f)
	}
	for _, f := range bulkFrames(t, p.r.AppendAnswers(nil)) {
		_, e, _, err := p.s.Handle(0, wire.ParseHeader(f).Kind, wire.Body(f))
		require.NoError(t, err)
		require.Equal(t, BulkMayGo, e)
	}
	sends := func() (x *BulkTransfer) {
		before := [3]int{all[0].sent, all[1].sent, all[2].sent}
		p.s.Append(0, nil)
		for i, y := range all {
			if y.sent > before[i] {
				require.Nil(t, x, "one chunk at a time")
				x = y
			}
		}
		return x
	}
	one, two, three := sends(), sends(), sends()
	require.ElementsMatch(t, all[:], []*BulkTransfer{one, two, three}, "all have had a turn")
	require.Same(t, one, sends())
	require.True(t, p.s.Cancel(three))
	require.Same(t, two, sends())
	require.Same(t, one, sends())
}
