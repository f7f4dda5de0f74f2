// Tests of the pool that runs Blocking entities: its bound, on both ways into it.

package driver

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// waiter answers asks at once; a tell it holds until it is let go.
type waiter struct {
	running, most *atomic.Int64
	pass          chan struct{}
}

func (w *waiter) Receive(c *entity.Context, payload []byte) error {
	if c.Asked() {
		return c.Reply(payload)
	}
	n := w.running.Add(1)
	for most := w.most.Load(); n > most && !w.most.CompareAndSwap(most, n); most = w.most.Load() {
	}
	<-w.pass
	w.running.Add(-1)
	return nil
}

func (w *waiter) Stop(*entity.Context) {}

// No more Blocking entities run at a time than the pool takes, whoever their messages come from; the others wait for
// their turn, and all get one (SHD-5).
func TestBlockingPoolIsBounded(t *testing.T) {
	const most, entities = 4, 24
	p := newPair(t, func(c *Config) { c.DataLoops = 1 }) // with several a few may go beyond
	w := &waiter{running: &atomic.Int64{}, most: &atomic.Int64{}, pass: make(chan struct{})}
	typ := entity.Type{Name: "waiters", Role: "host", Shards: 4,
		New: func(string, route.Fence) entity.Handler { return w }}
	here, err := p.b.Register(typ)
	require.NoError(t, err)
	far, err := p.a.Register(typ)
	require.NoError(t, err)
	onControl(p.b, func() { p.b.pool.most = most })
	for i := range entities { // now the homes are known
		_, err := far.AskWithin(patience, fmt.Sprint(i), nil, nil)
		require.NoError(t, err)
	}
	for name, r := range map[string]*Region{"from another node": far, "from here": here} {
		t.Run(name, func(t *testing.T) {
			for i := range entities {
				require.NoError(t, r.Tell(fmt.Sprint(i), nil))
			}
			eventually(t, func() bool { return w.running.Load() == most && p.b.pool.some.Load() })
			for range entities {
				w.pass <- struct{}{}
			}
			eventually(t, func() bool { return w.running.Load() == 0 })
			require.EqualValues(t, most, w.most.Load())
			require.False(t, p.b.pool.some.Load())
		})
	}
}
