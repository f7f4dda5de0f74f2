// Tests of the scale harness: each figure in small, with the bounds that virtual time allows to assert.

package scale

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestScaleSmall holds every part on lossless links at 30 nodes against bounds of virtual time (JOIN-2, FD-1, GOS-4).
func TestScaleSmall(t *testing.T) {
	r, err := Run(Config{Nodes: 30, Seed: 7, Crashes: 15, Parts: lossless})
	require.NoError(t, err)
	require.Less(t, *r.BulkJoinS, 10.0)
	require.Less(t, *r.JoinOneS, 3.0)
	require.Less(t, *r.JoinTwentyS, 5.0)
	require.Equal(t, 15, r.Crashes)
	require.Greater(t, *r.CrashFirstP50, 3.0, "nobody may be accused before the acceptable pause is over")
	require.LessOrEqual(t, *r.CrashFirstP99, 5.5)
	require.Less(t, *r.CrashSpread, 2.0)
	require.Equal(t, 15, r.Kills)
	require.Less(t, *r.KillAllP99, 1.5, "a refused connection tells what silence takes seconds to tell")
	require.LessOrEqual(t, *r.StatusBytes, 64)
	require.Greater(t, *r.StateBytes, 30*8, "each incarnation alone has eight random bytes")
	require.Less(t, *r.StateBytes, 30*40)
	require.InDelta(t, *r.GossipRate, float64(*r.StatusBytes), 1, "one status a second and nothing else (GOS-4)")
}

// lossless are the parts that are quick at any small size.
var lossless = []string{"quiet", "one", "twenty", "crash", "kill"}

// TestScaleHealth: packet loss as on TCP makes nobody accuse a healthy member, nor do members that stood still for 16
// s, which are themselves accused each time and taken back (FD-1 to FD-3).
func TestScaleHealth(t *testing.T) {
	r, err := Run(Config{Nodes: 24, Seed: 3, Parts: []string{"loss", "frozen"}, Hours: 0.05, Rounds: 2})
	require.NoError(t, err)
	require.Len(t, r.Loss, len(lossCases))
	require.Zero(t, *r.FalseUnreachable)
	require.Len(t, r.Frozen, len(freezings))
	for _, f := range r.Frozen {
		require.Zero(t, f.Accused, "%+v", f)
		require.GreaterOrEqual(t, f.Detected, 3, "%+v", f)
	}

	worse, _, err := lossRun(LossResult{Loss: 0.6, Datagrams: true}, 24, 3, 0.02)
	require.NoError(t, err)
	require.Positive(t, worse.FalseUnreachable, "the measurement can find something")
}

// TestScaleWithPartitions: a table of partitions is placed within seconds and costs nothing at rest (PRT-1, GOS-4).
func TestScaleWithPartitions(t *testing.T) {
	r, err := Run(Config{Nodes: 30, Seed: 7, Paths: 200, Parts: []string{"quiet", "one"}})
	require.NoError(t, err)
	require.Equal(t, 200, r.Paths)
	require.Less(t, *r.PlacedS, 5.0)
	require.InDelta(t, *r.GossipRate, float64(*r.StatusBytes), 1, "one status a second and nothing else")
	require.Less(t, *r.StateBytes, 30*40+200*20)
	require.Less(t, *r.ChangedS, 5.0)
	require.LessOrEqual(t, *r.ChangedS, *r.ConvergedS)
	require.Less(t, *r.ChangeBytes, *r.PlacedBytes, "a change of one does not send all")
	require.Positive(t, *r.JoinOneBytes)
	_, err = Run(Config{Nodes: 30, Paths: 1025})
	require.ErrorIs(t, err, ErrRun)
}

// TestScaleBuilt: a cluster that was made at once gives the same figures as one that was joined.
func TestScaleBuilt(t *testing.T) {
	r, err := Run(Config{Nodes: 40, Seed: 7, Crashes: 10, Build: true, Parts: []string{"quiet", "one", "crash"}})
	require.NoError(t, err)
	require.True(t, r.Built)
	require.Nil(t, r.BulkJoinS, "nothing was joined")
	require.Less(t, *r.JoinOneS, 3.0)
	require.LessOrEqual(t, *r.CrashFirstP99, 5.5)
	require.Less(t, *r.CrashSpread, 2.0)
	require.InDelta(t, *r.GossipRate, float64(*r.StatusBytes), 1)
}

