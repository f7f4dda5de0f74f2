// Replicated values in simulated clusters: equal after a partition, a minority that is lost, a process that comes back,
// a network that loses and reorders, and what they cost at rest.

package world_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/replicated"
	"github.com/kith-io/kith/sim/setup"
)

type words = replicated.ORSet[string]

var wordsKind = &replica.Kind{Name: words{}.Kind(), Zero: words{},
	Merge:  func(a, b any) any { return a.(words).Merge(b.(words)) },
	Since:  func(v, old any) any { return v.(words).Since(old.(words)) },
	Append: func(b []byte, v any) ([]byte, error) { return v.(words).Append(b) },
	Parse:  func(b []byte) (any, error) { return words{}.Parse(b) },
}

// spread returns a cluster of nodes that have a set open.
func spread(t *testing.T, n int, cfg setup.Config) *world.World {
	w := world.New(n, 1, cfg, func(w *world.World) world.Watcher { return check.New(w) })
	require.Empty(t, w.Form())
	t.Cleanup(w.End)
	for _, p := range w.Running() {
		open(t, p)
	}
	return w
}

func open(t *testing.T, p *world.Process) {
	require.NoError(t, world.Replicated(p).Do(replica.OpenCommand{Name: "words", Kind: wordsKind}))
}

func add(t *testing.T, p *world.Process, level replica.Level, nonce uint64, word string) {
	require.NoError(t, world.Replicated(p).Do(replica.UpdateCommand{Name: "words", Level: level, Nonce: nonce,
		Change: func(old any) any { return old.(words).Add(p.ID, word) }}))
}

func held(p *world.Process) string {
	b, _ := world.Replicated(p).Value("words").(words).Append(nil)
	return string(b)
}

// alike reports whether all that run hold one value of so many words.
func alike(w *world.World, words int) bool {
	list := w.Running()
	for _, p := range list {
		if held(p) != held(list[0]) || count(p) != words {
			return false
		}
	}
	return true
}

func count(p *world.Process) int { return world.Replicated(p).Value("words").(words).Len() }

// After a partition all hold the same within 3 + 2 log2(n) rounds of the heal, however many nodes (REP-1).
func TestReplicatedValuesAfterAPartition(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 8, 21} {
		w := spread(t, n, setup.Config{})
		for i := range n {
			for j := range n {
				w.Net.Cuts[i][j] = i%2 != j%2
			}
		}
		for _, p := range w.Running() {
			add(t, p, replica.Local, 0, fmt.Sprint(p.Index))
		}
		w.Advance(2 * time.Second)
		require.False(t, alike(w, n))
		w.Net.Heal()
		require.True(t, w.Until(time.Duration(3+2*bits.Len(uint(n-1)))*replica.Round, func() bool { return alike(w, n) }),
			"%d nodes", n)
	}
}

// What a majority holds survives a minority that is killed right then, with the node that made the update; and a
// process that comes back under a new incarnation gets it (REP-1).
func TestReplicatedMajoritySurvives(t *testing.T) {
	t.Parallel()
	w := spread(t, 5, setup.Config{})
	p := w.Hosts[0].Process
	add(t, p, replica.Majority, 1, "kept")
	require.True(t, w.Until(10*time.Second, func() bool { return world.Replicated(p).Over(1) != nil }))
	p.Crash(true)
	others := w.Running()
	for _, o := range others { // one of those that hold it goes, too
		if count(o) == 1 {
			o.Crash(true)
			break
		}
	}
	require.True(t, w.Until(10*time.Second, func() bool { return alike(w, 1) }))
	next := w.Start(0, w.Seeds([]int{2, 3, 4}))
	open(t, next)
	require.True(t, w.Until(2*time.Minute, func() bool { return alike(w, 1) }))
	add(t, next, replica.Majority, 1, "more")
	require.True(t, w.Until(2*time.Minute, func() bool { return world.Replicated(next).Over(1) != nil && alike(w, 2) }))
}

// On a network that loses, doubles and reorders frames all comes to all, and each update that waits for all has them.
func TestReplicatedOnARawNetwork(t *testing.T) {
	t.Parallel()
	raw := setup.RawNetwork{Loss: 0.1, Duplicate: 0.1, Spread: 50 * time.Millisecond}
	w := spread(t, 5, setup.Config{Network: setup.Network{Raw: raw}})
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(100) {
		p := w.Running()[rng.IntN(5)]
		add(t, p, replica.All, i+1, fmt.Sprint(i))
		w.Advance(time.Duration(rng.IntN(200)) * time.Millisecond)
	}
	require.True(t, w.Until(time.Minute, func() bool { return alike(w, 100) }))
	for _, p := range w.Running() {
		require.True(t, w.Until(time.Minute, func() bool { return world.Replicated(p).Stats().Waiting == 0 }))
		require.Zero(t, world.Replicated(p).Stats().Refused)
	}
}

// Ten thousand keys that everybody holds cost a digest a second and node, however large they are; a node that opens
// them late gets them all.
func TestReplicatedAtRest(t *testing.T) {
	t.Parallel()
	w := spread(t, 3, setup.Config{})
	keys := func(p *world.Process) {
		for i := range replica.MaxKeys - 1 {
			require.NoError(t, world.Replicated(p).Do(replica.OpenCommand{Name: fmt.Sprint(i), Kind: wordsKind}))
		}
	}
	for _, p := range w.Running()[:2] {
		keys(p)
	}
	p := w.Running()[0]
	for i := range replica.MaxKeys - 1 {
		require.NoError(t, world.Replicated(p).Do(replica.UpdateCommand{Name: fmt.Sprint(i),
			Change: func(old any) any { return old.(words).Add(p.ID, "word") }}))
	}
	whole := func(p *world.Process) bool {
		for i := range replica.MaxKeys - 1 {
			if world.Replicated(p).Value(fmt.Sprint(i)).(words).Len() == 0 {
				return false
			}
		}
		return true
	}
	require.True(t, w.Until(time.Minute, func() bool { return whole(w.Running()[1]) }))
	keys(w.Running()[2])
	began := w.Now
	require.True(t, w.Until(time.Minute, func() bool { return whole(w.Running()[2]) }))
	t.Logf("a node that opens them late has them in %v", w.Now-began)
	w.Advance(time.Minute)
	sent := world.Replicated(p).Stats().Sent
	w.Advance(time.Minute)
	require.LessOrEqual(t, world.Replicated(p).Stats().Sent-sent, uint64(61*16), "a digest of 16 bytes a second")
}
