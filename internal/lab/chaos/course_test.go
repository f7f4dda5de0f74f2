// Tests of moves with a fault in their midst: what is drawn, what notes tell, and one with real processes.

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// The list has each phase, fault and participant once, what is brief and what is not, and is a function of the seed.
func TestEveryMoveOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, nodes := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(3, 9).Draw(t, "nodes")
		all := EveryMove(seed, nodes)
		require.Equal(t, all, EveryMove(seed, nodes))
		require.Len(t, all, len(phases)*len(blows)*len(participants))
		cells := map[MoveCell]int{}
		for i, r := range all {
			require.Equal(t, i+1, r.Number)
			require.Len(t, r.Faults, 1)
			f := r.Faults[0]
			require.Equal(t, Move, f.Kind)
			require.Contains(t, ways, f.Moving.Way)
			require.True(t, f.Moving.Slow >= 500*time.Millisecond && f.Moving.Slow <= 3*time.Second)
			require.Equal(t, f.Moving.Blow == Kill, f.For == 0)
			require.False(t, f.away(), "a machine that is lost is another fault")
			require.Len(t, f.Order, nodes)
			cells[f.cell()]++
		}
		require.Len(t, cells, len(all), "each once")
	})
	for _, r := range EveryMove(1, 5, Kill, Reset) {
		require.Contains(t, []Kind{Kill, Reset}, r.Faults[0].Moving.Blow)
	}
}

// A seed that may draw moves draws every phase, blow, participant and way.
func TestMovesAreDrawn(t *testing.T) {
	cells, by := map[MoveCell]int{}, map[Way]int{}
	for _, r := range draw(1, 5, 1000, Move) {
		cells[r.Faults[0].cell()]++
		by[r.Faults[0].Moving.Way]++
	}
	require.Len(t, cells, len(phases)*len(blows)*len(participants))
	require.Len(t, by, len(ways))
}

func TestMoveNotesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := moveNote{kind: kith.ShardEventKind(rapid.Uint8().Draw(t, "kind")), typ: rapid.Uint8().Draw(t, "typ"),
			shard: rapid.Uint32().Draw(t, "shard"), number: rapid.Uint64().Draw(t, "number"),
			from: rapid.Uint64().Draw(t, "from"), to: rapid.Uint64().Draw(t, "to"),
			at: time.Duration(rapid.Int64Min(0).Draw(t, "at"))}
		require.Equal(t, n, moveNoteOf(n.record()))
	})
	require.Zero(t, addrWord("[::1]:7"))
	require.NotEqual(t, addrWord("10.77.0.1:7"), addrWord("10.77.0.1:8"))
	require.NotEqual(t, addrWord("10.77.0.1:7"), addrWord("10.77.0.2:7"))
}

// Notes of all nodes, in any order, tell the phase of the first move since a moment, and of no other.
func TestPhaseOfAMove(t *testing.T) {
	const shard, number = 7, 1<<32 | 5
	at := func(k kith.ShardEventKind, ms int, number uint64) moveNote {
		return moveNote{kind: k, shard: shard, number: number, at: time.Duration(ms) * time.Millisecond}
	}
	earlier := []moveNote{at(kith.MoveBegan, 1, 1<<32|4), at(kith.MoveMarked, 2, 1<<32|4), at(stopCall, 3, 0),
		at(kith.ShardReleased, 4, 0), at(kith.MoveDone, 5, 1<<32|4)}
	another := at(kith.MoveDone, 50, number)
	another.typ = 1
	notes := append(earlier, another)
	for i, s := range []struct {
		add  moveNote
		want Phase
	}{
		{at(kith.MoveBegan, 10, number), Marking},
		{at(kith.MoveMarked, 20, number), WorkingOff},
		{at(stopCall, 30, 0), HandingOver},
		{at(kith.MoveHandedOver, 40, number), Starting},
		{at(kith.ShardReleased, 41, 0), Starting},
		{at(kith.MoveBegan, 42, number+1), Starting},
		{at(kith.MoveAborted, 43, number+1), Starting},
		{at(kith.MoveDone, 60, number), overPhase},
	} {
		c := follow(notes, 0, shard, 6*time.Millisecond)
		require.Equal(t, append([]Phase{noPhase}, Marking, WorkingOff, HandingOver, Starting, Starting, Starting,
			Starting)[i], c.phase())
		notes = append([]moveNote{s.add}, notes...)
		c = follow(notes, 0, shard, 6*time.Millisecond)
		require.Equal(t, s.want, c.phase(), "%d", i)
	}
	c := follow([]moveNote{at(kith.MoveBegan, 10, number), at(kith.MoveAborted, 11, number)}, 0, shard, 0)
	require.Equal(t, overPhase, c.phase(), "given up")
	came := []moveNote{at(kith.MoveBegan, 10, number), at(kith.MoveMarked, 12, number), at(kith.ShardReleased, 14, 0),
		at(kith.MoveReturned, 15, number)}
	c = follow(came, 0, shard, 0)
	require.Equal(t, overPhase, c.phase(), "come back")
	cells, _ := countMoves([]moved{{MoveCell: MoveCell{Phase: Marking}, shard: shard, phase: Marking}},
		func(time.Duration) []moveNote { return came })
	require.Equal(t, []MoveCell{{Phase: Marking, Came: 1, Returned: 1}}, cells)
	c = follow([]moveNote{at(kith.MoveBegan, 10, number), at(kith.MoveMarked, 12, number),
		at(kith.ShardReleased, 14, 0)}, 0, shard, 0)
	require.Equal(t, Starting, c.phase(), "nothing was left to hand over")
}

// A move with real processes behind proxies: the fault comes in its phase, and nothing is lost (SHD-12).
func TestMoveSmoke(t *testing.T) {
	const nodes = 3
	seed := uint64(1) // of a move by hand: of three nodes that a leave chooses from, it may choose the coordinator alone
	for EveryMove(seed, nodes, Pause)[0].Faults[0].Moving.Way != ByHand {
		seed++
	}
	dir := filepath.Join(t.TempDir(), "chaos")
	r, err := Run(t.Context(), Config{Nodes: nodes, Seed: seed, For: time.Hour, Rounds: 1, Kinds: []Kind{Pause},
		Moves: true, Net: "proxy", Dir: dir, Load: Load{Entities: 4, Shards: 6, Tells: 30, Asks: 30},
		Child: cli.Options{Env: []string{childEnv + "=1"}}, Progress: &cli.Progress{}})
	timeline, _ := os.ReadFile(filepath.Join(dir, "timeline.txt"))
	if err != nil && !errors.Is(err, ErrViolation) {
		require.NoError(t, err, string(timeline))
	}
	require.Equal(t, 1, r.Rounds)
	came := 0
	for _, c := range r.Moves {
		require.Equal(t, []any{Marking, Pause}, []any{c.Phase, c.Fault})
		came += c.Came
	}
	require.Equal(t, r.Faults, came+r.Missed, string(timeline))
	require.Positive(t, came, string(timeline))
	require.Equal(t, r.Accepted, r.Handled+r.Reported+r.Lost)
	require.Zero(t, r.Panics+r.Double+r.Back+r.Twins+r.Twice+r.Unexplained, string(timeline))
}
