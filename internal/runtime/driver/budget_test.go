// Tests of a node's budgets.

package driver

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many shards ask at once, no more than a sixteenth of the budget is kept in vain, and what is kept counts as
// empty in the figures (SHD-9).
func TestLittleOfTheBudgetIsKept(t *testing.T) {
	const block = 4 << 10
	b := budget{limit: 40 * keepShare * block}
	var wg sync.WaitGroup
	var mu sync.Mutex
	kept := 0
	for range 8 {
		wg.Go(func() {
			for range 10 {
				require.True(t, b.Take(block))
				if b.Keep(block) {
					mu.Lock()
					kept++
					mu.Unlock()
					continue
				}
				b.Give(block)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 40, kept)
	require.Zero(t, b.waits())
	require.True(t, b.Take(100))
	require.EqualValues(t, 100, b.waits())
	b.GiveUp(block)
	b.Give(block)
	require.EqualValues(t, 100, b.waits())
	require.True(t, b.Keep(block))
}
