// Tests of failover: the bill from records, the first answers from journals, the verdict, and the whole once.

package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
)

// The bill counts, of each step, the first record since the loss, and the last of what each victim or type had first
// (SHD-2, AVL-5).
func TestBill(t *testing.T) {
	at := func(s float64) time.Duration { return seconds(s)[0] }
	record := func(s float64, text string) timed { return timed{at(s), "  n1 | INFO " + text} }
	records := []timed{
		record(9, `"member unreachable" member=127.0.0.1:1#7 by=[]`), // before the loss
		record(10.5, `"member unreachable" member=127.0.0.1:1#7 by=[127.0.0.1:2#8]`),
		record(11, `"member unreachable" member=127.0.0.1:1#7`),
		record(10.2, `"member unreachable" member=127.0.0.1:12#7`), // no victim
		record(12, `"member unreachable" member=127.0.0.1:3#9`),
		record(17, `"resolver decided" decision="down 127.0.0.1:1#7"`),
		record(18, `"resolver decided" decision="down 127.0.0.1:3#9"`),
		record(19, `"coordinator ready" type=a term=2`),
		record(21, `"coordinator ready" type=b term=2`),
		record(22, `"coordinator ready" type=b term=2`),
		record(20, `"move began" type=a shard=7 term=2 move=1`), // for balance, from a node that lives
		record(20.5, `"shard allocated" type=a shard=7 term=2`),
		record(20, `"move began" type=a shard=8 term=2 move=2`),
		record(20.5, `"shard allocated" type=a shard=8 term=2`),
		record(22, `"shard allocated" type=a shard=1 term=2`),
		record(23, `"move began" type=a shard=1 term=2 move=3`), // what was lost may move later
		record(23, `"shard allocated" type=a shard=2 term=2`),
		record(29, `"shard allocated" type=b shard=1 term=2`),
		record(30, `"shard allocated" type=b shard=1 term=2`),
	}
	require.Equal(t, breakdown{stepUnreachable: at(2), stepDecided: at(7), stepReady: at(11), stepAllocated: at(13)},
		makeBill(records, []string{"127.0.0.1:1", "127.0.0.1:3"}, at(10)))
	require.Empty(t, makeBill(records, []string{"127.0.0.1:1"}, at(40)))
}

// Only answers count that another process gave, to another process, after the loss.
func TestFirstAnswers(t *testing.T) {
	dir := t.TempDir()
	b := newBook(dir, 3, Load{Entities: 2, Shards: 4})
	t.Cleanup(b.close)
	for p := range uint32(3) {
		require.NoError(t, b.open(&life{slot: int(p), sender: p + 1}))
	}
	ms := time.Millisecond
	ask := func(from, by uint32, target uint16, fence uint64, begun, until time.Duration, f fate) {
		n, err := b.volumes[from].sent.begin()
		require.NoError(t, err)
		s := sent{fate: f, ask: true, target: target, from: begun, until: until}
		b.volumes[from].sent.note(n, s.record())
		m, err := b.volumes[by].handled.begin()
		require.NoError(t, err)
		h := handled{step: stepDone, ask: true, target: target, sender: from, number: uint64(n), from: (begun + until) / 2,
			until: until, birth: 1, low: fence}
		b.volumes[by].handled.note(m, h.record())
	}
	ask(2, 1, 0, 1, 10*ms, 20*ms, fateAnswered) // three entities of process 1, one of process 2
	ask(2, 1, 1, 1, 10*ms, 20*ms, fateAnswered)
	ask(3, 1, 2, 1, 10*ms, 20*ms, fateAnswered)
	ask(3, 2, 3, 1, 10*ms, 20*ms, fateAnswered)
	ask(1, 3, 0, 2, 200*ms, 300*ms, fateAnswered) // the lost process asks
	ask(2, 3, 0, 2, 400*ms, 500*ms, fateAnswered)
	ask(3, 3, 0, 2, 300*ms, 450*ms, fateAnswered)
	ask(2, 1, 1, 1, 101*ms, 130*ms, fateAnswered) // by the lost process, which went on for a moment
	ask(2, 3, 1, 2, 600*ms, 700*ms, fateAnswered)
	ask(2, 3, 2, 2, 600*ms, 700*ms, fateFailed) // handled, and the answer came to nobody
	b.read(time.Minute, true)
	took, none := b.firstAnswers([]uint32{1}, 100*ms)
	require.Equal(t, map[uint16]time.Duration{0: 350 * ms, 1: 600 * ms}, took)
	require.Equal(t, []uint16{2}, none)
}

