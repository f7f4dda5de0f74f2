// Tests of what a node does with a message, and for a partition, by its table.

package partition

import (
	"encoding/hex"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

func node(i byte) kith.ID {
	return kith.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", i)), Inc: uint64(i)}
}

// placed is a partition of one instance on node 1 that goes to node 2.
func placed(h Handoff, to kith.ID, complete bool) *State {
	c := Change{Path: "a", From: node(1), To: to, Complete: complete, Epoch: 5, Writer: 1}
	return &State{PartitionDefinition: Definition{Path: "a"}, Epoch: 5, Writer: 1, Wanted: 1, InForce: h,
		Instances: []kith.ID{node(1)}, Changes: []Change{c}}
}

// No two nodes get one fence, and that of the new one is higher (PRT-4).
func TestRanks(t *testing.T) {
	one, two, three := node(1), node(2), node(3)
	p := placed(Stateless, two, false) // placed on node 1 and handed over in one epoch
	older := &State{PartitionDefinition: Definition{Path: "a"}, Epoch: 4, Writer: 9, Instances: []kith.ID{three}}
	now := stampOf(p)
	ranks := []stamp{
		rankOf(older, three, 0, stamp{4, 9}), // the instance before
		rankOf(older, one, 0, now),           // node 1 does not know the table yet, and its sender does
		rankOf(p, one, 0, now),
		rankOf(p, two, 0, stamp{6, 1}), // its sender knows that the hand-off was given up
	}
	for i, r := range ranks[1:] {
		require.True(t, r.above(ranks[i]), "%d: %v, %v", i, r, ranks[i])
	}
	require.Equal(t, changeOf(&p.Changes[0]), ranks[3])
	require.Equal(t, stampOf(older), rankOf(older, three, 0, now), "it knows that it hosts")
}

// A fence of a hand-off that buffers, which is its owner's, is above all of the others, and none is of both kinds: the
// instance of a partition that goes over to it has a later one. Found by storm 2297 (PRT-4).
func TestFencesOfBothKinds(t *testing.T) {
	const birth = 7
	owners := []kith.Fence{route.MakeFence(birth, 1, 1), route.MakeFence(birth, 7, 2),
		route.MakeFence(birth, ownedTerm-1, 1<<31)}
	for i, f := range owners {
		own := fenceOfOwner(f)
		require.Equal(t, f.Epoch(), own.Epoch())
		require.Equal(t, uint64(birth), own.Birth())
		require.True(t, i == 0 || fenceOfOwner(owners[i-1]).Compare(own) < 0)
		for _, rank := range []stamp{{1, 1}, {7, 2}, {1 << 31, 1}, {1 << 40, math.MaxUint32}} {
			require.Negative(t, fenceOf(birth, rank).Compare(own), "%v, %v", rank, f)
		}
		require.Negative(t, own.Compare(fenceOf(birth+1, stamp{1, 1})), "another cluster")
	}
}

// What each option says, sentence by sentence of the early specification, "Graceful Handoff" (PRT-4).
func TestJudge(t *testing.T) {
	one, two, three, nobody := node(1), node(2), node(3), kith.ID{}
	now := stamp{5, 1}
	for _, c := range []struct {
		what string
		p    *State
		at   kith.ID // that judges
		sent stamp
		over bool
		want verdict
		to   kith.ID
		why  reason
	}{
		{"2a: keep A on N1 active", placed(Stateless, two, false), one, now, false, takes, one, none},
		{"2b: N1 forwards all messages for A to N2", placed(Handoff{Old: cluster.OldForwards}, two, false), one, now,
			false, goes, two, none},
		{"2c: N1 drops all messages for A", placed(Lossy, two, false), one, now, false, refuses, two, moving},
		{"3a: N2 simply processes messages for A as normal", placed(Stateless, two, false), two, now, false, takes, two,
			none},
		{"4a: N1 forwards all messages for A to N2 during the update transition", placed(Stateless, two, true), one, now,
			false, goes, two, none},
		{"4a from when N2 is ready", placed(Stateless, two, false), one, now, true, goes, two, none},
		{"4b: N1 drops all messages for A", placed(Lossy, two, false), one, now, true, refuses, two, moved},
		{"who hosts nothing sends on to who does", placed(Stateless, two, false), three, now, false, goes, one, none},
		{"and to the new node once that is complete", placed(Stateless, two, true), three, now, false, goes, two, none},
		{"a sender that knows more is believed", placed(Stateless, two, false), three, stamp{6, 1}, false, takes, three,
			none},
		{"so is one of a later leader", placed(Stateless, two, false), three, stamp{5, 2}, false, takes, three, none},
		{"not by N1: the change may be pending in that table too", placed(Stateless, two, false), one, stamp{6, 1}, true,
			goes, two, none},
		{"2a: what was sent before the change goes to N1", placed(Stateless, two, false), two, stamp{4, 1}, false, goes, one,
			none},
		{"2b: what was sent before the change goes to N1, which may be handling", placed(Handoff{Old: cluster.OldForwards},
			two, false), two, stamp{4, 1}, false, goes, one, none},
		{"2b: what N1 sends on is sent by the table with the change", placed(Handoff{Old: cluster.OldForwards}, two, false),
			two, now, false, takes, two, none},
		{"2c: N2 makes no instance before N1 has ended its own", placed(Lossy, two, false), two, stamp{4, 1}, false,
			refuses, two, moving},
		{"what ends handles what comes", placed(Stateless, nobody, false), one, now, false, takes, one, none},
		{"until it has ended", placed(Stateless, nobody, false), one, now, true, refuses, nobody, noInstance},
		{"and is known to", placed(Stateless, nobody, true), three, now, false, refuses, nobody, noInstance},
		{"a slot that never was", &State{Epoch: 5, Writer: 1}, one, now, false, refuses, nobody, noInstance},
	} {
		what, to, why := judge(c.p, c.at, 0, c.sent, c.over, false)
		require.Equal(t, c.want, what, c.what)
		require.Equal(t, c.why, why, c.what)
		if what != refuses {
			require.Equal(t, c.to, to, c.what)
		}
	}
}

// Of hand-offs in which the old instance ends first a message makes none but on the node that hosts it by its own
// table: the shard by which it came may have moved, or the hand-off was turned back (PRT-4).
func TestMessageMakesNoSecondInstance(t *testing.T) {
	two, three := node(2), node(3)
	now, later := stamp{5, 1}, stamp{6, 1}
	for _, c := range []struct {
		what string
		p    *State
		at   kith.ID // that judges
		sent stamp
		here bool
		want verdict
	}{
		{"the new node was not asked", placed(Lossy, two, false), two, now, false, refuses},
		{"and the sender knows more", placed(Lossy, two, false), two, later, false, refuses},
		{"it was asked", placed(Lossy, two, false), two, now, true, takes},
		{"the hand-off is complete", placed(Lossy, two, true), two, now, false, takes},
		{"another node knows nothing", placed(Lossy, two, false), three, later, false, refuses},
		{"though it has the instance", placed(Lossy, two, false), three, later, true, takes},
		{"two may live at a time", placed(Stateless, two, false), three, later, false, takes},
	} {
		what, _, why := judge(c.p, c.at, 0, c.sent, false, c.here)
		require.Equal(t, c.want, what, c.what)
		if c.want == refuses {
			require.Equal(t, moving, why, c.what)
		}
	}
}

// A node makes what is its own, hands over what goes, and ends what is elsewhere. In storm 12800000313 it ended what
// was back, and made it again under the same fence (PRT-4).
func TestDuties(t *testing.T) {
	one, two, three := node(1), node(2), node(3)
	here := func(at stamp) map[int]stamp { return map[int]stamp{0: at} }
	for _, c := range []struct {
		what string
		p    *State
		at   kith.ID
		here map[int]stamp
		over bool
		want []act
	}{
		{"it begins what is its own", &State{Epoch: 1, Instances: []kith.ID{one}}, one, nil, false, []act{begins}},
		{"once", &State{Epoch: 1, Instances: []kith.ID{one}}, one, here(stamp{1, 0}), false, nil},
		{"it asks the new node", placed(Stateless, two, false), one, here(stamp{4, 1}), false, []act{asks}},
		{"2c ends first", placed(Lossy, two, false), one, here(stamp{4, 1}), false, []act{ends}},
		{"2c asks when it has ended", placed(Lossy, two, false), one, nil, false, []act{asks}},
		{"a node that has begun anew keeps it (2a)", placed(Stateless, two, false), one, nil, false, []act{asks, begins}},
		{"ready: it completes and shuts down", placed(Stateless, two, false), one, here(stamp{4, 1}), true,
			[]act{completes, ends}},
		{"complete", placed(Stateless, two, true), one, here(stamp{4, 1}), false, []act{ends}},
		{"2c: what was handed back by a later table stays", placed(Lossy, two, false), one, here(stamp{6, 1}), true,
			[]act{completes}},
		{"and is not handed over by this one", placed(Lossy, two, false), one, here(stamp{6, 1}), false, nil},
		{"2a: so does what came back by a later table", placed(Stateless, two, true), one, here(stamp{6, 1}), false, nil},
		{"the new node waits", placed(Stateless, two, false), two, nil, false, nil},
		{"and keeps what it has made", placed(Stateless, two, false), two, here(stamp{5, 1}), false, nil},
		{"what was given up ends", &State{Epoch: 6, Writer: 1, Instances: []kith.ID{one}}, two, here(stamp{5, 1}), false,
			[]act{ends}},
		{"what a sender knew first stays", &State{Epoch: 5, Writer: 1, Instances: []kith.ID{one}}, two, here(stamp{6, 1}),
			false, nil},
		{"what has asked another node, which is gone, begins under a later fence", &State{Epoch: 6, Writer: 1,
			Instances: []kith.ID{three}}, three, here(stamp{4, 1}), false, []act{ends}},
		{"another room", &State{Epoch: 6, InForce: Ordered, Instances: []kith.ID{one}}, one, here(stamp{5, 1}), false,
			[]act{ends}},
		{"nothing placed yet", &State{}, one, nil, false, nil},
	} {
		k := &known{here: c.here, over: map[int]stamp{}, asked: map[int]stamp{}, seen: map[int]seen{}}
		if c.at == three {
			k.asked[0] = stamp{5, 1}
		}
		if c.over {
			k.over[0] = changeOf(&c.p.Changes[0])
		}
		list, _ := duties(c.p, c.at, k, 0)
		var acts []act
		for _, d := range list {
			acts = append(acts, d.act)
		}
		require.Equal(t, c.want, acts, c.what)
	}
}

// An instance that goes nowhere ends a second after its node has heard of it, and then the change is complete (PRT-4).
func TestDutiesOfAnEnd(t *testing.T) {
	p := placed(Stateless, kith.ID{}, false)
	k := &known{here: map[int]stamp{0: {4, 1}}, over: map[int]stamp{}, seen: map[int]seen{}}
	list, soon := duties(p, node(1), k, time.Minute)
	require.Empty(t, list)
	require.Equal(t, endGrace, soon)
	list, _ = duties(p, node(1), k, time.Minute+endGrace)
	require.Equal(t, []duty{{ends, 0, p.Changes[0]}}, list)
	k.here = nil
	list, _ = duties(p, node(1), k, time.Minute+endGrace)
	require.Equal(t, []duty{{completes, 0, p.Changes[0]}}, list)
}

// A frame's bytes do not change: nodes of two builds speak of instances (compatibility).
func TestFrameBytes(t *testing.T) {
	sent := frame{isBack, 3, moved, stamp{0x1122334455667788, 9}, kith.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 5}}
	b := appendFrame(nil, &sent)
	require.Equal(t, "01040302"+"8877665544332211"+"09000000"+"040a000001bb1c"+"0500000000000000", hex.EncodeToString(b))
	f, err := parseFrame(b)
	require.NoError(t, err)
	require.Equal(t, sent, f)
	for n := range b {
		_, err := parseFrame(b[:n])
		require.ErrorIs(t, err, errFrame, n)
	}
	for at, bad := range []byte{2, byte(kinds), maxHops + 1, byte(reasons)} {
		wrong := append([]byte{}, b...)
		wrong[at] = bad
		_, err = parseFrame(wrong)
		require.ErrorIs(t, err, errFrame, at)
	}
	require.Equal(t, "17.3.a/b.c", earID(17, 3, "a/b.c"))
	shard, slot, path, ok := parseEar("17.3.a/b.c")
	require.True(t, ok)
	require.Equal(t, "17 3 a/b.c", fmt.Sprint(shard, slot, " ", path))
	for _, id := range []string{"", "17", "x.3.a", "17.32.a", "17.-1.a", "17.x.a", "99999999999.1.a"} {
		_, _, _, ok := parseEar(id)
		require.False(t, ok, id)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, &frame{kind: isMessage, from: node(1)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseFrame(b)
		if err != nil {
			require.ErrorIs(t, err, errFrame)
			return
		}
		again := appendFrame(nil, &m)
		if len(again) == len(b) { // a length may be written longer than it has to be
			require.Equal(t, b, again)
		}
	})
}

// Of a slot that goes, only its own keys go to others (PRT-4).
func TestChoose(t *testing.T) {
	all, count := []int{0, 1, 2, 3, 7}, map[int]int{}
	for i := range 10_000 {
		key := fmt.Sprint("key", i)
		slot := choose(key, all)
		count[slot]++
		if slot != 3 {
			require.Equal(t, slot, choose(key, []int{0, 1, 2, 7}))
		}
	}
	for _, slot := range all {
		require.InDelta(t, 2000, count[slot], 200)
	}
}
