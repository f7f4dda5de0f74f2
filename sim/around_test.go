// Test of what is around messages on a simulated cluster.

package sim_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// guarded lets in what is signed, and passes it on to an entity of its own type when the message says so.
type guarded struct{}

func (guarded) Receive(c *kith.Context, payload []byte) error {
	if string(payload) == "pass on" {
		b, err := c.Ask(time.Second, "", "other", []byte("x"))
		if err != nil {
			return err
		}
		return errors.Join(c.Tell("", "other", []byte("y")), c.Reply(b))
	}
	if !c.Asked() {
		return nil
	}
	return c.Reply([]byte(fmt.Sprintf("%s, by %s", payload, c.Headers())))
}

func (guarded) Stop(*kith.Context) {}

// TestAround: both ends are called as on a node, for asks, tells and what handlers send; refusals have not run; what
// happens is the same in each run of one seed.
func TestAround(t *testing.T) {
	denied := kith.NewError("denied", kith.KindDenied, "not signed")
	run := func(t *testing.T) (log []string) {
		c := sim.New(t, 3, 11)
		c.Register(kith.EntityType{Name: "guarded", Shards: 8,
			New: func(string, kith.Fence) kith.Handler { return guarded{} },
			Around: []kith.Around{{
				Send: func(m *kith.Sending) (func([]byte, error), error) {
					switch string(m.Payload) {
					case "refuse":
						return nil, denied
					case "panic":
						panic("oops")
					case "unsigned":
						return nil, nil
					}
					m.Headers = []byte("anna")
					return func(b []byte, err error) {
						said := fmt.Sprintf("%v %s %t %v: %s %v", c.Now(), m.Payload, m.Asks, m.Within, b, err)
						log = append(log, said)
					}, nil
				},
				Receive: func(c *kith.Context, payload []byte, next func([]byte) error) error {
					if len(c.Headers()) == 0 {
						return denied
					}
					return next(payload)
				},
			}}})
		c.AwaitUp()
		for n := range 3 {
			b, err := c.Ask(n, "guarded", "e", []byte("x"))
			require.NoError(t, err)
			require.Equal(t, "x, by anna", string(b))
			b, err = c.Ask(n, "guarded", "e", []byte("pass on"))
			require.NoError(t, err)
			require.Equal(t, "x, by anna", string(b))
			require.NoError(t, c.Tell(n, "guarded", "e", []byte("y")))
			for payload, want := range map[string]error{"refuse": denied, "unsigned": denied, "panic": kith.ErrPanic} {
				_, err = c.Ask(n, "guarded", "e", []byte(payload))
				require.ErrorIs(t, err, want)
				require.False(t, kith.MayHaveRun(err), payload)
			}
			require.ErrorIs(t, c.Tell(n, "guarded", "e", []byte("refuse")), denied)
		}
		require.Len(t, log, 3*5)
		return log
	}
	require.Equal(t, run(t), run(t))
}
