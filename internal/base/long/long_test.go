// Tests of what is left out of make test.

package long

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// They run where they are wanted, and nowhere else.
func TestLongTestsAreSkipped(t *testing.T) {
	t.Setenv(Env, "")
	ran := false
	require.True(t, t.Run("without", func(t *testing.T) { Test(t); ran = true }))
	require.False(t, ran)
	t.Setenv(Env, "1")
	require.True(t, t.Run("with", func(t *testing.T) { Test(t); ran = true }))
	require.True(t, ran)
}

// A quarter of the seeds are drawn with -short, and all of them without.
func TestFewer(t *testing.T) {
	want := []uint64{20, 8, 3}
	if testing.Short() {
		want = []uint64{5, 2, 1}
	}
	require.Equal(t, want, []uint64{Fewer(20), Fewer(8), Fewer(3)})
}
