// Tests of journals, notes, store, logs and the timeline.

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/cli"
)

func TestNotesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sent{fate: fate(rapid.IntRange(0, int(fateReported)).Draw(t, "fate")), ask: rapid.Bool().Draw(t, "ask"),
			target: rapid.Uint16().Draw(t, "target"), reason: rapid.Uint16().Draw(t, "reason"),
			typ: rapid.Uint8().Draw(t, "typ"), shard: rapid.Uint32().Draw(t, "shard"), count: rapid.Uint64().Draw(t, "count"),
			from:  time.Duration(rapid.Int64Min(0).Draw(t, "from")),
			until: time.Duration(rapid.Int64Min(0).Draw(t, "until"))}
		require.Equal(t, s, sentOf(s.record()))
		h := handled{step: step(rapid.IntRange(0, int(stepFenced)).Draw(t, "step")), ask: s.ask, target: s.target,
			sender: s.shard, number: s.count, from: s.from, until: s.until, birth: rapid.Uint64().Draw(t, "birth"),
			low: rapid.Uint64().Draw(t, "low")}
		require.Equal(t, h, handledOf(h.record()))
		sender, number, ask, ok := splitMessage(appendMessage(nil, h.sender, h.number, h.ask))
		require.True(t, ok)
		require.Equal(t, []any{h.sender, h.number, h.ask}, []any{sender, number, ask})
	})
	_, _, _, ok := splitMessage(make([]byte, messageBytes-1))
	require.False(t, ok)
}

// What one process writes another reads, by many writers at once; a full journal says so.
func TestJournalIsShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	w, err := openJournal(path)
	require.NoError(t, err)
	r, err := openJournal(path)
	require.NoError(t, err)
	var busy sync.WaitGroup
	const writers, each = 8, 100
	for i := range writers {
		busy.Go(func() {
			for range each {
				n, err := w.begin()
				if err == nil {
					w.note(n, record{1, uint64(i), uint64(n)})
				}
			}
		})
	}
	busy.Wait()
	require.Equal(t, writers*each, r.begun())
	for n := range r.begun() {
		require.EqualValues(t, n, r.get(n)[2])
	}
	w.words[0] = journalSlots
	_, err = w.begin()
	require.ErrorIs(t, err, errJournalFull)
	require.Equal(t, journalSlots, r.begun())
	require.NoError(t, w.close())
	require.NoError(t, r.close())
}

// A write is taken under the highest fence and above, and never below it.
func TestStoreChecksFences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s, err := newStore(path)
	require.NoError(t, err)
	a, err := dialStore(path)
	require.NoError(t, err)
	b, err := dialStore(path)
	require.NoError(t, err)
	require.NoError(t, a.write(1, 5, 5))
	require.NoError(t, a.write(1, 5, 5))
	require.NoError(t, b.write(1, 5, 6))
	require.ErrorIs(t, a.write(1, 5, 5), errFenced)
	require.NoError(t, a.write(2, 5, 5), "another entity")
	require.NoError(t, b.write(1, 6, 0))
	require.ErrorIs(t, b.write(1, 5, 9), errFenced)
	writes, refused := s.counts()
	require.EqualValues(t, 5, writes)
	require.EqualValues(t, 2, refused)
	require.NoError(t, s.close())
	require.Error(t, a.write(1, 9, 9))
}

// A crash is found in a log however its lines are cut, and nothing else is taken for one.
func TestCrashesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"time=1 msg=fine\npanic: oh\ngoroutine 1": "panic: oh",
		"x\nfatal error: all asleep\n":            "fatal error: all asleep",
		"[signal SIGSEGV: x]\npanic: later\n":     "[signal SIGSEGV: x]",
		"time=1 msg=\"panic: of a handler\"\n":    "",
		strings.Repeat("long", 5000) + "\nfine\n": "",
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		require.NoError(t, err)
		l := &logFile{f: f}
		for _, b := range []byte(text) {
			n, err := l.Write([]byte{b})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		require.Equal(t, want, l.crashed())
		got, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoError(t, f.Close())
	}
}

// The timeline puts the words of the nodes where they belong, stacks behind what they follow, names for addresses.
func TestTimelineIsMerged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "timeline.txt")
	line, err := newTimeline(path, cli.NewClock(cli.MachineTime()-time.Second), &cli.Progress{})
	require.NoError(t, err)
	line.notef("harness speaks")
	log := "time=0.500 level=INFO msg=\"early\" peer=127.0.0.1:1\ntime=9.000 level=WARN msg=late\n\tstack\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "n2-7.log"), []byte(log), 0o600))
	require.NoError(t, line.finish(dir, []string{"127.0.0.1:1"}))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, "0.500    n2 | INFO \"early\" peer=n1", lines[0])
	require.Contains(t, lines[1], "harness speaks")
	require.Contains(t, lines[2], "n2 | WARN late")
	require.Contains(t, lines[3], "n2 | \tstack")
}

