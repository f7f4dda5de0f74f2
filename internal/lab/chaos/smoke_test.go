// A smoke of the whole: three real processes behind proxies, one leaves, one is killed. The test binary is the child.

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli"
)

const childEnv = "KITH_CHAOS_CHILD"

// TestMain lets the test binary be a node process.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := Child(os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(codeFailed)
		}
		return
	}
	os.Exit(m.Run())
}

// seedOf returns a seed with first rounds of one fault of each of these kinds, in that order.
func seedOf(nodes int, kinds ...Kind) uint64 {
	for seed := uint64(1); ; seed++ {
		fits := true
		for i, r := range draw(seed, nodes, len(kinds), kinds...) {
			fits = fits && len(r.Faults) == 1 && r.Faults[0].Kind == kinds[i] && r.Faults[0].Victims == 1
		}
		if fits {
			return seed
		}
	}
}

// The whole with real processes: rounds come right, the account adds up, the timeline tells it (CARD-5).
func TestSmoke(t *testing.T) {
	const nodes = 3
	kinds := []Kind{Leave, Kill}
	dir := filepath.Join(t.TempDir(), "chaos")
	r, err := Run(t.Context(), Config{Nodes: nodes, Seed: seedOf(nodes, kinds...), For: time.Hour, Rounds: 2, Kinds: kinds,
		Net: "proxy", Dir: dir, Load: Load{Entities: 4, Shards: 6, Tells: 30, Asks: 30},
		Child: cli.Options{Env: []string{childEnv + "=1"}}, Progress: &cli.Progress{}})
	timeline, _ := os.ReadFile(filepath.Join(dir, "timeline.txt"))
	if err != nil && !errors.Is(err, ErrViolation) {
		require.NoError(t, err, string(timeline))
	}
	require.Equal(t, 2, r.Rounds)
	require.Equal(t, 2, r.Faults)
	require.Positive(t, r.Exits["signal"], "one was killed")
	require.Positive(t, r.Exits["0"], "one has left")
	require.Positive(t, r.Handled)
	require.Equal(t, r.Accepted, r.Handled+r.Reported+r.Lost)
	require.Positive(t, r.Writes)
	require.NotNil(t, r.GapMax)
	require.Zero(t, r.Panics+r.Double+r.Back+r.Twins+r.Twice, string(timeline))
	for _, want := range []string{"the cluster has formed", "fault: leave", "fault: kill", "n1 sees cluster", "leader"} {
		require.Contains(t, string(timeline), want)
	}
	var out bytes.Buffer
	r.Table(&out)
	require.Equal(t, 4, strings.Count(out.String(), "\n"), "a title, a head, two kinds")
	require.Contains(t, out.String(), "carried by proxy")
}
