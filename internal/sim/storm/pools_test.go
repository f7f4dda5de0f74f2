// Pools in storms: which seeds draw one, and that messages go to workers here and elsewhere (SHD-12).

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPoolsInStorms: a storm with a pool breaks no rule, and every process has an answer in the end; workers of the
// sender's node take messages, and those of others do when these have no room or are not there.
func TestPoolsInStorms(t *testing.T) {
	drawn, sent := 0, [2]int{}
	for seed := uint64(1); drawn < 3; seed++ {
		s := newStorm(seed, nil, false)
		if x, is := s.crew.(*pools); is {
			require.Empty(t, s.run().violations, "seed %d", seed)
			sent[0] += x.sent[0]
			sent[1] += x.sent[1]
			drawn++
		}
	}
	require.Greater(t, sent[0], 100)
	require.Greater(t, sent[1], 50)
}
