// Tests of disks that leave: others have what they have before they go, and without that they do not go.

package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// leaves has a disk begin to leave, and waits until none needs it.
func (c *cluster) leaves(i int) {
	c.t.Helper()
	require.NoError(c.t, c.sites[i].Do(c.now, LeaveCommand{On: true}))
	for range 60 {
		c.pass(time.Second)
		for j, s := range c.sites {
			if s != nil && j != i {
				require.NoError(c.t, s.Do(c.now, SpareCommand{}))
			}
		}
		if n, _ := c.sites[i].Needed(); n == 0 {
			return
		}
	}
	n, hopeless := c.sites[i].Needed()
	c.t.Fatalf("%d disks need it after a minute, hopeless %t", n, hopeless)
}

// replicas returns how many disks that stay have a key, and lack nothing of its group.
func (c *cluster) replicas(key string) (n int) {
	g, _ := place([]byte(key))
	for _, s := range c.sites {
		if s != nil && s.machine.holds(g) && len(s.machine.entry(&step{}, []byte(key))) > 0 {
			n++
		}
	}
	return n
}

// TestPlannedShrink: disks leave one after the other, 5 to 4 to 3, each as soon as none needs it, and ReplaceAfter is
// an hour. What was on N disks is on N that stay in the moment in which the disk goes, and what was on it alone is on
// another one; requests go on meanwhile, those of the node that leaves too (DYN-1, DYN-4).
func TestPlannedShrink(t *testing.T) {
	for _, cfg := range []Config{{}, {Mode: Register}, {R: 3, W: 1, MaxHints: 1}} {
		t.Run(fmt.Sprint(cfg.Mode, cfg.R, cfg.W), func(t *testing.T) {
			cfg.ReplaceAfter = time.Hour
			c := newCluster(t, cfg, 5)
			c.pass(20 * time.Second)
			c.whole(5)
			n, keys := 0, map[string]int{} // on how many disks each is
			write := func(from int) {
				for range 15 {
					for g := -1; g < 0 || c.cut[from] && !c.sites[from].machine.holds(uint8(g)); n++ {
						at, _ := place(fmt.Append(nil, "key", n+1))
						g = int(at)
					}
					require.NoError(t, c.put(from, fmt.Sprint("key", n)).Err)
					if keys[fmt.Sprint("key", n)] = 3; c.cut[from] {
						keys[fmt.Sprint("key", n)] = 1
					}
				}
			}
			write(0)
			if cfg.W == 1 { // on the disk of one alone
				c.cut[4] = true
				write(4)
			}
			c.cut[4] = false
			for left := 4; left >= 3; left-- {
				require.NoError(t, c.sites[left].Do(c.now, LeaveCommand{On: true}))
				if left == 3 {
					c.pass(5 * time.Second)
					write(left)
				}
				c.leaves(left)
				c.sites[left] = nil
				for key, least := range keys { // in any order
					require.GreaterOrEqual(t, c.replicas(key), least, "%s, when %d are left", key, left)
				}
				c.pass(5 * time.Second)
				c.whole(left)
			}
			c.pass(30 * time.Second)
			for key := range keys { // in any order
				require.Equal(t, []string{key}, c.get(2, key))
				require.Equal(t, 3, c.replicas(key))
			}
		})
	}
}

// TestLeaveIsTakenBack: a disk that stays after all, or on which a process starts again, reads what it has missed
// before it counts, whether the others had let it go or not (DYN-1).
func TestLeaveIsTakenBack(t *testing.T) {
	for _, spared := range []bool{false, true} {
		for _, starts := range []bool{false, true} {
			t.Run(fmt.Sprintf("spared=%t starts=%t", spared, starts), func(t *testing.T) {
				c := newCluster(t, Config{}, 4)
				c.pass(20 * time.Second)
				c.whole(4)
				if spared {
					c.leaves(3)
				} else {
					require.NoError(t, c.sites[3].Do(c.now, LeaveCommand{On: true}))
					c.pass(2 * time.Second)
				}
				for k := range 20 {
					require.NoError(t, c.put(0, fmt.Sprint("key", k)).Err)
				}
				require.Zero(t, c.sites[3].machine.ident.in)
				if starts {
					c.start(3)
				} else {
					require.NoError(t, c.sites[3].Do(c.now, LeaveCommand{}))
				}
				c.pass(30 * time.Second)
				c.whole(4)
				require.NotZero(t, c.sites[3].machine.ident.in)
				for _, s := range c.sites {
					require.Empty(t, s.given.Leaving)
					require.Empty(t, s.removed)
				}
				for k := range 20 {
					require.Equal(t, 3, c.replicas(fmt.Sprint("key", k)))
				}
			})
		}
	}
}

// TestLeaveWithoutOthers: of N disks none can take the place of another, and where one is away, what it was to hold is
// not on it: the disk that leaves hears how many need it still. One that ends all the same loses its places at once,
// and one that keeps silent does so after ReplaceAfter (DYN-1).
func TestLeaveWithoutOthers(t *testing.T) {
	c := newCluster(t, Config{ReplaceAfter: time.Hour}, 3)
	c.pass(20 * time.Second)
	require.NoError(t, c.sites[2].Do(c.now, LeaveCommand{On: true}))
	c.pass(5 * time.Second)
	n, hopeless := c.sites[2].Needed()
	require.Equal(t, 2, n)
	require.True(t, hopeless)
	require.NotZero(t, c.sites[2].machine.ident.in, "it holds what it held")
	require.NoError(t, c.put(0, "key").Err)
	c.add() // now there is one
	c.pass(20 * time.Second)
	c.cut[3] = true
	for range 10 {
		for i := range 2 {
			require.NoError(t, c.sites[i].Do(c.now, SpareCommand{}))
		}
		c.pass(2 * time.Second)
	}
	n, hopeless = c.sites[2].Needed()
	require.Equal(t, 1, n, "the one that is away")
	require.False(t, hopeless)
	c.sites[2], c.cut[3] = nil, false
	c.pass(20 * time.Second)
	c.whole(3)
	require.Equal(t, 3, c.replicas("key"))
}

// TestReplicaThatDoesNotStandInYet: a node that leaves reads from the one that takes its place, which may not have
// heard of that. It counts for no R then: what was written without it it does not have (DYN-4; seed 46 of plan leaves).
func TestReplicaThatDoesNotStandInYet(t *testing.T) {
	cfg := Config{Founding: true}
	var all peer.Set
	for i := range 4 {
		all.Add(peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i+1)), Inc: uint64(i + 1)})
	}
	m, err := Open(cfg, "c/s", all[3], Memory(), 1_800_000_000_000, rand.New(rand.NewPCG(1, 2)))
	require.NoError(t, err)
	require.NoError(t, m.Do(0, MembersCommand{All: all, Up: all}))
	in, out := false, false
	for i := range 100 {
		key := fmt.Append(nil, "key", i)
		g, _ := place(key)
		ask := message{kind: read, number: uint64(i + 1), key: key}
		require.NoError(t, m.Handle(0, all[0], ask.append(nil)))
		require.NoError(t, m.Sync())
		var e Effects
		m.Drain(&e)
		require.Len(t, e.Sends, 1)
		x, err := readMessage(e.Sends[0].Body, &m.cfg)
		require.NoError(t, err)
		mine := slices.Contains(m.groups[g], all[3])
		require.Equal(t, !mine, x.lacking)
		in, out = in || mine, out || !mine
	}
	require.True(t, in && out)
}
