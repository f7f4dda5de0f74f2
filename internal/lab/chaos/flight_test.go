// A recorded partition of real processes, replayed to the same decisions.

package chaos

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/core/flight"
)

// cutSeed returns a seed with a first round of one cut that separates one node for long enough that the others decide.
func cutSeed(nodes int) uint64 {
	for seed := uint64(1); ; seed++ {
		f := draw(seed, nodes, 1, Cut)[0].Faults
		if len(f) == 1 && f[0].Victims == 1 && f[0].For > 18*time.Second && f[0].For < 25*time.Second {
			return seed
		}
	}
}

// named puts the names of nodes for the addresses that their proxies have, as the timeline does.
func named(text string) string {
	return regexp.MustCompile(`127\.\d+\.\d+\.(\d+):\d+`).ReplaceAllString(text, "n$1")
}

// decided returns what the resolver of a node has decided, by the node's log in the timeline.
func decided(t *testing.T, dir, node string) (list []string) {
	t.Helper()
	timeline, err := os.ReadFile(filepath.Join(dir, "timeline.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(timeline)) {
		_, rest, found := strings.Cut(line, "  "+node+` | WARN "resolver decided" decision=`)
		var text string
		if found && json.NewDecoder(strings.NewReader(rest)).Decode(&text) == nil {
			list = append(list, text)
		}
	}
	return list
}

// The node that a partition cut off leaves its flight record behind when it is stopped and ends. Replayed, it decides
// what it decided then, word for word, and its record says how it ended.
func TestPartitionIsReplayed(t *testing.T) {
	if testing.Short() {
		t.Skip("a partition takes half a minute")
	}
	const nodes = 3
	dir := filepath.Join(t.TempDir(), "chaos")
	_, err := Run(t.Context(), Config{Nodes: nodes, Seed: cutSeed(nodes), For: time.Hour, Rounds: 1, Kinds: []Kind{Cut},
		Net: "proxy", Dir: dir, Load: Load{Entities: 4, Shards: 6, Tells: 30, Asks: 30},
		Child: cli.Options{Env: []string{childEnv + "=1"}}, Progress: &cli.Progress{}})
	if err != nil && !errors.Is(err, ErrViolation) {
		require.NoError(t, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "keep-*", "flight-*.kith"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "who was cut off has ended")
	decisions := 0
	for _, path := range files {
		f, err := os.Open(path)
		require.NoError(t, err)
		rec, err := flight.Read(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		node := strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "keep-")
		logged := decided(t, dir, node)
		var replayed []string
		unreachable := 0
		require.NoError(t, rec.Replay(func(s *flight.Step) error {
			for _, d := range s.Effects.Decisions {
				replayed = append(replayed, named(d.String()))
			}
			if v := s.Effects.View; v != nil {
				unreachable = max(unreachable, len(v.Unreachable))
			}
			return nil
		}))
		require.Subset(t, logged, replayed, "%s decided otherwise", path)
		require.Equal(t, nodes-1, unreachable, "%s saw the partition", path)
		decisions += len(replayed)
		t.Logf("%s: %s, %d verbs, %d bytes, decisions %q", filepath.Base(path), rec.Why, rec.Verbs, rec.Bytes, replayed)
	}
	require.Positive(t, decisions)
}
