// Tests of asks of callers that gave up: no handler is called for them, wherever they waited.

package e2e_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// An entity is busy while asks of this node and of another wait for it, and the askers give up. When it goes on it
// handles none of them, and what is waited for still; all are counted. Pins SHD-5, ACC-3.
func TestExpiredAsksAreNotHandled(t *testing.T) {
	t.Parallel()
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker} {
		t.Run(mode.String(), func(t *testing.T) {
			gate, busy := make(chan struct{}), make(chan struct{}, 1)
			var open sync.Once
			release := func() { open.Do(func() { close(gate) }) }
			defer release()
			var given, handled atomic.Int64
			var regions []*kith.Region
			nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
				if i == 1 {
					cfg.Roles = []string{"host"}
				}
			}, func(_ int, node *kith.Node) {
				regions = append(regions, register(t, node, kith.EntityType{Name: "g", Mode: mode, Role: "host", Shards: 1}, actor{
					receive: func(c *kith.Context, p []byte) error {
						switch string(p) {
						case "block":
							busy <- struct{}{}
							<-gate
						case "gives up":
							given.Add(1)
						default:
							handled.Add(1)
						}
						if c.Asked() {
							return c.Reply(p)
						}
						return nil
					}}))
			})
			for _, r := range regions {
				_, err := r.Ask(within(t), "a", []byte("known"))
				require.NoError(t, err)
			}
			require.NoError(t, regions[1].Tell("a", []byte("block")))
			<-busy
			const asks = 5
			patient := make(chan error, len(regions))
			for _, r := range regions {
				for range asks {
					_, err := r.AskWithin(30*time.Millisecond, "a", []byte("gives up"), nil)
					require.ErrorIs(t, err, kith.ErrTimeout)
				}
				go func() {
					_, err := r.AskWithin(patience, "a", []byte("waits"), nil)
					patient <- err
				}()
				// Its limit is over much later than those before: at their receiver, too.
				_, err := r.AskWithin(300*time.Millisecond, "a", []byte("gives up"), nil)
				require.ErrorIs(t, err, kith.ErrTimeout)
			}
			_, err := regions[0].AskWithin(300*time.Millisecond, "a", []byte("not looked at"), nil)
			require.ErrorIs(t, err, kith.ErrTimeout)
			release()
			for range regions {
				require.NoError(t, <-patient, "an ask that is waited for is handled")
			}
			require.Zero(t, given.Load(), "nobody waited for them")
			expired := func() uint64 { return nodes[1].Stats().Types[0].Expired }
			eventually(t, func() bool { return expired() >= 2*asks+2 }, "all are counted")
			require.LessOrEqual(t, expired(), uint64(2*asks+3))
		})
	}
}

// headed is a cluster of two nodes; the second hosts entities of every mode that answer with the headers they got.
func headed(t *testing.T) (remote, local map[kith.Mode]*kith.Region) {
	remote, local = map[kith.Mode]*kith.Region{}, map[kith.Mode]*kith.Region{}
	cluster(t, 2, func(i int, cfg *kith.Config) {
		cfg.MaxPayload = 64 << 10
		if i == 1 {
			cfg.Roles = []string{"host"}
		}
	}, func(i int, node *kith.Node) {
		for _, m := range modes {
			r := register(t, node, kith.EntityType{Name: m.String(), Mode: m, Role: "host"}, actor{
				receive: func(c *kith.Context, p []byte) error {
					if len(p) > 0 && p[0] == '>' {
						b, err := c.With(append([]byte("on:"), c.Headers()...)).Ask(patience, "", string(p[1:]), nil)
						if err != nil {
							return err
						}
						return c.Reply(b)
					}
					return c.Reply(c.Headers())
				}})
			if i == 0 {
				remote[m] = r
			} else {
				local[m] = r
			}
		}
	})
	return remote, local
}

// Headers reach the handlers of every mode, from here and from there, with messages of any size and while a home is
// looked for; without them a handler sees none. Too many are refused by a typed error.
func TestHeaders(t *testing.T) {
	t.Parallel()
	remote, local := headed(t)
	each(t, remote, local, func(t *testing.T, r *kith.Region) {
		for i, size := range []int{0, 100, 64 << 10, 200 << 10} {
			id := string(rune('a' + i)) // its home is not known at first
			for _, h := range []string{"trace=1", "", string(make([]byte, 4<<10))} {
				got, err := r.With([]byte(h)).Ask(within(t), id, make([]byte, size))
				require.NoError(t, err)
				require.Equal(t, h, string(got), "%d bytes", size)
			}
			got, err := r.Ask(within(t), id, make([]byte, size))
			require.NoError(t, err)
			require.Empty(t, got)
		}
		within := r.With([]byte("within"))
		got, err := within.AskWithin(patience, "a", nil, nil)
		require.NoError(t, err)
		require.Equal(t, "within", string(got))
		answer := make(chan string, 1)
		require.NoError(t, within.AskFunc(patience, "a", nil, func(b []byte, _ error) { answer <- string(b) }))
		require.Equal(t, "within", <-answer)
		err = r.With(make([]byte, 4<<10+1)).Tell("a", nil)
		require.ErrorIs(t, err, kith.ErrTooLarge)
		var full *kith.HeadersError
		require.ErrorAs(t, err, &full)
		require.Equal(t, kith.HeadersError{Size: 4<<10 + 1, Limit: 4 << 10}, *full)
	})
	got, err := remote[kith.Blocking].With([]byte("h")).Ask(within(t), "first", []byte(">second"))
	require.NoError(t, err)
	require.Equal(t, "on:h", string(got), "a handler gives them on by itself")
}
