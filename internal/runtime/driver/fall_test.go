// Tests of the moment at which memory is given back.

package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Memory is given back two seconds behind a fall, and not again within thirty, whatever comes (CARD-3).
func TestMemoryIsGivenBackBehindAFall(t *testing.T) {
	const mib = 1 << 20
	type look struct {
		at   time.Duration
		used int64
		give bool
	}
	for name, looks := range map[string][]look{
		"a small peak": {{1, 63 * mib, false}, {2, 0, false}, {10, 0, false}},
		"a fall that stays": {
			{1, 255 * mib, false}, {2, 20 * mib, false}, {3, 20 * mib, false},
			{4, 20 * mib, true}, {5, 20 * mib, false},
		},
		"too much is left": {{1, 255 * mib, false}, {2, 40 * mib, false}, {60, 40 * mib, false}},
		"a fall that ends": {
			{1, 255 * mib, false}, {2, 0, false}, {3, 200 * mib, false},
			{4, 0, false}, {5, 0, false}, {6, 0, true},
		},
		"a second one, early": {
			{1, 255 * mib, false}, {2, 0, false}, {4, 0, true}, {5, 255 * mib, false},
			{6, 0, false}, {33, 0, false}, {34, 0, true},
		},
		"one peak counts once": {
			{1, 255 * mib, false}, {2, 0, false}, {4, 0, true},
			{100, 0, false}, {200, 0, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f fall
			for _, l := range looks {
				require.Equal(t, l.give, f.step(l.at*time.Second, l.used), "at %d s", l.at)
			}
		})
	}
}
