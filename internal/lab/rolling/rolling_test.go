// Tests of the parts of a rolling restart; the whole, with real processes, runs in cmd/lab.

package rolling

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/ledger"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Facts of several nodes, in any order, become the phases of moves; one that another coordinator took over, one
// that was given up, and one with a shard that came back, have none.
func TestPhasesOfMoves(t *testing.T) {
	list := []fact{
		{kith.ShardReleased, 1, 9}, {kith.MoveMarked, 1, 4}, {kith.MoveBegan, 1, 1}, {kith.MoveDone, 1, 16},
		{kith.MoveBegan, 2, 2}, {kith.MoveAborted, 2, 3}, {kith.MoveDone, 3, 5},
		{kith.MoveBegan, 4, 5}, {kith.MoveMarked, 4, 6}, {kith.ShardReleased, 4, 7}, {kith.MoveDone, 4, 8},
		{kith.ShardReleased, 5, 5}, // no move
		{kith.MoveBegan, 6, 5}, {kith.MoveMarked, 6, 6}, {kith.ShardReleased, 6, 7}, {kith.MoveReturned, 6, 8},
	}
	p, done, aborted := phasesOf(list)
	require.Equal(t, 3, done)
	require.Equal(t, 2, aborted)
	require.Equal(t, []time.Duration{1, 3}, sorted(p.mark))
	require.Equal(t, []time.Duration{1, 5}, sorted(p.stop))
	require.Equal(t, []time.Duration{1, 7}, sorted(p.start))
	require.Equal(t, []time.Duration{3, 15}, sorted(p.whole))
}

func sorted(list []time.Duration) []time.Duration {
	return []time.Duration{quantile(list, 0), quantile(list, 1000)}
}

