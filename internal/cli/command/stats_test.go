// Tests of the statistics of kith run: the lines of a process.

package command

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A running node tells its statistics on SIGUSR1, and goes on (CARD-5).
func TestRunTellsItsStatistics(t *testing.T) {
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--demo", "--demo-shards=7")
	until(t, stderr, "node started")
	for range 2 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
		text := until(t, stderr, "stats {")
		for _, want := range []string{`"Node":"127.0.0.1:`, `"Types":[{"Type":"counter"`, `"HandledPerSecond":0`,
			`"Shards":7`,
			`"Transport":{`, `"Links":`} {
			require.Contains(t, text, want)
		}
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
}

// With --stats-every lines come by themselves.
func TestRunTellsItsStatisticsAtAPace(t *testing.T) {
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--stats-every=100ms", "--latency-every=0")
	until(t, stderr, "stats {")
	until(t, stderr, "stats {")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
}
