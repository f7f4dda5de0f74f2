// Tests of what a shard keeps for busy entities, and of the size of an idle one.

package entity

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A million idle entities must fit: the record is one line of memory.
func TestEntityIsOneLine(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Entity{}), uintptr(64))
}

// Each message of a Blocking entity moves its activity and its batch between cores: they are two lines each, and of the
// activity one is the sender's and one the run's.
func TestActivityIsTwoLines(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(activity{}), uintptr(128))
	require.EqualValues(t, 64, unsafe.Offsetof(activity{}.now))
	require.LessOrEqual(t, unsafe.Sizeof(batch{}), uintptr(128))
}

// What a burst made the shard keep is let go when none of its entities has been busy for a second, not before.
func TestQuietShardLetsGoOfSpareMemory(t *testing.T) {
	r := newRig(t, Blocking)
	burst := func() {
		for i := range 20 {
			r.deliver(fmt.Sprint("e", i), "x", nil, 0)
		}
		r.runAll()
	}
	burst()
	require.EqualValues(t, 20, r.spare.ofActs)
	require.True(t, r.Spare())
	r.Tick(quietAfter - 1)
	require.EqualValues(t, 20, r.spare.ofActs, "not quiet for long enough")
	r.f.now = quietAfter
	r.deliver("slow", "x", nil, 0)
	r.Tick(3 * quietAfter)
	require.NotZero(t, r.spare.ofActs, "one is busy")
	r.f.now = 3 * quietAfter
	r.runAll()
	r.Tick(3 * quietAfter)
	require.EqualValues(t, keepQuiet, r.spare.ofActs)
	require.EqualValues(t, keepQuiet, r.spare.ofBatches)
	acts, batches := 0, 0
	for a := r.spare.acts; a != nil; a = a.spare {
		acts++
	}
	for b := r.spare.batches; b != nil; b = b.next {
		batches++
	}
	require.Equal(t, []int{keepQuiet, keepQuiet}, []int{acts, batches}, "what is not counted is not held")
	require.False(t, r.Spare())
	burst()
	require.Equal(t, uint64(41), r.Stats().Delivered)
}