// A node alone moves nothing; its stream ends with it.
func TestFactsOfANode(t *testing.T) {
	node, err := kith.Start(t.Context(), kith.Config{Name: "facts", Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	f := &facts{clock: cli.NewClock(cli.MachineTime()), over: make(chan struct{})}
	go f.read(node)
	f.note(fact{kith.MoveBegan, 7, 1})
	require.NoError(t, node.Close())
	<-f.over
	require.Equal(t, []fact{{kith.MoveBegan, 7, 1}}, f.take())
	require.Empty(t, f.take())
}

// A member that its own next process replaced had left; every other downed member was healthy.
func TestWhoWasHealthy(t *testing.T) {
	f := &facts{}
	for inc, cause := range []kith.Cause{kith.CauseReplaced, kith.CauseResolver, kith.CauseOperator} {
		id := kith.ID{Addr: peer.MustAddr("127.0.0.1:7355"), Inc: uint64(inc + 1)}
		for _, kind := range []kith.EventKind{kith.MemberUp, kith.MemberDowned} {
			f.event(kith.Event{Event: membership.Event{Kind: kind, Member: kith.Member{ID: id, Cause: cause}}})
		}
	}
	require.Equal(t, []string{"127.0.0.1:7355#2", "127.0.0.1:7355#3"}, f.lost())
}

// Each thing that must not be is named, all at once.
func TestVerdict(t *testing.T) {
	good := Result{Restarts: 20, AskTimes: AskTimes{AskP999: 250}}
	require.NoError(t, good.verdict(20, 250*time.Millisecond))
	bad := Result{Restarts: 3, Tally: ledger.Tally{Lost: 1, Reordered: 2, Duplicated: 3, Foreign: 5},
		States:   &States{StatesLost: 6, StatesOlder: 7},
		AskTimes: AskTimes{AskErrors: 4, AskP999: 250.01}, LateP999: 7, LateMax: 9}
	err := bad.verdict(20, 250*time.Millisecond)
	require.ErrorIs(t, err, ErrFailed)
	for _, want := range []string{"1 messages lost", "2 reordered", "3 duplicated", "4 asks without an answer",
		"5 received that were never sent", "6 states lost",
		"7 states other than the last instance had", "250.01 ms at p99.9, more than 250ms",
		"(an idle process was late by 7.00 ms at p99.9, by 9.00 ms at most)", "interrupted after 3 of 20"} {
		require.ErrorContains(t, err, want)
	}
}

// The names that scripts rely on (design, commands and last lines), filled from what was measured.
func TestResultFields(t *testing.T) {
	r := &Result{Restarts: 2, Seconds: 2}
	times := newTimes()
	l := &load{times: times, region: nil}
	for i := range 999 {
		l.answered(time.Now().Add(-time.Duration(i)*time.Microsecond), 0, nil)
	}
	l.answered(time.Now(), 0, errors.New("no"))
	took := l.take()
	r.asks(took.took, took.failed)
	require.Equal(t, map[string]uint64{"no": 1}, took.errs)
	r.messages(ledger.Tally{Sent: 1000, Delivered: 1000})
	r.moves([]fact{{kith.MoveBegan, 1, 0}, {kith.MoveMarked, 1, 1e6}, {kith.ShardReleased, 1, 3e6},
		{kith.MoveDone, 1, 6e6}})
	r.restarts([]time.Duration{time.Second, 3 * time.Second}, []time.Duration{2 * time.Second})
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	for name, want := range map[string]float64{"restarts": 2, "sent": 1000, "lost": 0, "reordered": 0, "duplicated": 0,
		"ask_errors": 1, "asks": 999, "rate": 1000, "moves": 1, "move_max_ms": 6, "move_mark_max_ms": 1,
		"move_stop_max_ms": 2, "move_start_max_ms": 3, "leave_max_s": 3, "join_max_s": 2} {
		require.InDelta(t, want, m[name], 0, name)
	}
	for _, name := range []string{"ask_p50_ms", "ask_p99_ms", "ask_p999_ms", "ask_max_ms", "machine_late_p999_ms"} {
		require.Contains(t, m, name)
	}
	b, err = json.Marshal(Result{})
	require.NoError(t, err)
	for _, name := range []string{"move_max_ms", "states_", "state_bytes"} {
		require.NotContains(t, string(b), name, "what was not measured is absent, never zero")
	}
	b, err = json.Marshal(Result{States: &States{StateBytes: 8}})
	require.NoError(t, err)
	require.Contains(t, string(b), `"state_bytes":8,"states_taken":0,"states_lost":0,"states_older":0`)
}

// Each pass has each process once: the oldest first, and then the youngest first.
func TestOrderOfRestarts(t *testing.T) {
	c := &crew{cfg: &Config{Nodes: 3}, all: []*process{{name: "a", born: 5}, {name: "b", born: 3}, {name: "c", born: 4},
		{name: "proxy", born: 0}}}
	names := func(list []*process) (all string) {
		for _, p := range list {
			all += p.name
		}
		return all
	}
	require.Equal(t, "bca", names(c.pass(0)))
	require.Equal(t, "acb", names(c.pass(1)))
	require.Equal(t, "b", c.oldest().name)
	c.all[0].senders = 1
	require.Equal(t, "c", c.fewest(c.all[1:2]).name, "neither the one that is busier nor the one that leaves")
}

func TestFaultsOfAConfigAreJoined(t *testing.T) {
	err := (&Config{Nodes: 1, Rounds: -1, Rate: 10, Asks: 11, Pause: -1}).Validate()
	for _, want := range []string{"--nodes must be", "--rounds must be", "--entities must be", "--shards must be",
		"--senders must be", "--asks must be", "--pause must be", "--bound must be"} {
		require.ErrorContains(t, err, want)
	}
	_, err = Run(t.Context(), Config{})
	require.ErrorContains(t, err, "--nodes")
}

// Children that do not start end the run with their last words.
func TestChildrenThatDoNotStart(t *testing.T) {
	cfg := Config{Job: Job{Entities: 1, Shards: 1}, Nodes: 2, Rounds: 1, Together: 1, Senders: 1, Rate: 2, Asks: 1,
		Bound: time.Second, Child: cli.Options{Path: "/nowhere/ghost"}, Progress: &cli.Progress{}}
	r, err := Run(t.Context(), cfg)
	require.Nil(t, r)
	require.ErrorContains(t, err, "start n1")
}

// Each instance has to begin with what the one under the fence before ended with, in whatever order the processes tell
// of them (SHD-9).
func TestStatesAreFollowed(t *testing.T) {
	fence := func(epoch uint32) kith.Fence { return route.MakeFence(1, 1, epoch) }
	first := Life{Fence: fence(1), Count: 5, Over: true}
	second := Life{Fence: fence(2), Began: 5, Taken: true, Count: 9, Over: true}
	third := Life{Fence: fence(3), Began: 9, Taken: true, Count: 9}
	for _, c := range []struct {
		what    string
		lives   []Life
		want    States
		settled bool
	}{
		{"all is well", []Life{third, first, second}, States{StatesTaken: 2}, true},
		{"the last one has not begun", []Life{second, first}, States{StatesTaken: 1, StatesLost: 1}, false},
		{"the first one goes on", []Life{{Fence: fence(1), Count: 5}, second, third}, States{StatesTaken: 2}, false},
		{"none came", []Life{first, {Fence: fence(2)}}, States{StatesLost: 1}, true},
		{"none came, and the next gives what it has", []Life{first, {Fence: fence(2), Count: 1, Over: true},
			{Fence: fence(3), Began: 1, Taken: true}}, States{StatesTaken: 1, StatesLost: 1}, true},
		{"an older one came", []Life{first, second, {Fence: fence(3), Began: 5, Taken: true}},
			States{StatesTaken: 2, StatesOlder: 1}, true},
		{"one of nobody", []Life{{Fence: fence(2), Began: 5, Taken: true}}, States{StatesTaken: 1, StatesOlder: 1}, true},
		{"an instance began again under its fence", []Life{{Fence: fence(1), Count: 5}, {Fence: fence(1)}},
			States{StatesLost: 1}, false},
	} {
		var s States
		var reports []map[string][]Life
		for _, x := range c.lives { // each in a process of its own
			reports = append(reports, map[string][]Life{"e": {x}})
		}
		require.Equal(t, c.settled, s.compare(reports), c.what)
		require.Equal(t, c.want, s, c.what)
	}
}

// A state that is cut short, of another size or of another entity is refused, and the instance has none then.
func TestCarrierTakesItsOwnState(t *testing.T) {
	var l lives
	of := func(id string, pads int) *carrier {
		return entityType(ledger.New(cli.MachineTime), &l, &Job{State: pads}).New(id, kith.Fence{}).(*carrier)
	}
	last := of("a", 100)
	last.life.count.Store(3)
	state, err := last.HandOver(nil)
	require.NoError(t, err)
	require.Len(t, state, countSize+100)
	next := of("a", 100)
	require.NoError(t, next.TakeUp(nil, state))
	next.Stop(nil)
	require.Equal(t, map[string][]Life{"a": {{Count: 3}, {Began: 3, Taken: true, Count: 3, Over: true}}}, l.told())
	for _, c := range []*carrier{of("b", 100), of("a", 99), of("a", 101)} {
		require.ErrorIs(t, c.TakeUp(nil, state), errState)
		require.False(t, c.life.taken.Load())
	}
	for _, b := range [][]byte{nil, state[:countSize-1], state[:countSize], append([]byte{4}, state[1:]...)} {
		require.ErrorIs(t, of("a", 100).TakeUp(nil, b), errState)
	}
}