// Two clusters that are seen for long count once, and again only when another one comes.
func TestTwinsAreCounted(t *testing.T) {
	line, err := newTimeline(filepath.Join(t.TempDir(), "t"), cli.NewClock(cli.MachineTime()), &cli.Progress{})
	require.NoError(t, err)
	h := &harness{clock: line.clock, line: line}
	w := &watcher{h: h, known: map[uint64]bool{}}
	zero := cli.MachineTime()
	at := func(d time.Duration) { zero -= d; h.clock = cli.NewClock(zero) }
	at(time.Minute)
	w.twins(map[uint64][]int{1: {0}, 2: {1}})
	require.Zero(t, h.found.twins, "one of them may have ended")
	at(twinFor)
	for range 3 {
		w.twins(map[uint64][]int{1: {0}, 2: {1}})
		require.Equal(t, 1, h.found.twins)
	}
	w.twins(map[uint64][]int{1: {0}, 2: {1}, 3: {2}})
	require.Equal(t, 2, h.found.twins)
	w.twins(map[uint64][]int{1: {0}})
	at(twinFor)
	w.twins(map[uint64][]int{1: {0}, 4: {1}})
	require.Equal(t, 2, h.found.twins)
}

// That one was ended without a reason is no reason for the next.
func TestAllThatAreWrongedCount(t *testing.T) {
	line, err := newTimeline(filepath.Join(t.TempDir(), "t"), cli.NewClock(cli.MachineTime()), &cli.Progress{})
	require.NoError(t, err)
	h := &harness{cfg: Config{Nodes: 5}, clock: line.clock, line: line, found: found{exits: map[string]int{}},
		rounds: []past{{faults: []struck{died(0), died(4)}}}}
	for _, slot := range []int{1, 2, 3} {
		h.ended(&life{slot: slot, log: &logFile{}}, codeEnded)
	}
	require.Equal(t, 3, h.found.downed)
	require.Zero(t, explain(h.rounds, 2, []int{3}, 0), "it explains what is lost")
}

// The ends that are held against the cluster, and those that are not.
func TestEndsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name                    string
		faults                  []struck
		slot, code              int
		excused                 bool
		panics, downed, excuses int
	}{
		{"untouched and ended", []struck{{Fault{Kind: Kill, Victims: 1}, []int{0}}}, 1, codeEnded, false, 0, 1, 0},
		{"the killed", []struck{{Fault{Kind: Kill, Victims: 1}, []int{0}}}, 0, -1, false, 0, 0, 0},
		{"cut off and ended", []struck{{Fault{Kind: Cut, Victims: 1}, []int{0}}}, 0, codeEnded, false, 0, 0, 0},
		{"the machine stood still", []struck{{Fault{Kind: Kill, Victims: 1}, []int{0}}}, 1, codeEnded, true, 0, 0, 1},
		{"too many lost", []struck{{Fault{Kind: Kill, Victims: 2}, []int{0, 2}}}, 1, codeEnded, false, 0, 0, 0},
		{"crashed", nil, 1, codeCrash, false, 1, 0, 0},
		{"left", []struck{{Fault{Kind: Leave, Victims: 1}, []int{1}}}, 1, codeLeft, false, 0, 0, 0},
	} {
		line, err := newTimeline(filepath.Join(t.TempDir(), "t"), cli.NewClock(cli.MachineTime()), &cli.Progress{})
		require.NoError(t, err)
		h := &harness{cfg: Config{Nodes: 3}, clock: line.clock, line: line, found: found{exits: map[string]int{}},
			rounds: []past{{faults: c.faults, excused: c.excused}}}
		h.ended(&life{slot: c.slot, log: &logFile{}}, c.code)
		require.Equal(t, []int{c.panics, c.downed, c.excuses}, []int{h.found.panics, h.found.downed, h.found.excused}, c.name)
	}
}

// A run with a fault that the carrier cannot do is refused, before anything runs (OPS-3).
func TestFaultsThatCannotComeAreRefused(t *testing.T) {
	h := newHarness(Config{Nodes: 3, Net: "proxy", Kinds: []Kind{DNS}, Dir: t.TempDir()})
	require.ErrorContains(t, h.prepare(), "none of [dns] can come here: proxy")
}
