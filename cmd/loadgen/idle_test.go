// Tests of loadgen idle with a real process. Nothing here judges an amount of memory or a time.

package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/env/envtest"
)

func TestIdleHoldsEntitiesOfEachMode(t *testing.T) {
	for exec := range execs {
		t.Run(exec, func(t *testing.T) {
			l, _, errs := envtest.Line[idleLine](t, program, "idle",
				"idle", "--entities=2000", "--shards=10", "--exec="+exec, "--progress")
			require.Equal(t, 2000, l.Entities)
			require.Equal(t, exec, l.Exec)
			require.Positive(t, l.HeapPerEntity)
			require.Positive(t, l.GCMillis)
			if runtime.GOOS == "linux" {
				require.Positive(t, l.RSS)
				require.GreaterOrEqual(t, l.Peak, l.RSS)
			}
			require.Less(t, l.Goroutines, 200, "idle entities have none")
			require.Contains(t, errs, "2000 idle entities: resident")
		})
	}
}
