// Tests of the end of execution.

package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TestWhatComesBehindAWorkersEndIsTold: a worker ends when it has worked off what it holds, while loops still read.
// What they give to it then Settle reports as abandoned, once (SHD-4).
func TestWhatComesBehindAWorkersEndIsTold(t *testing.T) {
	x := newBare(t, typeOf(entity.Worker, 1, func(*entity.Context, []byte) error { return nil }))
	env := x.envelope("a", []byte("x"))
	x.Abandon()
	x.DropAll()
	x.over = true
	x.StopWorkers()
	<-x.workers[0].ended
	x.read(t, 0, wire.AppendEnvelope(nil, &env))
	require.Empty(t, x.told())
	behind, _ := x.Settle(time.Minute)
	require.Zero(t, behind, "nobody is left behind")
	require.Equal(t, []refusal{{x.typ, nil, "a", false, route.Abandoned}}, x.told())
}
