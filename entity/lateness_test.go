// Tests of the classes of lateness.

package entity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLatenessOfTimers(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		wish(r)
		r.tell("a", "after 1s one")
		r.tell("a", "after 2s two")
		r.f.now = 2*time.Second + 3*time.Millisecond
		r.Tick(r.f.now)
		r.runAll()
		late := r.Stats().Late
		require.Equal(t, 1003*time.Millisecond, late.Max)
		require.Equal(t, 5*time.Millisecond, late.Quantile(0.5))
		require.Equal(t, late.Max, late.Quantile(1), "no class is told beyond what was seen")
	})
}

// However many are counted, in one value or several: a quantile is at least the true one, and at most two and a half
// times that and a millisecond.
func TestLatenessLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, a, b Lateness
		require.Zero(t, all.Quantile(0.5))
		list := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Minute)), 1, 200).Draw(t, "late")
		for i, n := range list {
			all.Add(time.Duration(n))
			[]*Lateness{&a, &b}[i%2].Add(time.Duration(n))
		}
		a.Merge(&b)
		require.Equal(t, all, a)
		for _, q := range []float64{0, 0.01, 0.5, 0.99, 1} {
			bound, under := all.Quantile(q), 0
			for _, n := range list {
				if time.Duration(n) <= bound {
					under++
				}
			}
			require.GreaterOrEqual(t, under, int(q*float64(len(list))))
			longest := time.Duration(0)
			for _, n := range list {
				if time.Duration(n) <= bound {
					longest = max(longest, time.Duration(n))
				}
			}
			require.LessOrEqual(t, bound, 3*longest+time.Millisecond)
		}
	})
}
