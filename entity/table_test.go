// The table against a map: random lives of ids, among them many with hashes that agree in the bits that the table uses.

package entity

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// crowd returns ids with hashes that end alike, so that they crowd into one window of any table of up to 64 slots.
func crowd(n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprint("c", i); xxhash.Sum64String(id)&63 == 5 {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestTableIsAMap(t *testing.T) {
	crowded := crowd(40)
	rapid.Check(t, func(t *rapid.T) {
		table := newTable()
		model := map[string]*Entity{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := fmt.Sprint("e", rapid.IntRange(0, 60).Draw(t, "id"))
			if rapid.Bool().Draw(t, "crowded") {
				id = rapid.SampledFrom(crowded).Draw(t, "id")
			}
			e := table.find(HashID([]byte(id)), []byte(id))
			require.Same(t, model[id], e)
			switch {
			case e == nil:
				model[id] = table.add(id)
			case rapid.Bool().Draw(t, "remove"):
				table.remove(e)
				delete(model, id)
			}
			require.Len(t, table.dense, len(model))
		}
		for id, e := range model {
			require.Same(t, e, table.find(HashID([]byte(id)), []byte(id)))
		}
	})
}

// A table of one entity has no slots, and finds it, and nothing else by its id; the second one brings them.
func TestSoleEntityNeedsNoSlot(t *testing.T) {
	table := newTable()
	hash := func(id string) uint64 { return HashID([]byte(id)) }
	for range 2 {
		one := table.add("one")
		require.Empty(t, table.slots)
		require.Same(t, one, table.likely(hash("one")))
		require.Same(t, one, table.find(hash("one"), []byte("one")))
		require.Nil(t, table.find(hash("two"), []byte("two")))
		table.remove(one)
		require.Nil(t, table.likely(hash("one")))
		require.Nil(t, table.find(hash("one"), []byte("one")))
	}
	one, two := table.add("one"), table.add("two")
	require.Len(t, table.slots, minSlots)
	require.Nil(t, table.sole)
	for id, e := range map[string]*Entity{"one": one, "two": two} {
		require.Same(t, e, table.likely(hash(id)))
		require.Same(t, e, table.find(hash(id), []byte(id)))
	}
	table.remove(two)
	require.Same(t, one, table.find(hash("one"), []byte("one")))
}

// Ids that were chosen to crowd do not make the table grow without end: they lie in its map.
func TestCrowdedIdsOverflow(t *testing.T) {
	table := newTable()
	ids := crowd(30)
	for _, id := range ids {
		table.add(id)
	}
	require.Len(t, table.slots, 64)
	require.NotEmpty(t, table.more)
	for _, id := range ids {
		require.Equal(t, id, table.find(HashID([]byte(id)), []byte(id)).id)
	}
	for _, id := range ids {
		table.remove(table.find(HashID([]byte(id)), []byte(id)))
	}
	require.Empty(t, table.more)
	require.Nil(t, table.find(HashID([]byte(ids[0])), []byte(ids[0])))
}
