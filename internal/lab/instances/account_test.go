// Tests of the account.

package instances

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was sent is held against what came, by sender, slot and time.
func TestAccount(t *testing.T) {
	ms := time.Millisecond
	one := life{to{"p", 0}, 1 * ms, 10 * ms, []numbers{{0, 1, 5, 1 * ms}, {1, 1, 2, 2 * ms}, {0, 7, 8, 9 * ms}}}
	two := life{to{"p", 0}, 8 * ms, 20 * ms, []numbers{{0, 6, 6, 12 * ms}, {1, 2, 3, 8 * ms}}}
	next := life{to{"p", 0}, 25 * ms, 26 * ms, []numbers{{0, 9, 9, 25 * ms}}}
	reports := []report{{Lives: []life{one, {to: to{"q", 0}}}, Sent: map[string]uint32{"p/0": 11},
		Back: map[string][]uint32{"p/0": {10}}},
		{Lives: []life{two, next}, Sent: map[string]uint32{"p/0": 3}}}
	require.Equal(t, &Account{Sent: 14, Handled: 12, Returned: 1, Lost: 1, Doubled: 1, Reordered: 1, Lives: 3, Overlap: 2,
		Gap: 5}, account("p", reports))
}
