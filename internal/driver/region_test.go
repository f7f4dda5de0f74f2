// A type that the cluster refuses: nothing waits for its shards.

package driver

import (
	"errors"
	"fmt"
	"testing"

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
