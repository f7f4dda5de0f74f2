// Tests of the pool that runs Blocking entities: its bound, on both ways into it.

package exec

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// No more Blocking entities run at a time than the pool takes, whoever their messages come from; the others wait for
// their turn, and all get one (SHD-5).
func TestBlockingPoolIsBounded(t *testing.T) {
	const bound, entities = 4, 24
	var running, most atomic.Int64
	pass := make(chan struct{})
	x := newBare(t, typeOf(entity.Blocking, 4, func(*entity.Context, []byte) error {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-pass
		running.Add(-1)
		return nil
	}))
	x.pool.most = bound
	ways := map[string]func(){
		"from another node": func() {
			var frames []byte
			for i := range entities {
				env := x.envelope(fmt.Sprint(i), nil)
				frames = wire.AppendEnvelope(frames, &env)
			}
			x.read(t, 0, frames)
		},
		"from here": func() {
			for i := range entities {
				require.Equal(t, route.OK, x.send(fmt.Sprint(i), nil))
			}
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			send()
			eventually(t, func() bool { return running.Load() == bound && x.pool.some.Load() })
			for range entities {
				pass <- struct{}{}
			}
			eventually(t, func() bool { return running.Load() == 0 })
			require.EqualValues(t, bound, most.Load())
			require.False(t, x.pool.some.Load())
		})
	}
}
