// Tests of disks that leave: their shards are elsewhere, whole, before they go.

package records

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// first has a shard claimed at a node, and one record written.
func (w *world) first(node int, sh Shard) {
	c := w.claim(sh)
	c.node = node
	for _, want := range []string{"claim", "load", "commit"} {
		was := w.counts[want]
		if want == "commit" {
			w.commits(c, []Write{{New: true, Record: Record{ID: "a", Version: 1, State: []byte("v"), Nonce: [16]byte{1}}}})
		} else {
			w.acts(c)
		}
		w.run(w.now + time.Second)
		require.Equal(w.t, was+1, w.counts[want])
	}
	w.issued[fmt.Sprint(sh, "a", 1, "v")] = true
}

// left waits until a disk that leaves has lent nothing, and nobody cares for anything, and has it go.
func (w *world) goes(n *node) time.Duration {
	begun := w.now
	n.leaving = true
	w.members()
	for again := false; ; w.run(w.now + 20*time.Millisecond) {
		require.Less(w.t, w.now-begun, 20*time.Second, "%d lent", n.m.Lent())
		busy := n.m.Lent() > 0
		for _, x := range w.nodes {
			busy = busy || x != n && x.m != nil && x.m.Caring()
		}
		switch {
		case busy:
		case !again:
			again = true
			n.m.LendAgain()
		default:
			w.crash(n)
			n.removed, n.leaving = true, false
			w.lost.Add(n.id)
			w.members()
			return w.now - begun
		}
	}
}

// TestPlannedShrink: disks leave one right behind the other, 6 to 3, all that the shards began on among them. A shard
// with an owner, one that nobody owns, and one that was never used and that its host asked for have three disks that
// stay each time, which hold all of it; all are claimed in the end. That takes a few ReplaceAfter (DYN-1).
func TestPlannedShrink(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { shrinks(t, seed) })
	}
}

func shrinks(t *testing.T, seed uint64) {
	w := newWorld(t, plan{nodes: 6, members: 3, shards: 3, heals: true}, seed)
	owned, unowned, unused := Shard{"t", 0}, Shard{"t", 1}, Shard{"t", 2}
	w.first(5, unowned)
	w.clients = nil
	w.crash(w.nodes[5]) // its owner is gone
	w.start(w.nodes[5])
	w.members()
	w.first(1, owned)
	w.asks(5, unused)
	w.run(w.now + time.Second)
	for i := range 3 {
		require.Less(t, w.goes(w.nodes[i]), 10*w.cfg.ReplaceAfter)
		for _, sh := range []Shard{owned, unowned, unused} {
			holders := 0
			for _, n := range w.nodes {
				if n.m == nil {
					continue
				}
				h, err := n.m.peeked(sh)
				require.NoError(t, err)
				sets := h.current()
				if h.stamp.Number > sets.At && sets.Now.Has(n.id) {
					require.Len(t, sets.Now, 3)
					for _, id := range sets.Now {
						require.False(t, w.lost.Has(id), "%v of %v", id, sh)
					}
					holders++
				}
			}
			require.Equal(t, 3, holders, "of %v, when %d have left", sh, i+1)
		}
	}
	for i, sh := range []Shard{owned, unowned, unused} {
		c := w.claim(sh)
		c.node = 3
		for _, want := range []string{"claim", "load"} {
			was := w.counts[want]
			w.acts(c)
			w.run(w.now + time.Second)
			require.Equal(t, was+1, w.counts[want], "%v: %v", sh, w.counts)
		}
		require.Equal(t, uint64(1-i/2), c.knows["a"])
	}
	require.Empty(t, w.faults)
}

// TestOnlyDiskLeaves: where N is 1 no other disk knows of a shard: the one that leaves cares for it itself (DYN-1).
func TestOnlyDiskLeaves(t *testing.T) {
	w := newWorld(t, plan{nodes: 3, members: 1, shards: 1, heals: true}, 1)
	sh := Shard{"t", 0}
	w.first(2, sh)
	w.clients = nil
	w.crash(w.nodes[2])
	w.start(w.nodes[2])
	w.members()
	require.Less(t, w.goes(w.nodes[0]), 10*w.cfg.ReplaceAfter)
	c := w.claim(sh)
	c.node = 1
	for range 2 {
		w.acts(c)
		w.run(w.now + time.Second)
	}
	require.Equal(t, uint64(1), c.knows["a"])
	require.Empty(t, w.faults)
}

// TestDiskThatCannotLeave: where no other disk is left to take its place, what a disk has lent stays so (DYN-1).
func TestDiskThatCannotLeave(t *testing.T) {
	w := newWorld(t, plan{nodes: 3, members: 3, shards: 1, heals: true}, 1)
	w.first(2, Shard{"t", 0})
	w.nodes[0].leaving = true
	w.members()
	require.Equal(t, 1, w.nodes[0].m.Lent())
	w.run(w.now + 20*time.Second)
	require.Equal(t, 1, w.nodes[0].m.Lent())
	w.nodes[0].leaving = false
	w.members()
	require.Zero(t, w.nodes[0].m.Lent(), "it stays")
}

