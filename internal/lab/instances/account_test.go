// Tests of the account.

package instances

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/partition"
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

// Each hand-off that there is has a partition in a run (PRT-4).
func TestAllHandoffsAreHere(t *testing.T) {
	var all []partition.Handoff
	for old := range cluster.OldDrops + 1 {
		for buffers := range cluster.NewBuffers + 1 {
			for late := range cluster.LateDrops + 1 {
				if h := (partition.Handoff{Old: old, New: buffers, Late: late}); h.Validate() == nil {
					all = append(all, h)
				}
			}
		}
	}
	require.ElementsMatch(t, all, slices.Collect(maps.Values(handoffs)))
}

// A run fails by what a hand-off promises, and by nothing else (PRT-4).
func TestVerdict(t *testing.T) {
	back, late, two, cut := Account{Returned: 1}, Account{Reordered: 1}, Account{Overlap: 0.1}, Account{CutOverlap: 0.1}
	for path, may := range map[string][]Account{"stateless": {late, two, cut}, "forwards": {late, cut},
		"drops": {back, late, cut}, "late-drops": {back, late, two, cut}, "lossy": {back, late, cut}, "ordered": {},
		"buffers": {}, "drops-buffers": {}} {
		for _, a := range []Account{{}, back, late, two, cut, {Lost: 1}, {Doubled: 1}} {
			ok := a == (Account{}) || slices.Contains(may, a)
			a.Sent = 1
			err := (&Result{Handoffs: map[string]*Account{path: &a}}).verdict()
			require.Equal(t, ok, err == nil, "%s: %+v: %v", path, a, err)
		}
	}
	require.ErrorIs(t, (&Result{Handoffs: map[string]*Account{"lossy": {}}}).verdict(), ErrFailed, "nothing was sent")
}