// What must not be makes a fault each, and so does a bound that does not hold.
func TestFailoverFaults(t *testing.T) {
	result := func(c Case, took time.Duration, change func(o *outage)) *FailoverResult {
		o := outage{took: map[uint16]time.Duration{1: took / 2, 2: took, 3: took}, bill: breakdown{stepAnswered: took},
			cost: cost{sums: sums{Accepted: 9, Lost: 2, By: map[cause]int{receiverEnded: 2}}}}
		change(&o)
		r := &FailoverResult{Rounds: 1, Bill: map[Case]*Bill{}}
		r.add(c, &o)
		return r
	}
	nothing := func(*outage) {}
	for _, c := range []struct {
		c      Case
		took   time.Duration
		change func(o *outage)
		want   string
	}{
		{LoseOwner, 27 * time.Second, nothing, ""},
		{LoseOwner, 29 * time.Second, nothing, "owner: 29.000 s, more than 28s"},
		{LoseOwnerProof, 4 * time.Second, nothing, "owner-proof: 4.000 s, more than 3s"},
		{LoseBothProof, 4 * time.Second, nothing, "both-proof: 4.000 s, more than 3s"},
		{PauseOwner, 33 * time.Second, nothing, ""},
		{PauseOwner, 34 * time.Second, nothing, "paused: 34.000 s, more than 33.3265s"},
		{LoseBoth, time.Second, func(o *outage) { o.verdict.Double = 1 }, "1 handlings beside another owner"},
		{LoseBoth, time.Second, func(o *outage) { o.verdict.Back = 2 }, "2 handlings beside another owner"},
		{LoseBoth, time.Second, func(o *outage) { o.sums.By[onTheWay] = 3 }, "3 messages lost"},
		{LoseBoth, time.Second, func(o *outage) { o.sums.Unexplained = 1 }, "1 messages lost"},
		{LoseBoth, time.Second, func(o *outage) { o.silent = []uint16{4} }, "1 entities without"},
		{LoseBoth, time.Second, func(o *outage) { o.took = nil }, "nothing was lost"},
		{LoseBoth, time.Second, func(o *outage) { o.harmed = 1 }, "1 crashes"},
		{LoseOwner, time.Second, func(o *outage) { o.fenced = 1 }, "the store refused 1 writes"},
		{PauseOwner, time.Second, func(o *outage) { o.fenced, o.verdict.Woke = 9, 8 }, ""},
		{PauseOwner, time.Second, func(o *outage) { o.verdict.Woke = 9 }, "9 handlings began when their process had stood"},
	} {
		all := result(c.c, c.took, c.change).faults(Cases, paceOf(5, cluster.PatienceNormal, 7*time.Second), Sessions{})
		if c.want == "" {
			require.Empty(t, all, c)
			continue
		}
		require.Len(t, all, 1, c)
		require.ErrorContains(t, all[0], c.want)
	}
	_, err := ParseCases([]string{"owner", "rain"}, Sessions{})
	require.ErrorContains(t, err, `no case "rain"`)
	all, err := ParseCases(nil, Sessions{})
	require.NoError(t, err)
	require.Equal(t, Cases, all)
	for _, c := range Cases {
		require.True(t, c.owner() || c.coordinator(), c)
	}
}

