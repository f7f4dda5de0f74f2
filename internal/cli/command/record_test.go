// A test with real processes that remember their cluster: a first seed that hears nobody forms no second one.

package command

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
)

// kept is what a node's record says.
type kept struct {
	ClusterID string   `json:"cluster_id"`
	Others    []string `json:"others"`
	Newcomers int      `json:"newcomers"` // of these, those that have never been up
}

func readKept(t *testing.T, dir string) (k kept) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "membership.json"))
	if os.IsNotExist(err) {
		return k
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &k))
	return k
}

// JOIN-1: the first seed is killed and started again while the others stand still. It hears nobody, and waits; when
// they go on, it joins the cluster that there was (AVL-3).
func TestFirstSeedRestartedWhileOthersStandStill(t *testing.T) {
	addrs := []string{port.Keep(t), port.Keep(t), port.Keep(t)}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	run := func(i int) (pid int, log *bufio.Scanner) {
		cmd, _, stderr := spawn(t, "run", "--listen="+addrs[i], "--seeds="+strings.Join(addrs, ","),
			"--data-dir="+dirs[i], "--log-format=json")
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd.Process.Pid, stderr
	}
	var pids []int
	for i := range addrs {
		pid, log := run(i)
		pids = append(pids, pid)
		go rest(log)
	}
	remembers := func(i, others int) bool {
		k := readKept(t, dirs[i])
		return len(k.Others) == others && k.Newcomers == 0
	}
	for d := 40 * time.Second; !(remembers(0, 2) && remembers(1, 2) && remembers(2, 2)); d -= tick {
		require.Positive(t, d, "they do not remember each other")
		within(tick, nil)
	}
	cluster := readKept(t, dirs[0]).ClusterID
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	for _, pid := range pids[1:] {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	_, log := run(0)
	waits := until(t, log, "no cluster is found, and this node forms none")
	require.NotContains(t, waits, "member-up")
	require.Contains(t, waits, addrs[1])
	require.Equal(t, cluster, readKept(t, dirs[0]).ClusterID)
	for _, pid := range pids[1:] {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	for range addrs {
		until(t, log, `"event":"member-up"`)
	}
	go rest(log)
	require.Equal(t, cluster, readKept(t, dirs[1]).ClusterID)
	require.Equal(t, cluster, readKept(t, dirs[0]).ClusterID)
}
