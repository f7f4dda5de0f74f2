// Tests of the rules about clusters that follow one another.

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/shard"
)

// A coordinator that stands still since before a new cluster was formed without it is no rival of the new one's, in
// whichever order they say that they are ready; one that handles messages is (JOIN-1, SHD-9).
func TestCoordinatorOfAClusterThatIsNoMore(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, first := range []int{0, 1} {
			w := formed(t, 2, Config{})
			older, younger := w.hosts[0].proc, w.hosts[1].proc
			v := *younger.view
			v.Birth++
			younger.view = &v
			older.gate.suspended = held
			list := []*proc{older, younger}
			checks(w).seat(list[first], &shard.Event{Type: 7, Term: 2})
			checks(w).seat(list[1-first], &shard.Event{Type: 7, Term: 1})
			if held {
				require.Empty(t, checks(w).violations)
				require.Equal(t, younger, checks(w).leads[7].p)
			} else {
				require.Equal(t, "two-coordinators", checks(w).violations[0].Rule)
			}
		}
	}
}
