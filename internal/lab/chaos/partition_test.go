// Tests of partition: which nodes are cut off, gaps from journals, what verbs must say, the verdict. The whole with
// real processes is a test of the program that has the verbs (package command).

package chaos

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Fewer than half are cut off, and each of them owns something.
func TestSides(t *testing.T) {
	hosted := map[int]int{0: 4, 1: 3, 2: 5, 3: 5, 4: 1}
	for c, want := range map[PartitionCase][2][]int{CutOwners: {{2, 3}, {0, 1, 4}}, CutOwnersProof: {{2, 3}, {0, 1, 4}},
		CutCoordinator: {{0, 2}, {1, 3, 4}}, CutCoordinatorProof: {{0, 2}, {1, 3, 4}}} {
		losing, winning := pickSides(c, 0, hosted, 5)
		require.Equal(t, want, [2][]int{losing, winning}, c)
	}
	losing, winning := pickSides(CutOwners, 3, hosted, 4)
	require.Equal(t, [][]int{{2}, {0, 1, 3}}, [][]int{losing, winning}, "of four one: a half does not lose for sure")
	losing, _ = pickSides(CutOwners, 0, map[int]int{0: 9, 1: 2}, 5)
	require.Empty(t, losing, "n3 would be cut off, and owns nothing")
	losing, _ = pickSides(CutCoordinator, 0, map[int]int{0: 9}, 3)
	require.Equal(t, []int{0}, losing)
	_, err := ParsePartitionCases([]string{"owners", "rain"})
	require.ErrorContains(t, err, `no case "rain"`)
	all, err := ParsePartitionCases(nil)
	require.NoError(t, err)
	require.Equal(t, PartitionCases, all)
}

// A gap is from the end of the last handler of the processes that are gone until the begin of the first one elsewhere;
// a handler that its process took along ended with it (MEM-10, SHD-9).
func TestGaps(t *testing.T) {
	b := newBook(t.TempDir(), 3, Load{Entities: 2, Shards: 4})
	t.Cleanup(b.close)
	ms := time.Millisecond
	for p := range uint32(3) {
		l := &life{slot: int(p), sender: p + 1}
		if l.sender == 1 {
			l.end = 900 * ms
		}
		require.NoError(t, b.open(l))
	}
	number := uint64(0)
	handle := func(by uint32, target uint16, fence uint64, from, until time.Duration) {
		n, err := b.volumes[by].handled.begin()
		require.NoError(t, err)
		h := handled{step: stepDone, target: target, sender: 2, number: number, from: from, until: until, birth: 1,
			low: fence}
		if number++; until == 0 {
			h.step = stepBegun
		}
		b.volumes[by].handled.note(n, h.record())
	}
	handle(1, 0, 1, 10*ms, 20*ms) // three entities of process 1, one of process 2
	handle(1, 1, 1, 10*ms, 20*ms)
	handle(1, 2, 1, 10*ms, 20*ms)
	handle(2, 3, 1, 10*ms, 20*ms)
	handle(1, 0, 1, 500*ms, 510*ms) // it goes on behind the cut
	handle(1, 1, 1, 500*ms, 0)      // until its process ends at 900 ms
	handle(3, 0, 2, 700*ms, 710*ms)
	handle(2, 0, 3, 600*ms, 610*ms)
	handle(3, 1, 2, 800*ms, 810*ms)
	handle(3, 3, 2, 600*ms, 610*ms)
	b.read(time.Minute, true)
	gaps, none := b.gaps([]uint32{1}, 100*ms)
	require.Equal(t, []gap{{0, 510 * ms, 600 * ms}, {1, 900 * ms, 800 * ms}}, gaps)
	require.Equal(t, []uint16{2}, none)
	p := &parted{gaps: gaps}
	require.Equal(t, 1, p.overlaps(), "the second began while the first still ran")
	require.Equal(t, []time.Duration{-100 * ms, 90 * ms}, p.gapTimes())
}

