// Tests of the book.

package watch

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
)

func begin(t *testing.T, b *Book[int], e *entity.Entity, instance uint32, id string) (Wanted, bool) {
	t.Helper()
	w, fresh, err := b.Begin(Entry[int]{Host: 5, Entity: e, Instance: instance, Name: "t",
		Wanted: Wanted{Type: 1, ID: id}})
	require.NoError(t, err)
	return w, fresh
}

// A watch stands from Begin until its end is reported, it is taken back, or its instance has ended; a second one is the
// first.
func TestBook(t *testing.T) {
	var b Book[int]
	e, o := &entity.Entity{}, &entity.Entity{}
	require.Nil(t, b.Of(1))
	require.Empty(t, b.Over(e, 0))
	w, fresh := begin(t, &b, e, 1, "a")
	require.True(t, fresh)
	again, fresh := begin(t, &b, e, 1, "a")
	require.False(t, fresh)
	require.Equal(t, w, again)
	require.Equal(t, 5, b.Of(w.Number).Host)
	other, _ := begin(t, &b, o, 1, "a")
	next, _ := begin(t, &b, e, 2, "a")
	last, _ := begin(t, &b, e, 1, "b")
	require.Equal(t, []Wanted{w, last}, b.Over(e, 2), "those of the instance before")
	require.False(t, b.Due(w.Number))
	require.True(t, b.Due(next.Number))
	require.False(t, b.Due(next.Number), "once")
	_, ok := b.End(o, 2, 1, "a")
	require.False(t, ok)
	back, ok := b.End(o, 1, 1, "a")
	require.True(t, ok)
	require.Equal(t, other, back)
	require.Empty(t, b.entries)
	require.Empty(t, b.of)
	require.Zero(t, b.taken)
}

// An entity has so many watches, and all of a node take so much, watchers of its entities included.
func TestBookBounds(t *testing.T) {
	var b Book[int]
	e := &entity.Entity{}
	for n := range entity.MaxWatches {
		begin(t, &b, e, 1, strconv.Itoa(n))
	}
	_, _, err := b.Begin(Entry[int]{Entity: e, Instance: 1, Wanted: Wanted{Type: 1, ID: "more"}})
	require.ErrorIs(t, err, entity.ErrWatchesFull)
	begin(t, &b, &entity.Entity{}, 1, "more")
	_, _, taken, _ := b.Figures()
	left := (entity.MaxWatchBytes - taken) / watcherBytes
	require.False(t, b.Room(left+1))
	require.True(t, b.Room(left))
	_, _, err = b.Begin(Entry[int]{Entity: &entity.Entity{}, Instance: 1, Wanted: Wanted{Type: 1, ID: "more"}})
	require.ErrorIs(t, err, entity.ErrWatchesFull)
	require.True(t, b.Room(-left))
	watches, watchers, bytes, refused := b.Figures()
	require.Equal(t, [3]int{entity.MaxWatches + 1, 0, taken}, [3]int{watches, watchers, bytes})
	require.EqualValues(t, 3, refused)
}
