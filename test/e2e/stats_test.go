// Tests of the figures of each type: what handlers did, added up over shards that live and shards that are over.

package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// Every message, instance and entity of a type is in its figures, in each mode, and stays there when the entities have
// stopped. Pins SHD-12.
func TestTypeStats(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			n := cluster(t, 1, nil, nil)[0]
			r := register(t, n, kith.EntityType{Name: "x", Mode: mode, Shards: 8}, actor{
				receive: func(c *kith.Context, b []byte) error {
					switch string(b) {
					case "fail":
						return errors.New("told to")
					case "panic":
						panic("told to")
					case "go":
						c.Passivate()
					}
					return nil
				}})
			ctx := within(t)
			for i := range 50 {
				require.NoError(t, r.TellWait(ctx, fmt.Sprint("e", i), nil))
			}
			for _, what := range []string{"fail", "panic", "go"} {
				require.NoError(t, r.TellWait(ctx, "e1", []byte(what)))
			}
			_, err := r.Ask(ctx, "e2", nil)
			require.ErrorIs(t, err, kith.ErrNoReply)
			var s kith.TypeStats
			eventually(t, func() bool { s = n.Stats().Types[0]; return s.Handled == 54 && s.Entities == 49 }, "all is counted")
			require.EqualValues(t, 1, s.Failed)
			require.EqualValues(t, 1, s.Panics)
			require.EqualValues(t, 1, s.NoReply)
			require.EqualValues(t, 1, s.Passivated)
			require.EqualValues(t, 51, s.Made, "one anew after its panic")
			require.Zero(t, s.MailboxBytes)
			require.NoError(t, n.Leave(ctx))
			s = n.Stats().Types[0]
			require.EqualValues(t, 54, s.Handled)
			require.EqualValues(t, 50, s.Stopped)
			require.Zero(t, s.Entities)
		})
	}
}
