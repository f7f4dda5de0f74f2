// Tests of feeds; those of package driver read them as users do.

package feed

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reader that falls behind holds a bounded number of events, learns that it has missed some, and goes on; one that
// keeps up misses nothing, and one that has left holds nothing.
func TestSlowReader(t *testing.T) {
	var f Feed[int]
	begin := func() int { return -1 }
	slow, quick, gone := f.Enter(begin), f.Enter(begin), f.Enter(begin)
	f.Leave(gone)
	var got []int
	for i := range 3 * MaxPending {
		f.Hand([]int{i}, -2, func() {})
		require.LessOrEqual(t, f.Pending(slow), MaxPending)
		var list []int
		list, _ = f.Take(quick, nil)
		got = append(got, list...)
	}
	require.Len(t, got, 3*MaxPending+1)
	require.Equal(t, -1, got[0])
	for i, e := range got[1:] {
		require.Equal(t, i, e)
	}
	list, more := f.Take(slow, nil)
	require.True(t, more)
	require.Equal(t, -2, list[0])
	for i, e := range list[1:] {
		require.Equal(t, 3*MaxPending-len(list)+1+i, e, "what comes behind the gap has none")
	}
	require.Equal(t, 1, f.Pending(gone), "it had left")
	require.True(t, f.Read())
}

// A stream ends with its context, with its feed, and when its reader breaks off; then nobody reads any more.
func TestStreamEnds(t *testing.T) {
	var f Feed[int]
	begin := func() int { return 7 }
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range f.Stream(over, begin) {
	}
	for e := range f.Stream(t.Context(), begin) {
		require.Equal(t, 7, e)
		break
	}
	require.False(t, f.Read())
	n := 0
	for range f.Stream(t.Context(), begin) {
		if n++; n == 1 {
			f.Hand([]int{1, 2}, 0, func() {})
			f.End()
		}
	}
	require.Equal(t, 3, n)
	require.False(t, f.Read())
}
