// A smoke of lab partition-test: three real processes behind proxies, the coordinator is cut off.

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
	"github.com/kith-io/kith/internal/lab/chaos"
)

// The side that loses stops what it owns before the other one starts it, ends with the documented code, and the verbs
// say on both sides what happens (MEM-10, SHD-9).
func TestLongPartitionSmoke(t *testing.T) {
	long.Test(t)
	withKith(t)
	dir := t.TempDir()
	code, out, errs := program(t, "partition-test", "--cases=coordinator", "--rounds=1", "--nodes=3", "--net=proxy",
		"--stable-after=1500ms", "--entities=4", "--no-heal", "--out="+dir)
	told := func(file string) string {
		text, err := os.ReadFile(filepath.Join(dir, "partition", "coordinator-1", file))
		require.NoError(t, err, errs)
		return string(text)
	}
	timeline, asked := told("timeline.txt"), told("asked.txt")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(timeline, asked)
		}
	})
	require.Equal(t, env.ExitOK, code, errs)
	r := envtest.Last[chaos.PartitionResult](t, out, "partition")
	require.Equal(t, "proxy", r.Net)
	require.Positive(t, r.Entities)
	require.Zero(t, r.Overlaps+r.DoubleOwner+r.Silent+r.Wrong+r.WrongExits)
	require.Equal(t, map[int]int{env.ExitEnded: 1}, r.Exits)
	require.Equal(t, 1, r.Told.Replay, "the one that was cut off decided, and its flight record tells it")
	took := r.Cases[chaos.CutCoordinator]
	require.Positive(t, took.Gap.Min)
	for _, step := range []string{"losing_unreachable", "winning_unreachable", "losing_decided", "winning_decided",
		"losing_last_handled", "losing_ended", "allocated", "winning_first_handled"} {
		require.Contains(t, out, `"`+step+`"`)
	}
	require.Contains(t, timeline, "cut: n")
	require.Contains(t, asked, "; ours is the majority; downs ")
	require.Contains(t, asked, "; the other side is the majority; downs ")
}
