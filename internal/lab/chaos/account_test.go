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

// Reports are counts: of a sender and shard, of several shards, or of the process where the messages lay. They are
// taken for those first that nothing explains, then for those that all sides have lived through.
func TestReportsAreSetAgainstWhatIsMissing(t *testing.T) {
	missing := []message{{sender: 1, shard: 3, cause: senderEnded}, {sender: 1, shard: 3}, {sender: 1, shard: 4},
		{sender: 2, shard: 3, cause: onTheWay}, {sender: 1, shard: 5, cause: receiverEnded, owners: []uint32{7}},
		{sender: 1, shard: 6, owners: []uint32{7}}}
	lost, taken := matchReported(missing, map[groupKey]int{{1, 0, 3, false}: 1, {2, 0, noShard, false}: 5,
		{7, 0, 5, true}: 1, {7, 0, 6, false}: 1})
	require.Equal(t, 3, taken)
	require.Equal(t, []message{missing[2], missing[5], missing[0]}, lost)
}

// What takes a message is the end of its sender, or of its owner, soon after; the end of the run is neither.
func TestCauses(t *testing.T) {
	ended := func(at float64, over bool) *volume {
		return &volume{life: &life{end: seconds(at)[0], over: over}}
	}
	b := &journalSet{volumes: map[uint32]*volume{1: ended(0, false), 2: ended(50, true), 3: ended(50, false)}}
	for _, c := range []struct {
		sender uint32
		owners []uint32
		at     float64
		want   cause
	}{
		{2, []uint32{1}, 40, senderEnded},
		{1, []uint32{1, 2}, 40, receiverEnded},
		{1, []uint32{2}, 51, receiverEnded},
		{1, []uint32{2}, 54, onTheWay},
		{3, []uint32{1}, 40, onTheWay},
		{1, []uint32{3}, 40, onTheWay},
		{1, nil, 40, onTheWay},
	} {
		m := &message{sender: c.sender, owners: c.owners, at: seconds(c.at)[0]}
		require.Equal(t, c.want, b.cause(b.volumes[c.sender].life, m), c)
	}
	late := ended(50, true)
	require.False(t, late.life.endedAfter(-endTime))
}