// The bounds follow the patience, by takeover times as docs/split-brain.md has them (MEM-10).
func TestFailoverBounds(t *testing.T) {
	for nodes, want := range map[int]int{3: 17, 5: 17, 6: 25, 10: 25, 11: 31, 16: 31} {
		require.Equal(t, want, int(paceOf(nodes, cluster.PatienceNormal, 0).takeover.Seconds()), nodes)
	}
	five := paceOf(5, cluster.PatienceNormal, 0)
	require.Equal(t, 23500*time.Millisecond, LoseBoth.bound(five, Sessions{}))
	require.Equal(t, 28*time.Second, PauseOwner.bound(five, Sessions{}), "28 s by default, whatever the case")
	other := paceOf(5, cluster.PatienceNormal, 5*time.Second)
	require.Equal(t, 23*time.Second, LoseOwner.bound(other, Sessions{}))
	require.Equal(t, 23*time.Second+other.silence, PauseOwner.bound(other, Sessions{}))
	require.Equal(t, 3*time.Second, LoseOwnerProof.bound(other, Sessions{}))
	calm := paceOf(5, cluster.PatienceCalm, 0)
	require.Less(t, LoseOwner.bound(calm, Sessions{}), 7200*time.Millisecond)
	require.Less(t, PauseOwner.bound(calm, Sessions{}), 8800*time.Millisecond)
}

// A lost node owns something, or none is lost.
func TestLosers(t *testing.T) {
	even := map[int]int{0: 4, 1: 3, 2: 5, 3: 5}
	for c, want := range map[Case][]int{LoseOwner: {2}, PauseOwner: {2}, LoseCoordinator: {0}, LoseBothProof: {0, 2}} {
		require.Equal(t, want, pickLosers(c, 0, even), c)
	}
	require.Equal(t, []int{2, 3}, pickLosers(LoseBoth, 2, even))
	first := map[int]int{0: 9, 1: 0, 2: 0}
	require.Equal(t, []int{0}, pickLosers(LoseCoordinator, 0, first))
	require.Empty(t, pickLosers(LoseBoth, 0, first))
	require.Empty(t, pickLosers(LoseOwner, 0, first))
	require.Empty(t, pickLosers(LoseCoordinator, 1, first))
	require.Empty(t, pickLosers(LoseOwner, 0, map[int]int{0: 20, 1: 4, 2: 3}), "less than half of its share")
	require.Equal(t, []int{1}, pickLosers(LoseOwner, 0, map[int]int{0: 18, 1: 5, 2: 5}))
}

// One loss in real processes: the owner's death is proven, another one answers for all that it had (SHD-9, AVL-5).
func TestFailoverSmoke(t *testing.T) {
	dir := t.TempDir()
	r, err := Failover(t.Context(), FailoverConfig{Cases: []Case{LoseOwnerProof},
		Trial: Trial{Nodes: 3, Rounds: 1, Dir: dir,
			Load: Load{Entities: 4, Shards: 6, Tells: 30, Asks: 30}, Child: cli.Options{Env: []string{childEnv + "=1"}},
			Progress: &cli.Progress{}}})
	timeline, _ := os.ReadFile(filepath.Join(dir, "owner-proof-1", "timeline.txt"))
	require.NotNil(t, r, "%v\n%s", err, timeline)
	require.Positive(t, r.Entities)
	require.Zero(t, r.Silent+r.DoubleOwner+r.Unexplained+r.Twice, string(timeline))
	require.NotNil(t, r.OwnerProof)
	require.Nil(t, r.Owner, "not measured")
	steps := r.Bill[LoseOwnerProof].Steps
	for _, want := range []stepName{stepUnreachable, stepAllocated, stepAnswered} {
		require.Contains(t, steps, want, string(timeline))
	}
	require.Contains(t, string(timeline), "loss: owner-proof: n")
	var out bytes.Buffer
	r.Table(&out)
	require.Contains(t, out.String(), "\nowner-proof  ")
}
