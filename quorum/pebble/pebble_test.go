// Tests of the engine: what is asked of all, and what a loss of power leaves.

package pebble

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/quorum/disk/disktest"
)

func TestEngine(t *testing.T) {
	dir := ""
	disktest.Run(t, func(t *testing.T, fresh bool) disk.Engine {
		if fresh {
			dir = t.TempDir()
		}
		e, err := Open(dir, Options{MemTable: 64 << 10})
		require.NoError(t, err)
		return e
	})
}

// TestPower: what Commit returned for is there after a loss of power, which takes any part of what was not synced.
func TestPower(t *testing.T) {
	fs := vfs.NewCrashableMem()
	for round := range 20 {
		e, err := Open("disk", Options{FS: fs, MemTable: 64 << 10})
		require.NoError(t, err)
		for k := range round {
			v, err := e.Get(fmt.Append(nil, k))
			require.NoError(t, err)
			require.Len(t, v, 1000, "round %d: %d", round, k)
		}
		require.NoError(t, e.Commit([]disk.Change{{Key: fmt.Append(nil, round), Value: make([]byte, 1000)}}))
		fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, uint64(round)))})
		require.NoError(t, e.Close())
	}
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(t.TempDir(), Options{MemTable: 1})
	require.ErrorContains(t, err, "MemTable")
	dir := t.TempDir()
	e, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.Error(t, err, "one process at a time")
	require.NoError(t, e.Close())
}