// TestLeaveBesideBystanders: nodes that hold something of a shard without being of its replicas keep no disk from
// leaving: one that an owner in haste has asked for a promise, and one that has left, and stays after all (DYN-1).
func TestLeaveBesideBystanders(t *testing.T) {
	begin := func(t *testing.T, shards int) (w *world) {
		w = newWorld(t, plan{nodes: 7, members: 3, shards: shards, heals: true}, 1)
		for i := range shards {
			w.first(6, Shard{"t", uint32(i)})
		}
		w.clients = nil
		w.crash(w.nodes[6]) // the owner
		w.start(w.nodes[6])
		w.members()
		return w
	}
	t.Run("promised", func(t *testing.T) {
		w := begin(t, 1)
		for _, n := range w.nodes[3:] {
			early := Ballot{route.MakeFence(1, 1, 0), 1, 1}
			w.forge(w.nodes[6].id, n.id, &message{kind: claim, shard: Shard{"t", 0}, ballot: early})
		}
		for i := range 3 {
			require.Less(t, w.goes(w.nodes[i]), 20*w.cfg.ReplaceAfter)
		}
		require.Empty(t, w.faults)
	})
	t.Run("was a replica", func(t *testing.T) {
		w := begin(t, 8) // node 0 gets some of them back in the place of node 1, and not others
		w.nodes[0].leaving = true
		w.members()
		w.run(w.now + 20*w.cfg.ReplaceAfter)
		require.Zero(t, w.nodes[0].m.Lent())
		w.nodes[0].leaving = false
		w.members()
		require.Less(t, w.goes(w.nodes[1]), 20*w.cfg.ReplaceAfter)
		require.Empty(t, w.faults)
	})
}

// leaver returns a world in which node 0 leaves, hears nobody, and would hear of a change of set at that number to the
// other three nodes, some of which are up.
func leaver(t *testing.T, sh Shard, at uint64, up int) (*world, Sets) {
	w := newWorld(t, plan{nodes: 4, members: 3, shards: 1, heals: true}, 1)
	w.first(3, sh)
	sets := Sets{At: at}
	for i, n := range w.nodes {
		w.cut[[2]int{0, i}], w.cut[[2]int{i, 0}] = true, true
		if i < 3 {
			sets.Prior.Add(n.id)
		}
		if i > 0 {
			sets.Now.Add(n.id)
		}
		if i > up {
			w.crash(n)
		}
	}
	w.nodes[0].leaving = true
	w.members()
	return w, sets
}

// TestLeaveIsDecided: a disk that leaves has lent a shard until all members without it that answer hold an entry behind
// the change of set, and a majority of them the same one, under one ballot. One of them alone may lose it; and of two
// entries under two ballots none may be decided (DYN-1; rule leave-is-decided of the model).
func TestLeaveIsDecided(t *testing.T) {
	sh, one, two := Shard{"t", 0}, Ballot{route.MakeFence(1, 1, 2), 1, 1}, Ballot{route.MakeFence(1, 1, 3), 1, 1}
	const at = 5 // the change
	for name, c := range map[string]struct {
		holds []Stamp // what those that answer hold, of the three members without it; the others are down
		goes  bool
	}{
		"all":         {[]Stamp{{one, at + 1, 7}, {one, at + 1, 7}, {one, at + 2, 8}}, true},
		"a majority":  {[]Stamp{{one, at + 1, 7}, {one, at + 1, 7}}, true},
		"one":         {[]Stamp{{one, at + 1, 7}, {one, at, 6}, {one, at, 6}}, false},
		"not all":     {[]Stamp{{one, at + 1, 7}, {one, at + 1, 7}, {one, at, 6}}, false},
		"two ballots": {[]Stamp{{one, at + 1, 7}, {two, at + 1, 9}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, sets := leaver(t, sh, at, len(c.holds))
			m := w.nodes[0].m
			for len(m.polls) == 0 {
				w.run(w.now + 20*time.Millisecond)
			}
			require.Equal(t, 1, m.Lent())
			for i, s := range c.holds {
				x := message{kind: answered, code: yes, shard: sh, number: m.polls[0].id, promise: s.Ballot, stamp: s, sets: sets}
				w.forge(w.nodes[i+1].id, m.ident.id, &x)
			}
			w.run(w.now + 10*time.Millisecond)
			_, elsewhere := m.carer.clean[sh]
			require.Equal(t, c.goes, elsewhere)
		})
	}
}

