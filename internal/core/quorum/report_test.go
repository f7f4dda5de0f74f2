// Tests of what a store says of itself to an operator.

package quorum

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// look asks what the replicas of a key have.
func (c *cluster) look(i int, key string) Outcome {
	c.t.Helper()
	return c.do(i, LookCommand{Number: number(), Key: []byte(key)})
}

// TestLook: a look says of each replica whether it answers, lacks its group, is behind, and has hints that wait for it;
// it repairs nothing (DYN-2, OPS-1).
func TestLook(t *testing.T) {
	c := newCluster(t, Config{}, 3)
	c.pass(20 * time.Second)
	c.whole(3)
	require.NoError(t, c.put(0, "k").Err)
	o := c.look(1, "k")
	require.Len(t, o.Looks, 3)
	require.Len(t, o.Entry, 1)
	for _, l := range o.Looks {
		require.True(t, l.Up && l.Answered && !l.Lacking && !l.Behind, "%+v", l)
		require.Equal(t, "k", string(l.Entry[0].Data))
	}

	c.cut[2] = true
	require.NoError(t, c.put(0, "k").Err) // a sibling, which the third replica misses
	o = c.look(0, "k")
	require.Len(t, o.Entry, 2)
	for _, l := range o.Looks {
		away := l.Disk.Addr == c.ids[2].Addr
		require.Equal(t, !away, l.Answered)
		require.False(t, l.Behind)
		require.Equal(t, map[bool]int{true: 1}[away], l.Hints, "%+v", l)
	}
	for _, s := range c.sites[:2] { // hints and comparisons would repair it before it is looked at
		s.machine.hints = nil
		s.cfg.Round, s.machine.cfg.Round = time.Hour, time.Hour
		s.machine.roundAt = c.now + time.Hour
	}
	c.sites[2].machine.cfg.Round, c.sites[2].machine.roundAt = time.Hour, c.now+time.Hour
	delete(c.cut, 2)
	c.pass(time.Second)
	for range 2 {
		o = c.look(0, "k")
		for _, l := range o.Looks {
			require.Equal(t, l.Disk.Addr == c.ids[2].Addr, l.Behind, "%+v", l)
			require.True(t, l.Answered)
		}
	}
	require.Empty(t, c.sites[0].machine.requests)

	require.ErrorIs(t, c.sites[0].Do(c.now, LookCommand{Number: 1}), ErrTooLarge)
	long := LookCommand{Number: 1, Key: make([]byte, 2<<10)}
	require.ErrorIs(t, c.sites[0].Do(c.now, long), ErrTooLarge)
	alone := newCluster(t, Config{}, 1)
	require.ErrorIs(t, alone.sites[0].Do(0, LookCommand{Number: 1, Key: []byte("k")}), ErrNotFounded)
}

// TestReport: a report has all disks, what waits for each of them, and how far an empty disk is in reading what it
// lacks; before a store has begun it says so (DYN-1, OPS-1).
func TestReport(t *testing.T) {
	c := newCluster(t, Config{}, 3)
	r := c.sites[0].Report()
	require.False(t, r.Begun)
	require.Zero(t, r.Founders)
	c.pass(20 * time.Second)
	require.NoError(t, c.put(0, "k").Err)
	r = c.sites[0].Report()
	require.True(t, r.Begun)
	require.Equal(t, 3, r.Founders)
	require.Equal(t, Groups, r.Groups)
	require.Empty(t, r.Filling)
	require.Len(t, r.Disks, 3)

	c.sites[2] = nil
	require.NoError(t, c.put(0, "k").Err)
	r = c.sites[0].Report()
	for _, d := range r.Disks {
		away := d.Disk.Addr == c.ids[2].Addr
		require.Equal(t, away, d.Node.IsZero())
		require.Equal(t, !away, d.Up)
		require.Equal(t, Groups, d.Groups)
		require.Equal(t, map[bool]int{true: 1}[away], d.Hints)
		require.Equal(t, away, d.HintBytes > 0 && d.Away > 0, "%+v", d)
	}

	c.disks[2] = Memory()
	c.start(2)
	c.pass(time.Second) // it has met the others, and waits until no request knows its predecessor
	r = c.sites[2].Report()
	require.Len(t, r.Filling, Groups)
	require.Positive(t, r.Waits)
	require.Equal(t, Filling{Group: 0, Need: 2}, r.Filling[0])
	c.pass(time.Minute)
	r = c.sites[2].Report()
	require.Empty(t, r.Filling)
	require.Equal(t, 1, r.Stats.Keys)
	c.whole(3)
}

// TestEmptyDiskReadsOn: an empty disk reads one group after another as they come, sixteen at a time, and not sixteen a
// round: once it may begin, it is whole within a round (DYN-3).
func TestEmptyDiskReadsOn(t *testing.T) {
	c := newCluster(t, Config{}, 3)
	c.pass(20 * time.Second)
	for k := range 200 {
		require.NoError(t, c.put(0, fmt.Sprint("key", k)).Err)
	}
	c.disks[2] = Memory()
	c.start(2)
	c.pass(time.Second)
	waits := c.sites[2].Report().Waits
	require.Positive(t, waits)
	c.pass(waits - time.Second)
	require.Len(t, c.sites[2].Report().Filling, Groups, "no request is to be under way that knew the lost disk")
	c.pass(2 * time.Second)
	r := c.sites[2].Report()
	require.Empty(t, r.Filling)
	require.Equal(t, 200, r.Stats.Keys)
}

// TestEmptyDiskThatRefuses: a group counts as read only once what was read of it is on the disk (DYN-3).
func TestEmptyDiskThatRefuses(t *testing.T) {
	c := newCluster(t, Config{}, 3)
	c.pass(20 * time.Second)
	for k := range 50 {
		require.NoError(t, c.put(0, fmt.Sprint("key", k)).Err)
	}
	c.disks[2] = Memory()
	c.start(2)
	c.pass(2 * time.Second)
	m := c.sites[2].machine
	c.now = m.settled + time.Second
	once := func() bool {
		return slices.ContainsFunc(m.catching[:], func(x catching) bool { return len(x.whole) > 0 })
	}
	for i, s := range c.sites {
		s.Tick(c.now, wall+c.now.Milliseconds())
		c.carry(i, s)
	}
	for !once() { // until it has read a group from the first of two replicas
		for i, s := range c.sites {
			c.carry(i, s)
		}
	}
	c.full, c.disks[2].Room = true, c.disks[2].size+1
	for range 10 {
		for i, s := range c.sites {
			c.carry(i, s)
		}
	}
	require.Positive(t, m.stats.Failed)
	require.Len(t, c.sites[2].Report().Filling, Groups)
	c.full, c.disks[2].Room = false, 0
	c.pass(20 * time.Second)
	require.Empty(t, c.sites[2].Report().Filling)
	require.Equal(t, 50, c.sites[2].Report().Stats.Keys)
}
