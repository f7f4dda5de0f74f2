// The deadline of a move, in the three modes: what is taken, and what the next host begins with.

package exec

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// At the deadline no handler is called for what waits, in a mailbox, before a worker or before a loop: it is taken in
// order, and a host that begins with it has it handled before anything else (SHD-9, deadline, transfer-first).
func TestHostIsCut(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			got, on := make(chan string, 1000), make(chan struct{})
			x := newBare(t, typeOf(mode, 1, func(_ *entity.Context, payload []byte) error {
				if got <- string(payload); string(payload) == "stand" {
					<-on
				}
				return nil
			}))
			h := x.host("a")
			require.Equal(t, route.OK, x.send("a", []byte("stand")))
			require.Equal(t, "stand", <-got)
			require.Equal(t, route.OK, x.send("a", []byte("stand"))) // the first of a run that has more
			const sent = 300                                         // more than a Blocking entity takes into one run
			for i := range sent {
				require.Equal(t, route.OK, x.send("a", fmt.Appendf(nil, "%03d", i)))
			}
			on <- struct{}{}
			require.Equal(t, "stand", <-got)
			h.Stop(entity.StopMoved, 0, time.Millisecond, 0)
			eventually(t, func() bool { return Overdue(h) })
			close(on)
			eventually(t, func() bool { return x.typ.Host(0) == nil })
			left := Left(h)
			require.Len(t, left, sent)
			require.Empty(t, got)
			require.Empty(t, Left(h), "it is taken once")
			x.typ.Begin(0, x.fence, left, nil)
			require.Equal(t, route.OK, x.send("a", fmt.Appendf(nil, "%03d", sent)))
			for i := range sent + 1 {
				require.Equal(t, fmt.Sprintf("%03d", i), <-got)
			}
			require.Empty(t, x.told())
		})
	}
}

// A shard that has worked everything off by then has stopped, and hands over nothing.
func TestHostThatIsDoneInTime(t *testing.T) {
	got := make(chan string, 10)
	x := newBare(t, typeOf(entity.Blocking, 1, func(_ *entity.Context, payload []byte) error {
		got <- string(payload)
		return nil
	}))
	h := x.host("a")
	require.Equal(t, route.OK, x.send("a", []byte("1")))
	h.Stop(entity.StopMoved, 0, time.Hour, 0)
	eventually(t, func() bool { return x.typ.Host(0) == nil })
	require.Equal(t, "1", <-got)
	require.Empty(t, Left(h))
	require.False(t, Overdue(h))
	x.hosts.mu.Lock()
	defer x.hosts.mu.Unlock()
	require.Empty(t, x.hosts.leaving)
}