// What verbs printed on both sides of a cut, in real runs.
const (
	saidStatus = `node       10.0.0.1:7#3ac4aae94d06603d
state      ready since 2026-11-23T14:19:54Z
cluster    81333418addf44e3
`
	saidMembers = `ADDRESS     STATUS  NUMBER  REACHABLE
10.0.0.1:7  up      1       yes
10.0.0.2:7  up      2       no, say 10.0.0.1:7#3ac4aae94d06603d 10.0.0.3:7#39ed762853b759a8
10.0.0.3:7  up      3       yes
`
	saidExplain = `this node is ready
no convergence for 110ms:
  10.0.0.2:7#b6e5af0232f471b9 (up) unreachable for 10.0.0.1:7#3ac4aae94d06603d since 0s
`
	saidLives = `this node is ready
all members have seen one state
2026-11-23T14:20:08Z  keep-majority: 3 of 5 members reachable, lost 10.0.0.2:7 10.0.0.3:7; ours is the majority; ` +
		"downs 10.0.0.2:7 10.0.0.3:7; this node lives\n"
	saidStops = "14:20:08.294  decision  keep-majority: 2 of 5 members reachable, " +
		`lost 10.0.0.1:7 10.0.0.4:7 10.0.0.5:7; the other side is the majority; downs 10.0.0.2:7 10.0.0.3:7; this node stops
14:20:08.294  ended     downed: downed by 10.0.0.2:7#b6e5af0232f471b9 (resolver)
`
	saidEvents = `snapshot: 5 members
node-suspended: stopped by the resolver: the other side is the majority
member-downed 10.0.0.3:7#be71a3e7ea10e4cd (up)
`
)

// Each judgement takes what a real node said, and nothing that lacks or adds something.
func TestWhatVerbsSay(t *testing.T) {
	lost, downs := []string{"10.0.0.1:7", "10.0.0.4:7", "10.0.0.5:7"}, []string{"10.0.0.3:7", "10.0.0.2:7"}
	gone, others := []string{"10.0.0.2:7"}, []string{"10.0.0.1:7", "10.0.0.3:7"}
	judges := map[string]func(said) bool{
		"status":  func(s said) bool { return statusTells(s, "10.0.0.1:7") },
		"members": func(s said) bool { return membersTell(s, gone, others) },
		"explain": func(s said) bool { return explainNames(s, gone) },
		"lives":   func(s said) bool { return explainTells(s, downs, downs, true) },
		"stops":   func(s said) bool { return explainTells(s, lost, downs, false) },
		"downed":  func(s said) bool { return recordTellsWho(s, downs) },
		"events":  func(s said) bool { return eventsTell(s, "10.0.0.3:7") },
	}
	for _, c := range []struct {
		judge, text, was, is string
		code                 int
		want                 bool
	}{
		{"status", saidStatus, "", "", 0, true},
		{"status", saidStatus, "ready since", "suspended since", 1, true},
		{"status", saidStatus, "10.0.0.1:7", "10.0.0.1:71", 0, false},
		{"status", "kith: no answer of the admin interface", "", "", 1, false},
		{"members", saidMembers, "", "", 0, true},
		{"members", saidMembers, "3       yes", "3       no, say 10.0.0.1:7#3ac4aae94d06603d", 0, false},
		{"members", saidMembers, "2       no, say", "2       yes, say", 0, false},
		{"members", saidMembers, "\n10.0.0.2:7", "\n10.0.0.2:71", 0, false},
		{"members", saidMembers, "", "", 1, false},
		{"explain", saidExplain, "", "", 0, true},
		{"explain", saidExplain, "  10.0.0.2:7#", "  10.0.0.3:7#", 0, false},
		{"explain", saidExplain, "unreachable for", "has not seen it for", 0, false},
		{"lives", saidLives, "", "", 0, true},
		{"lives", saidLives, "keep-majority", "keep-oldest", 0, false},
		{"lives", saidLives, "this node lives", "this node stops", 0, false},
		{"lives", saidLives, "ours is", "the other side is", 0, false},
		{"lives", saidLives, "downs 10.0.0.2:7 ", "downs ", 0, false},
		{"lives", saidLives, "lost 10.0.0.2:7 ", "lost 10.0.0.2:7 10.0.0.4:7 ", 0, false},
		{"stops", saidStops, "", "", 0, true},
		{"stops", saidStops, "this node stops", "this node lives", 0, false},
		{"stops", saidLives, "", "", 0, false},
		{"downed", saidStops, "", "", 0, true},
		{"downed", saidStops, "", "", 1, false},
		{"downed", saidStops, "by 10.0.0.2:7", "by 10.0.0.1:7", 0, false},
		{"downed", saidStops, "(resolver)", "(operator)", 0, false},
		{"events", saidEvents, "", "", 0, true},
		{"events", saidEvents, "stopped by the resolver", "no time", 0, true},
		{"events", saidEvents[:strings.Index(saidEvents, "node-")], "", "", 0, false},
	} {
		text := c.text
		if c.was != "" {
			require.Contains(t, text, c.was)
			text = strings.ReplaceAll(text, c.was, c.is)
		}
		require.Equal(t, c.want, judges[c.judge](said{text, c.code}), "%s: code %d\n%s", c.judge, c.code, text)
	}
}

