// Tests of Check: it says nothing while the invariant holds, and names it when it does not.

package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheck holds both outcomes, and that a held invariant costs no memory.
func TestCheck(t *testing.T) {
	require.NotPanics(t, func() { Check(true, "holds") })
	require.PanicsWithError(t, "kith: broken invariant: the ring is empty", func() { Check(false, "the ring is empty") })
	defer func() {
		violation, ok := recover().(*Violation)
		require.True(t, ok)
		require.Equal(t, "typed", violation.What)
	}()
	require.Zero(t, testing.AllocsPerRun(10, func() { Check(true, "holds") }))
	Check(false, "typed")
}