// TestBodiesAreShared: equal ends of large bodies lie in memory once, and every letter reads what was sent.
func TestBodiesAreShared(t *testing.T) {
	var b bodies
	rng := rand.New(rand.NewPCG(1, 1))
	end := make([]byte, 100_000)
	for i := range end {
		end[i] = byte(rng.Uint32())
	}
	var sent [][]byte
	var kept []body
	for i := range 50 {
		whole := slices.Concat(make([]byte, sharedHead-1), []byte{byte(i)}, end)
		if i%10 == 0 {
			whole = whole[:100+i]
		}
		sent, kept = append(sent, whole), append(kept, b.copy(whole))
	}
	require.Len(t, b.tails, 1)
	for i := range kept {
		require.Equal(t, sent[i], b.whole(kept[i]))
		b.done(kept[i])
	}
	require.Empty(t, b.tails)
	again := b.copy(sent[1])
	require.Equal(t, sent[1], b.whole(again), "memory that was given back is used again")
}

// TestScaleIsDeterministic: one seed gives one result, another seed another one.
func TestScaleIsDeterministic(t *testing.T) {
	run := func(seed uint64) Result {
		r, err := Run(Config{Nodes: 12, Seed: seed, Crashes: 3, Hours: 0.01, Rounds: 1})
		require.NoError(t, err)
		r.WallSeconds, r.RssMB = 0, 0
		return r
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1).Steps, run(2).Steps)
}

// TestConfigIsChecked: what cannot be run is said before anything runs.
func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{Nodes: 1}, {Nodes: MaxNodes + 1}, {Nodes: 3, Parts: []string{"tea"}}} {
		_, err := Run(cfg)
		require.ErrorIs(t, err, ErrRun)
	}
}

// TestMomentsAreInOrder: the queue gives back by time, and by order of planning at one time.
func TestMomentsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q moments
		var last moment
		left := 0
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			if left == 0 || rapid.IntRange(0, 2).Draw(t, "what") > 0 {
				q.push(last.at+time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")), 0, 0)
				left++
				continue
			}
			m := q.pop()
			left--
			require.True(t, last.before(m), "%v came after %v", m, last)
			last = m
		}
		for ; left > 0; left-- {
			m := q.pop()
			require.True(t, last.before(m))
			last = m
		}
		require.Empty(t, q.heap)
	})
}

// TestLinesActAsTCP: a lost packet comes late and holds up what is behind it on its connection, and only there; lost
// datagrams are gone.
func TestLinesActAsTCP(t *testing.T) {
	l := newLines(Lines{Loss: 0.3}, 1)
	var last time.Duration
	late := 0
	for i := range 2000 {
		now := time.Duration(i) * 10 * time.Millisecond
		at, lost := l.arrival(now, 1, 2, wayThere)
		require.False(t, lost)
		require.GreaterOrEqual(t, at, last, "overtaken")
		require.GreaterOrEqual(t, at, now+time.Millisecond)
		if last = at; at > now+200*time.Millisecond {
			late++
		}
	}
	require.Greater(t, late, 600, "a lost packet holds up those behind it")
	back, _ := l.arrival(0, 1, 2, wayBack)
	require.Less(t, back, last, "the way back is a line of its own")

	d := newLines(Lines{Loss: 0.3, Datagrams: true}, 1)
	gone := 0
	for range 2000 {
		if _, lost := d.arrival(0, 1, 2, wayThere); lost {
			gone++
		}
	}
	require.InDelta(t, 600, gone, 100)
	at, lost := (&lines{Lines: Lines{Delay: time.Second}}).arrival(time.Second, 1, 2, wayThere)
	require.False(t, lost)
	require.Equal(t, 2*time.Second, at)
}
