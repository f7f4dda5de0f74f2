// Tests of the account.

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func seconds(all ...float64) (d []time.Duration) {
	for _, s := range all {
		d = append(d, time.Duration(s*float64(time.Second)))
	}
	return d
}

func TestLongestGap(t *testing.T) {
	at := func(s float64) time.Duration { return seconds(s)[0] }
	for _, c := range []struct {
		answers           []float64
		from, until, want float64
	}{
		{nil, 10, 20, 10},
		{[]float64{1, 2, 3}, 10, 20, 17},
		{[]float64{9, 10, 11, 12, 20, 21}, 10, 20, 8},
		{[]float64{21, 9, 30}, 10, 20, 12},
		{[]float64{9, 10.5, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20.5}, 10, 20, 1.5},
	} {
		_, gap := longest(seconds(c.answers...), at(c.from), at(c.until))
		require.Equal(t, at(c.want), gap, c)
	}
	began, _ := longest(seconds(9, 10.5, 17, 20.5), at(10), at(20))
	require.Equal(t, at(10.5), began)
	require.Zero(t, median(nil))
	require.Equal(t, at(2), median(seconds(3, 1, 2)))
}

// A loss is explained by a round in which a fault touched its sender, its owner, or the way between.
func TestExplain(t *testing.T) {
	rounds := []past{
		{faults: []struck{{Fault{Kind: Kill, Victims: 1}, []int{2}}}, from: 10 * time.Second, until: 40 * time.Second},
		{faults: []struck{{Fault: Fault{Kind: Loss}}}, from: 50 * time.Second},
	}
	for _, c := range []struct {
		from   int
		owners []int
		at     float64
		want   int
	}{
		{2, []int{0}, 11, 0},
		{0, []int{1, 2}, 11, 0},
		{0, []int{1}, 11, -1},
		{0, nil, 11, -1},
		{2, nil, 11, 0},
		{2, []int{0}, 5, -1},
		{2, []int{0}, 45, -1},
		{0, []int{1}, 60, 1},
	} {
		require.Equal(t, c.want, explain(rounds, c.from, c.owners, seconds(c.at)[0]), c)
	}
}

func TestReportsAreSetAgainstWhatIsMissing(t *testing.T) {
	missing := []message{{sender: 1, shard: 3, why: 0}, {sender: 1, shard: 3, why: -1}, {sender: 1, shard: 4, why: -1},
		{sender: 2, shard: 3, why: 0}}
	lost, taken := matchReported(missing, map[groupKey]int{{1, 0, 3}: 1, {2, 0, 3}: 5})
	require.Equal(t, 2, taken)
	require.Equal(t, []message{{sender: 1, shard: 4, why: -1}, {sender: 1, shard: 3, why: 0}}, lost)
}
