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

// Each message of a Blocking entity moves its activity and its batch between cores: they are two lines each. Of the
// activity one is the sender's and one the run's, and one message alone is content with the first of a batch.
func TestActivityIsTwoLines(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(activity{}), uintptr(128))
	require.EqualValues(t, 64, unsafe.Offsetof(activity{}.now))
	require.LessOrEqual(t, unsafe.Sizeof(batch{}), uintptr(128))
	require.EqualValues(t, 64, unsafe.Offsetof(batch{}.next))
}

// What a goroutine that delivers writes lies on other lines than what runs read without the lock, and a message of each
// mode touches few.
func TestLinesOfAShard(t *testing.T) {
	const header = 8 // of the heap, in front of what is as large as this
	var s Shard
	line := func(at uintptr) uintptr { return (at + header) / 64 }
	require.EqualValues(t, 0, line(unsafe.Offsetof(s.calling)+unsafe.Sizeof(s.calling)-1), "and all before it")
	require.EqualValues(t, 1, line(unsafe.Offsetof(s.readyHead)))
	require.EqualValues(t, 1, line(unsafe.Offsetof(s.spare)+unsafe.Sizeof(s.spare)-1))
	require.EqualValues(t, 2, line(unsafe.Offsetof(s.lease)))
	require.EqualValues(t, 2, line(unsafe.Offsetof(s.busyAt)))
	require.EqualValues(t, 3, line(unsafe.Offsetof(s.table)))
	require.EqualValues(t, 3, line(unsafe.Offsetof(s.now)))
	require.EqualValues(t, 3, line(unsafe.Offsetof(s.stats)))
	require.Zero(t, unsafe.Offsetof(s.stats.Delivered))
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
	require.Len(t, r.spare.acts, 20)
	require.True(t, r.Spare())
	r.Tick(quietAfter - 1)
	require.Len(t, r.spare.acts, 20, "not quiet for long enough")
	r.f.now = quietAfter
	r.deliver("slow", "x", nil, 0)
	r.Tick(3 * quietAfter)
	require.NotEmpty(t, r.spare.acts, "one is busy")
	r.f.now = 3 * quietAfter
	r.runAll()
	r.Tick(3 * quietAfter)
	require.Len(t, r.spare.acts, keepQuiet)
	require.Len(t, r.spare.batches, keepQuiet)
	require.False(t, r.Spare())
	burst()
	require.Equal(t, uint64(41), r.Stats().Delivered)
}
