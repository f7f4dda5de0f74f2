// What the loss of one disk of very many costs: bytes and time, counted in a simulation without faults beside it.

package records

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// event is a message that arrives, or, without one, a node that is to be ticked.
type event struct {
	at   time.Duration
	n    uint64 // of two at one time the first one
	to   int
	from peer.ID
	body []byte
}

// events is a heap of them by time.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push adds one.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop takes the last one.
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// crowd is very many disks, one millisecond from each other.
type crowd struct {
	t        *testing.T
	now      time.Duration
	ms       []*Machine // nil: lost
	at       map[peer.ID]int
	wakes    []time.Duration
	queue    events
	n        uint64
	messages int
	bytes    int
	kinds    map[kind]int // bytes
	failed   int
	done     int
}

// step has a node have on disk what came, and send.
func (c *crowd) step(i int) {
	m := c.ms[i]
	require.NoError(c.t, m.Sync())
	var e Effects
	m.Drain(&e)
	for _, x := range e.Sends {
		c.messages, c.bytes = c.messages+1, c.bytes+len(x.Body)
		c.kinds[kind(x.Body[0])] += len(x.Body)
		if to, ok := c.at[x.To]; ok && c.ms[to] != nil {
			c.n++
			heap.Push(&c.queue, event{c.now + time.Millisecond, c.n, to, m.ID(), x.Body})
		}
	}
	for _, o := range e.Done {
		if c.done++; o.Err != nil {
			c.failed++
		}
	}
	if at, ok := m.Next(); ok && (c.wakes[i] <= c.now || at < c.wakes[i]) {
		c.n++
		c.wakes[i] = max(at, c.now)
		heap.Push(&c.queue, event{c.wakes[i], c.n, i, peer.ID{}, nil})
	}
}

// run goes on until then.
func (c *crowd) run(until time.Duration) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := heap.Pop(&c.queue).(event)
		c.now = e.at
		m := c.ms[e.to]
		switch {
		case m == nil:
			continue
		case e.body != nil:
			require.NoError(c.t, m.Handle(c.now, e.from, e.body))
		default:
			m.Tick(c.now)
		}
		c.step(e.to)
	}
	c.now = until
}

// do gives a node a command.
func (c *crowd) do(i int, cmd Command) {
	require.NoError(c.t, c.ms[i].Do(c.now, cmd))
	c.step(i)
}

// members gives all nodes the disks.
func (c *crowd) members(all, up peer.Set) {
	for i, m := range c.ms {
		if m != nil {
			c.do(i, MembersCommand{all, up})
		}
	}
}

// lacks counts the places of shards that a disk has not got, or without the history of the one that has the newest.
func (c *crowd) lacks(shards int, gone peer.ID) (n int) {
	newest := map[Shard]*head{}
	for _, m := range c.ms {
		if m == nil {
			continue
		}
		for sh, h := range m.heads { // of each shard the newest one stays, in any order
			if best := newest[sh]; best == nil || h.stamp.newer(best.stamp) {
				newest[sh] = h
			}
		}
	}
	require.Len(c.t, newest, shards)
	for sh, best := range newest { // in any order: they are counted
		for _, id := range best.current().Now {
			if id == gone {
				n++
			} else if h := c.ms[c.at[id]].heads[sh]; h == nil || !h.stamp.same(best.stamp) {
				n++
			}
		}
	}
	return n
}

func shardNo(s int) Shard { return Shard{"t", uint32(s)} }

