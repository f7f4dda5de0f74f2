// Tests of the memory limit that Run takes from the control groups (CARD-2).

package service

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsLimitedAsTheContainerSays(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "") // so that it is restored
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	root := fstest.MapFS{
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("1000000000\n")},
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))

	limitMemory(fstest.MapFS{}, log)
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1), "there is none to heed")
	t.Setenv("GOMEMLIMIT", "off")
	limitMemory(root, log)
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1), "the operator has said what is to be")
	require.Empty(t, out.String())
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	limitMemory(root, log)
	require.EqualValues(t, 900_000_000, debug.SetMemoryLimit(-1))
	require.Contains(t, out.String(), "event=memory-limited allowed=1000000000 limit=900000000")
	debug.SetMemoryLimit(1 << 30)
	limitMemory(root, log)
	require.EqualValues(t, 1<<30, debug.SetMemoryLimit(-1), "the program has set one")
}
