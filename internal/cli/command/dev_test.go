// How kith dev starts processes of another build.

package command

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli"
)

// A process of another build is asked for what the first of them knew and for no more: a child refuses the rest, and
// make upgrade could not start one (CARD-3).
func TestOldBuildIsAskedForWhatItKnows(t *testing.T) {
	first := cli.Op(func(_ context.Context, a struct { // of the last build that spoke wire version 1
		Name, Listen string
		Seeds        []string
		Shards       uint32
		LeaveTimeout time.Duration
	}) (string, error) {
		return a.Name, nil
	})
	d := &dev{cmd: &devCmd{Nodes: 4, Shards: 10, Dashboard: "127.0.0.1:0", Old: "node-of-then"}}
	for i, own := range []bool{true, false, true, false} {
		a := d.startArgs(i)
		require.Equal(t, own, a.Admin, "the page shows the nodes of this build")
		raw, err := json.Marshal(a)
		require.NoError(t, err)
		name, err := first(t.Context(), raw)
		if own {
			require.ErrorContains(t, err, "unknown field")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, devName, name)
	}
}