// newCrowd founds a store of groups on disks, and has each shard be owned by one node, with so many records of 512
// bytes.
func newCrowd(t *testing.T, disks, groups, shards, each int) *crowd {
	c := &crowd{t: t, at: map[peer.ID]int{}, wakes: make([]time.Duration, disks), kinds: map[kind]int{}}
	cfg := Config{ReplaceAfter: 5 * time.Second}
	var all peer.Set
	for i := range disks {
		id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.%d.%d:7000", i/250, i%250+1)), Inc: uint64(i) + 1}
		m, err := Open(cfg, "c/s", id, quorum.Memory(), rand.New(rand.NewPCG(uint64(i), 1)))
		require.NoError(t, err)
		c.ms, c.at[id] = append(c.ms, m), i
		all.Add(id)
	}
	f := FoundCommand{Store: 1}
	for g := range groups {
		at := g * disks / groups
		f.Groups = append(f.Groups, peer.SetOf(all[at], all[(at+1)%disks], all[(at+2)%disks]))
	}
	for i := range disks {
		c.do(i, f)
	}
	c.members(all, all)
	for s := range shards {
		i, sh, fence := c.owner(s), shardNo(s), route.MakeFence(1, 1, 1)
		c.do(i, ClaimCommand{1, sh, fence})
		var w []Write
		for k := range each {
			x := put(fmt.Sprint("record", k), 1)
			x.New, x.State = true, make([]byte, 512)
			w = append(w, x)
		}
		c.do(i, CommitCommand{2, sh, fence, w})
		c.run(c.now + 100*time.Microsecond)
	}
	c.run(c.now + 5*time.Second)
	require.Equal(t, 2*shards, c.done)
	require.Zero(t, c.failed)
	require.Zero(t, c.lacks(shards, peer.ID{}))
	return c
}

// owner draws the owner of a shard.
func (c *crowd) owner(s int) int { return int(xxhash.Sum64String(fmt.Sprint(s)) % uint64(len(c.ms))) }

// loses takes one disk away for good, and reports what it costs until each shard is on three disks again: of the shards
// that it owned nobody is the owner then, and free takes all others theirs.
func (c *crowd) loses(shards int, free bool) {
	lost := c.ms[3].ID()
	held := 0
	for _, h := range c.ms[3].heads { // in any order
		if h.current().Now.Has(lost) {
			held++
		}
	}
	owned := len(c.ms[3].owners)
	c.ms[3] = nil
	for _, m := range c.ms {
		if free && m != nil {
			m.owners, m.kept = nil, 0
		}
	}
	var all peer.Set
	for i := range c.ms {
		if c.ms[i] != nil {
			all.Add(c.ms[i].ID())
		}
	}
	idle := c.bytes
	c.run(c.now + 30*time.Second)
	idle = c.bytes - idle
	c.messages, c.bytes, c.kinds = 0, 0, map[kind]int{}
	began := c.now
	c.members(all, all)
	for c.lacks(shards, lost) > 0 && c.now < began+5*time.Minute {
		c.run(c.now + 100*time.Millisecond)
	}
	took := c.now - began
	require.Zero(c.t, c.lacks(shards, lost))
	require.Positive(c.t, held)
	cared := uint64(0)
	for _, m := range c.ms {
		if m != nil {
			cared += m.stats.Cared
		}
	}
	c.t.Logf("%d disks, %d shards: one disk, in %d sets, owner of %d: %d messages, %d bytes (%d in copies), %d changes "+
		"by carers, all on three disks after %.1f s; %d bytes in 30 s before the table changed", len(c.ms), shards, held,
		owned, c.messages, c.bytes, c.kinds[part], cared, took.Seconds(), idle)
}

// TestDiskOfMany: what the loss of one disk costs goes with what it held, and all that it held is on three disks again
// (DYN-1).
func TestDiskOfMany(t *testing.T) {
	for _, free := range []bool{false, true} {
		newCrowd(t, 50, 16, 200, 8).loses(200, free)
	}
}

// TestLongDiskOfAThousand is the same of 1,000 disks with 4,096 shards in 256 groups (DYN-1).
func TestLongDiskOfAThousand(t *testing.T) {
	long.Test(t)
	for _, free := range []bool{false, true} {
		newCrowd(t, 1000, 256, 4096, 8).loses(4096, free)
	}
}
