// Tests of disks that go for good: one after the other, and most of those of a key at once.

package quorum

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// TestDisksThatLeaveForGood: nodes are taken away for good, each when those that stay lack nothing: what was
// acknowledged is on W of those that stay each time, and is read when three of six are left (DYN-1, DYN-4).
func TestDisksThatLeaveForGood(t *testing.T) {
	for _, mode := range []Mode{Siblings, Register} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			c := newCluster(t, Config{Mode: mode, ReplaceAfter: 10 * time.Second}, 6)
			c.pass(20 * time.Second)
			c.whole(6)
			n := 0
			write := func(from int) {
				for range 20 {
					require.NoError(t, c.put(from, fmt.Sprint("key", n)).Err)
					n++
				}
			}
			write(0)
			for left := 5; left >= 3; left-- {
				c.sites[left] = nil
				write(1) // while the disk is away: its places are not given to others yet
				c.pass(30 * time.Second)
				c.whole(left)
				least := left
				for k := range n {
					have := 0
					for _, l := range c.look(0, fmt.Sprint("key", k)).Looks {
						require.True(t, l.Answered && !l.Lacking, "%+v", l)
						if len(l.Entry) > 0 {
							have++
						}
					}
					least = min(least, have)
				}
				require.GreaterOrEqual(t, least, 2, "replicas of a key, when %d are left", left)
			}
			for k := range n {
				require.Equal(t, []string{fmt.Sprint("key", k)}, c.get(2, fmt.Sprint("key", k)))
			}
		})
	}
}

// TestMostDisksOfAKeyAreGone: two of the three disks of each key are lost at once. Requests fail and say how many
// replicas answered; a look shows what the one that is left has. Empty disks in the places of the lost ones read what
// there is, from all others, and all is served again; a key that only the lost disks had is not there (DYN-1, DYN-4).
func TestMostDisksOfAKeyAreGone(t *testing.T) {
	c := newCluster(t, Config{ReplaceAfter: 10 * time.Minute}, 3)
	c.pass(20 * time.Second)
	c.whole(3)
	for k := range 20 {
		require.NoError(t, c.put(0, fmt.Sprint("key", k)).Err)
	}
	c.cut[0] = true
	c.pass(2 * time.Second)
	require.NoError(t, c.put(1, "lost").Err) // on the disks of two that are lost next
	c.sites[1], c.sites[2] = nil, nil
	c.cut[0] = false
	c.pass(2 * time.Second)
	for _, command := range []Command{GetCommand{Number: number(), Key: []byte("key1")},
		PutCommand{Number: number(), Key: []byte("key1"), Data: []byte("x")}} {
		o := c.do(0, command)
		require.ErrorIs(t, o.Err, ErrTimeout)
		require.Equal(t, []int{1, 2}, []int{o.Have, o.Need})
	}
	answered := 0
	for _, l := range c.look(0, "key1").Looks {
		if l.Answered {
			answered++
			require.False(t, l.Lacking)
			require.NotEmpty(t, l.Entry)
		}
	}
	require.Equal(t, 1, answered)
	for _, i := range []int{1, 2} { // the way out: the same addresses, with empty disks
		c.disks[i] = Memory()
		c.start(i)
	}
	c.pass(30 * time.Second)
	c.whole(3)
	for k := range 20 {
		require.Contains(t, c.get(k%3, fmt.Sprint("key", k)), fmt.Sprint("key", k))
	}
	require.Empty(t, c.get(1, "lost"))
	require.NoError(t, c.put(2, "lost").Err)
	require.Equal(t, []string{"lost"}, c.get(0, "lost"))
}

// TestSilentReplicaTakesNoRoom: with one replica silent more requests go through within a timeout than may be under way
// at once: those that have their outcome, and wait for its late answer alone, make room. What it has missed it gets by
// hints (DYN-4).
func TestSilentReplicaTakesNoRoom(t *testing.T) {
	for _, mode := range []Mode{Siblings, Register} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			b := newBench(t, Config{Mode: mode, MaxRequests: 8}, 3)
			b.keep = func(to peer.ID, _ *message) bool { return to == b.ms[0].ID() || to == b.ms[1].ID() }
			for k := range 40 { // no time passes
				key := fmt.Sprint("key", k)
				require.NoError(t, b.put(k%2, key, "v", nil).Err, key)
				require.Equal(t, []string{"v"}, datas(b.get(k%2, key)))
			}
			require.LessOrEqual(t, len(b.ms[0].requests), 8)
			require.Positive(t, len(b.ms[0].hints)+len(b.ms[1].hints))
			b.keep = nil
			b.pass(20 * time.Second)
			for k := range 40 {
				require.Equal(t, []string{"v"}, b.of(2, fmt.Sprint("key", k)))
			}
			for range 8 { // those that have no outcome yet make none
				require.NoError(t, b.ms[0].Do(b.now, GetCommand{Number: number(), Key: []byte("key1")}))
			}
			require.ErrorIs(t, b.ms[0].Do(b.now, GetCommand{Number: number(), Key: []byte("key1")}), ErrBusy)
		})
	}
}