// lends has node 0 leave, which holds a shard that nobody owns, and returns the node that takes its place.
func (w *world) lends(sh Shard) (comes int) {
	w.first(6, sh)
	w.clients = nil
	w.crash(w.nodes[6]) // the owner
	w.start(w.nodes[6])
	w.nodes[0].leaving = true
	w.members()
	h, err := w.nodes[0].m.peeked(sh)
	require.NoError(w.t, err)
	was := h.current().Now
	for i, n := range w.nodes {
		if !was.Has(n.id) && replaced(sh, was, []peer.ID{w.nodes[0].id}, w.nodes[1].m.members).Has(n.id) {
			comes = i
		}
	}
	require.Positive(w.t, comes)
	return comes
}

// TestLeaveFeedsTheNewcomer: the one that takes the place of a disk that leaves is silent for longer than another node
// cares for the shard. When it is back the disk that leaves sees to it that it gets the history, and goes (DYN-1).
func TestLeaveFeedsTheNewcomer(t *testing.T) {
	w := newWorld(t, plan{nodes: 7, members: 3, shards: 1, heals: true}, 1)
	comes := w.lends(Shard{"t", 0})
	for i := range w.nodes {
		w.cut[[2]int{comes, i}], w.cut[[2]int{i, comes}] = true, true
	}
	w.run(w.now + 40*w.cfg.Timeout)
	require.Equal(t, 1, w.nodes[0].m.Lent())
	w.cut = map[[2]int]bool{}
	require.Less(t, w.goes(w.nodes[0]), 20*w.cfg.ReplaceAfter)
	require.Empty(t, w.faults)
}

// TestCareOutlivesATimeout: a node that cares for a shard goes on when the answers take longer than a request may
// (DYN-1).
func TestCareOutlivesATimeout(t *testing.T) {
	w := newWorld(t, plan{nodes: 7, members: 3, shards: 1, heals: true}, 1)
	w.lends(Shard{"t", 0})
	cares := -1
	for cares < 0 {
		w.run(w.now + time.Millisecond)
		cares = slices.IndexFunc(w.nodes, func(n *node) bool { return len(n.m.owners) > 0 })
	}
	for i := range w.nodes {
		w.cut[[2]int{cares, i}], w.cut[[2]int{i, cares}] = true, true
	}
	w.run(w.now + 2*w.cfg.Timeout)
	require.NotEmpty(t, w.nodes[cares].m.owners)
}

// TestCareYields: a node that cares for a shard leaves it to another one that claims it under the same fence, as its
// owner does, and makes no further attempt (DYN-1).
func TestCareYields(t *testing.T) {
	w := newWorld(t, plan{nodes: 7, members: 3, shards: 1, heals: true}, 1)
	w.lends(Shard{"t", 0})
	cares := -1
	for cares < 0 {
		w.run(w.now + time.Millisecond)
		cares = slices.IndexFunc(w.nodes, func(n *node) bool { return len(n.m.owners) > 0 })
	}
	m := w.nodes[cares].m
	o := m.owners[0]
	x := message{kind: promised, code: no, shard: o.shard, ballot: o.ballot, promise: o.ballot}
	x.promise.Attempt++
	for i := range w.nodes {
		w.cut[[2]int{cares, i}], w.cut[[2]int{i, cares}] = true, true
	}
	w.net = nil
	w.forge(w.nodes[1].id, m.ident.id, &x)
	w.run(w.now + w.cfg.Timeout/2)
	require.Empty(t, m.owners)
}

// TestLeaveKeepsOutOfTheWay: of three replicas one lacks what is behind the change of set. As long as an owner writes
// the disk that leaves claims nothing; where nothing changes any more it does (DYN-1).
func TestLeaveKeepsOutOfTheWay(t *testing.T) {
	const at = 5
	for _, writes := range []bool{true, false} {
		sh, ballot := Shard{"t", 0}, Ballot{route.MakeFence(1, 1, 2), 1, 1}
		w, sets := leaver(t, sh, at, 3)
		m, asked := w.nodes[0].m, uint64(0)
		for end := w.now + 12*w.cfg.ReplaceAfter; w.now < end; w.run(w.now + 20*time.Millisecond) {
			if len(m.polls) == 0 || m.polls[0].id == asked {
				continue
			}
			asked = m.polls[0].id
			newest := Stamp{ballot, at + 2, 7}
			if writes {
				newest.Number, newest.Chain = at+asked%1000+2, asked
			}
			for i, s := range []Stamp{newest, newest, {ballot, at, 6}} {
				x := message{kind: answered, code: yes, shard: sh, number: asked, stamp: s, sets: sets}
				x.promise = ballot
				w.forge(w.nodes[i+1].id, m.ident.id, &x)
			}
		}
		require.Equal(t, writes, m.Stats().Cared == 0)
	}
}
