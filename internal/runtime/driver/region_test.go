// The table of registered types, and a type that the cluster refuses: nothing waits for its shards.

package driver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// A message that is on its way into the parking queue while its type is refused is refused too, or fails with what was
// parked: it does not wait until its time is over (SHD-4).
func TestNothingParksForARefusedType(t *testing.T) {
	d, err := Start(t.Context(), Config{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, d.Ready(t.Context()))
	for i := range 200 {
		r, err := d.Register(entity.Type{Name: fmt.Sprintf("type-%d", i), Shards: 1, Role: "elsewhere",
			New: func(string, route.Fence) entity.Handler { return &plain{} }})
		require.NoError(t, err)
		began, ended := make(chan struct{}), make(chan error)
		go func() {
			close(began)
			for {
				if err := r.Tell("a", []byte("one")); err != nil && !errors.Is(err, route.ErrParkFull) {
					ended <- err
					return
				}
			}
		}()
		<-began
		onControl(d, func() { d.typeRefused(shard.TypeRefused{Type: r.id, Err: shard.ErrSettingsDiffer}) })
		require.ErrorIs(t, <-ended, shard.ErrSettingsDiffer)
		s := slotRef{r, 0}.slot()
		s.mu.Lock()
		parked, _ := s.slot.Parked()
		s.mu.Unlock()
		require.Zero(t, parked, "of type %d", i)
	}
}

// The table of types has each by number and by name, in their order; one takes the place of a refused one of its name,
// and one that was not taken leaves nothing. A table that somebody reads is never changed.
func TestRegionTable(t *testing.T) {
	d, err := Start(t.Context(), Config{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	typ := func(name string, slow time.Duration) *Region {
		return newRegion(d, entity.Type{Name: name, Shards: 1, SlowAfter: slow}.WithDefaults())
	}
	table, want, tables := &regionTable{}, []*Region{}, []*regionTable{}
	for i := range 300 {
		r := typ(fmt.Sprintf("type-%d", i), time.Duration(i%2)*time.Second)
		want = append(want, r)
		table = table.with(r)
		tables = append(tables, table)
		if i%7 == 0 {
			spare := typ(fmt.Sprintf("spare-%d", i), 0)
			refused := table.with(spare)
			require.Equal(t, spare, refused.named(spare.typ.Name))
			table = table.without()
			require.Nil(t, table.named(spare.typ.Name))
		}
	}
	again := typ("type-8", 0)
	newest := table.with(again)
	require.Equal(t, again, newest.byID.At(again.id))
	require.Equal(t, again, newest.list[len(newest.list)-1])
	require.Len(t, newest.list, len(want))
	require.NotContains(t, newest.list, want[8])
	for i, old := range tables {
		require.Equal(t, want[:i+1], old.list)
	}
	for _, r := range want {
		require.Same(t, r, table.byID.At(r.id))
		require.Same(t, r, table.named(r.typ.Name))
	}
	require.Nil(t, table.named("nothing"))
}