// What must not be makes a fault each, and the table shows what was measured.
func TestPartitionFaults(t *testing.T) {
	s := time.Second
	result := func(change func(p *parted)) *PartitionResult {
		p := &parted{net: "proxy", gaps: []gap{{0, 11 * s, 31 * s}, {1, 10 * s, 32 * s}}, exits: map[int]int{codeEnded: 2},
			steps: map[stepName]time.Duration{stepLastHandled: 11 * s, stepFirstHandled: 31 * s},
			cost:  cost{sums: sums{Accepted: 9, Lost: 2, By: map[cause]int{senderEnded: 2}}},
			asked: &operator{sums: Answers{Asked: 9, Living: 3, Told: tellings{Replay: 1, Downed: 1}}}}
		change(p)
		r := newPartitionResult(5, 1, 0)
		r.add(CutOwners, p)
		require.Equal(t, p.violations() > 0, len(r.faults()) > 0 && r.Entities > 0 && r.Late == 0)
		return r
	}
	for _, c := range []struct {
		want   string
		change func(p *parted)
	}{
		{"", func(*parted) {}},
		{"1 entities began before they had stopped", func(p *parted) { p.gaps[0].started = 11 * s }},
		{"1 handlings beside another owner", func(p *parted) { p.verdict.Double = 1 }},
		{"2 handlings beside another owner", func(p *parted) { p.verdict.Back = 2 }},
		{"3 messages handled again", func(p *parted) { p.verdict.Twice = 3 }},
		{"1 messages lost", func(p *parted) { p.sums.Unexplained = 1 }},
		{"2 messages lost", func(p *parted) { p.sums.By[onTheWay] = 2 }},
		{"1 entities that the side that lives never handled", func(p *parted) { p.silent = []uint16{3} }},
		{"1 crashes", func(p *parted) { p.harmed = 1 }},
		{"1 losing processes did not end with exit code 3", func(p *parted) { p.exits[codeCrash] = 1 }},
		{"1 losing processes did not end with exit code 3", func(p *parted) { p.exits[codeRunning] = 1 }},
		{"kith members says nothing", func(p *parted) {
			p.asked.sums.Wrong, p.asked.faults = 1, []string{"kith members says nothing"}
		}},
		{"2 more answers", func(p *parted) { p.asked.sums.Wrong = 2 }},
		{"no node of the losing side", func(p *parted) { p.asked.sums.Told.Replay = 0 }},
		{"no node of the side that lives", func(p *parted) { p.asked.sums.Living = 0 }},
		{"3 verbs came to no answer", func(p *parted) { p.asked.sums.Late = 3 }},
		{"nothing was measured", func(p *parted) { p.gaps = nil }},
	} {
		all := result(c.change).faults()
		if c.want == "" {
			require.Empty(t, all)
			continue
		}
		require.Len(t, all, 1, c.want)
		require.ErrorContains(t, all[0], c.want)
	}
	r := result(func(*parted) {})
	require.Equal(t, Spread{20, 20, 22}, *r.Cases[CutOwners].Gap)
	var out bytes.Buffer
	r.Table(&out)
	require.Contains(t, out.String(), "\nwinning_first_handled  31.00  31.00\n")
	require.Contains(t, out.String(), "\ngap (least, median)    20.00  20.00\n")
}
