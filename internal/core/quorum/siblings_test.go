// Tests of siblings: what no writer has read is replaced by nobody, whichever replicas a write reached.

package quorum

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// TestSiblingsOfOneReplica: a replica that got the second write of another one, and not the first, has both: the second
// brings it along. Else a reader there names both in its context, and replaces a value that nobody has read (DYN-2).
func TestSiblingsOfOneReplica(t *testing.T) {
	b := newBench(t, Config{R: 1, W: 1}, 3)
	only := func(i int) func(peer.ID, *message) bool {
		return func(to peer.ID, m *message) bool { return m.kind != write || to == b.ms[i].ID() }
	}
	b.keep = only(0) // the first write reaches its own replica alone
	require.NoError(t, b.put(0, "k", "first", nil).Err)
	b.keep = only(2)
	require.NoError(t, b.put(0, "k", "second", nil).Err)
	b.keep = func(to peer.ID, m *message) bool { return to == b.ms[2].ID() }
	o := b.get(2, "k")
	require.Equal(t, []string{"first", "second"}, datas(o))
	b.keep = nil
	require.NoError(t, b.put(2, "k", "third", o.Context).Err)
	b.pass(10 * time.Second)
	for i := range b.ms {
		require.Equal(t, []string{"third"}, b.of(i, "k"), "replica %d", i)
	}
}

// TestPutReturnsWhatThereIs: the outcome of a write has all that its key has at the replica that made it, so that the
// context covers nothing that the caller was not given (DYN-4).
func TestPutReturnsWhatThereIs(t *testing.T) {
	b := newBench(t, Config{N: 2}, 3)
	key := ""
	for k := 0; key == ""; k++ { // node 2 holds no replica of it
		if g, _ := place(fmt.Append(nil, k)); !contains(b.ms[2].groups[g], b.ms[2].ID()) {
			key = fmt.Sprint(k)
		}
	}
	for _, i := range []int{0, 2} { // one that holds a replica, and one that does not
		o := b.put(i, key, fmt.Sprint("a", i), b.get(i, key).Context)
		require.NoError(t, o.Err)
		require.Equal(t, []string{fmt.Sprint("a", i)}, datas(o))
		require.Equal(t, o.Context, o.Own.Version())
		next := b.put(i, key, fmt.Sprint("b", i), nil)
		require.ElementsMatch(t, []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}, datas(next))
		require.Equal(t, fmt.Sprint("b", i), string(next.Own.Data))
		require.NotEqual(t, b.ms[2].ID(), next.Own.By, "a replica of the key makes the change")
		require.NoError(t, b.put(i, key, fmt.Sprint("c", i), next.Context).Err)
		require.Equal(t, []string{fmt.Sprint("c", i)}, datas(b.get(1, key)))
	}
	require.Zero(t, b.ms[2].Stats().Requests)
}

func contains(list []peer.ID, id peer.ID) bool {
	for _, x := range list {
		if x == id {
			return true
		}
	}
	return false
}

// TestAnotherReplicaMakesTheChange: a replica with a disk that refuses, that lacks what others hold or does not answer
// makes no change; the next one does, and when none can the caller hears why (DYN-3).
func TestAnotherReplicaMakesTheChange(t *testing.T) {
	b := newBench(t, Config{}, 3)
	b.disks[0].Room = 1
	require.NoError(t, b.ms[0].Do(0, PutCommand{Number: number(), Key: []byte("k"), Data: []byte("v")}))
	require.ErrorIs(t, b.ms[0].Sync(), ErrFull)
	b.disks[0].Room = 0
	b.done = nil
	b.carry()
	require.Len(t, b.done, 1)
	require.NoError(t, b.done[0].Err)
	require.NotEqual(t, b.ms[0].ID(), b.done[0].Own.By)
	require.Len(t, b.of(1, "k"), 1)

	for _, m := range b.ms {
		m.ident.lacking = everyone
	}
	require.ErrorIs(t, b.put(0, "k", "w", nil).Err, ErrUnable)
	b.ms[1].ident.lacking, b.ms[2].ident.lacking = 0, 0
	first := peer.ID{}
	b.keep = func(to peer.ID, m *message) bool { // the one that is asked first never hears of it
		if m.kind == lead && first.IsZero() {
			first = to
		}
		return m.kind != lead || to != first
	}
	o := b.put(0, "l", "w", nil)
	require.NoError(t, o.Err)
	require.NotEqual(t, first, o.Own.By)
	require.Equal(t, []string{"w"}, datas(b.get(1, "l")))
}

// TestHistoriesOfSiblings draws histories of three replicas in which a write and what it is sent with reach some of
// them, and readers read one. What a writer has not read stays, whichever order they hear of it in (DYN-2). A write
// that is sent alone fails this: that is the history which TestVersions found.
func TestHistoriesOfSiblings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var at [3]Entry
		var seq [3]uint64
		var all Entry
		read := map[change]map[change]bool{} // by change: all that its writer had read, and those writers
		for range rapid.IntRange(1, 10).Draw(t, "n") {
			by := rapid.IntRange(0, 2).Draw(t, "by")
			seq[by]++
			v := Versioned{By: id(by, 1), Seq: seq[by]}
			knows := map[change]bool{}
			if from := rapid.IntRange(-1, 2).Draw(t, "read at"); from >= 0 {
				v.Past = at[from].Context()
				for i := range at[from] {
					c := change{at[from][i].By, at[from][i].Seq}
					knows[c] = true
					for older := range read[c] {
						knows[older] = true
					}
				}
			}
			v.seal()
			read[change{v.By, v.Seq}] = knows
			all = append(all, v)
			at[by], _ = at[by].Merge(Entry{v}, Siblings)
			for to := range at {
				if rapid.Bool().Draw(t, "arrives") {
					at[to], _ = at[to].Merge(at[by], Siblings)
				}
			}
		}
		one, _ := at[0].Merge(at[1], Siblings)
		one, _ = one.Merge(at[2], Siblings)
		other, _ := at[2].Merge(at[1], Siblings)
		other, _ = other.Merge(at[0], Siblings)
		require.Equal(t, one, other)
		for i := range all {
			c := change{all[i].By, all[i].Seq}
			replaced := false
			for _, knows := range read {
				replaced = replaced || knows[c]
			}
			require.Equal(t, !replaced, has(one, c), "%v", c)
		}
	})
}

func has(e Entry, c change) bool {
	for i := range e {
		if e[i].By == c.by && e[i].Seq == c.seq {
			return true
		}
	}
	return false
}

// TestContextOfAnotherReplica: a context with a change that its replica never made is refused by that replica.
func TestContextOfAnotherReplica(t *testing.T) {
	b := newBench(t, Config{N: 1}, 2)
	g, _ := place([]byte("k"))
	there := 0
	if b.ms[1].ID() == b.ms[0].groups[g][0] {
		there = 1
	}
	c := gossip.Clock{{ID: b.ms[there].ID(), N: 9}}
	require.ErrorIs(t, b.put(1-there, "k", "v", c).Err, ErrContext)
	require.Empty(t, b.get(0, "k").Entry)
}
