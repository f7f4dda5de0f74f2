// What a suspended process keeps when it ends.

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// A process that cannot step keeps a tell, refuses a larger ask behind it, and goes on, or ends. The sender of the tell
// reports it as lost in the second case alone: what is consumed behind it gives no credit that counts for it, and all
// of it once the process goes on. Found by storm seed 981126000858 (SHD-4, MEM-10).
func TestWhatIsKeptAtTheEndIsReported(t *testing.T) {
	for name, ends := range map[string]func(*Process){"goes on": nil, "closes": (*Process).Close,
		"dies": func(p *Process) { p.Crash(true) }} {
		var w *World
		typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(_ *entity.Context, b []byte) error {
				if Numbered(b) {
					w.Delivered(w.Hosts[0].Process, route.TypeOf("t"), "x", b)
				}
				return nil
			})
		}}}
		w = formed(t, 2, setup.Config{Resolver: ResolverOff, Data: setup.DataConfig{Keep: 256}}, typ)
		at, from := w.Hosts[0].Process, w.Hosts[1].Process
		r := from.Region(route.TypeOf("t"))
		for range 2 {
			_, err := r.Send("x", []byte("small"), 0)
			require.NoError(t, err)
			w.Advance(time.Second)
		}
		at.Stick(time.Minute)
		require.True(t, w.Until(time.Minute, at.Held), name)
		tell, _ := w.Book.Write(from, r.ID, "x", 64)
		_, err := r.Send("x", tell, 0)
		require.NoError(t, err)
		w.Advance(100 * time.Millisecond)
		var answer error
		require.NoError(t, from.Ask(time.Minute, "t", "x", make([]byte, 1000), func(_ []byte, err error) { answer = err }))
		w.Advance(100 * time.Millisecond)
		require.ErrorIs(t, answer, route.ErrSuspended, name)
		l := from.linkOf(at.ID, 0).flow
		require.Greater(t, l.Outstanding(), int64(1000), "%s: no credit comes back", name)
		reported := uint64(0)
		if ends != nil {
			reported = 1
			ends(at)
		}
		w.Advance(2 * time.Minute)
		if ends != nil {
			from.forgetPeer(at.ID)
		}
		require.Zero(t, l.Outstanding(), name)
		sure := w.Book.Reports()[Report{from, 0, route.NoShard, route.LostInFlight}]
		require.Equal(t, reported, sure+w.Book.Unknown()[from], name)
		w.Audit()
		require.Empty(t, broken(w), name)
	}
}
