// Tests of disks that leave: their shards are elsewhere, whole, before they go.

package records

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
