// Tests of the budget of all mailboxes: what shards hold of it beyond what waits in them.

package entity

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// sharing returns n Blocking shards of one budget, with handlers that do nothing.
func sharing(t require.TestingT, n, limit int) (list []*rig, pool *Pool) {
	pool = &Pool{Limit: limit}
	for range n {
		r := newRig(t, Blocking, alive, func(typ *Type) { typ.MailboxBytes = 16 << 10 })
		r.Shard, r.pool = NewShard(r.Type(), 7, testFence, r.f, pool), pool
		list = append(list, r)
	}
	return list, pool
}

// TestKeptEntitiesHoldLittle: entities that are kept alive run for as long as they live, and hold of the budget what
// their beginning counts, each in a shard of its own: not a block that nobody uses. Found by storm 1091, where eight of
// them held the budget of their node, so that it took no message (SHD-9, SHD-12).
func TestKeptEntitiesHoldLittle(t *testing.T) {
	list, pool := sharing(t, 9, 8*budgetBlock)
	for _, r := range list[:8] {
		KeepAlive(r.Shard, 0, &Keep{ID: func(route.ShardID) string { return "k" }}, context.Background)
		require.True(t, r.Ready().Begin(0))
	}
	require.Equal(t, 8*RecordOverhead, pool.Used())
	require.Equal(t, route.OK, list[8].deliver("a", "x", nil, 0))
}

// TestScarceBudgetIsNotHeldInVain: whatever waits in many shards and however long their handlers take, a sender that is
// refused because of the budget finds half of it, but for a block, taken by what waits; and nothing is held where
// nothing does.
func TestScarceBudgetIsNotHeldInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, pool := sharing(t, 40, rapid.IntRange(4*budgetBlock, 64*budgetBlock).Draw(t, "limit"))
		runs := make([]*Entity, len(list)) // those that stand in a handler, or before its first call
		waits := func() (n int) {
			for _, r := range list {
				n += r.Stats().QueuedBytes
			}
			return n
		}
		most := rapid.SampledFrom([]int{10, 300, 4000}).Draw(t, "most")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "shard")
			r := list[i]
			if e := runs[i]; e != nil && rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				for e.Work() {
				}
				runs[i] = nil
				if e.End(0) && e.Begin(0) {
					runs[i] = e
				}
				continue
			}
			payload := make([]byte, rapid.IntRange(0, most).Draw(t, "size"))
			why := r.deliver("a", string(payload), nil, 0)
			if why == route.BudgetFull {
				require.Greater(t, waits()+len(payload)+RecordOverhead, pool.Limit/2-budgetBlock)
			}
			require.LessOrEqual(t, pool.Used(), pool.Limit)
			if e := r.Ready(); e != nil && e.Begin(0) {
				runs[i] = e
			}
		}
		for i, r := range list {
			if e := runs[i]; e != nil {
				for ok := true; ok; ok = e.End(0) && e.Begin(0) {
					for e.Work() {
					}
				}
			}
			r.runAll()
		}
		require.Zero(t, pool.Used(), fmt.Sprint(waits()))
	})
}

// touched is a budget that counts how often shards come to it: it is a line of memory that all of a node's share.
type touched struct {
	Pool
	times int
}

func (b *touched) Take(n int) bool {
	b.times++
	return b.Pool.Take(n)
}

func (b *touched) Force(n int) {
	b.times++
	b.Pool.Force(n)
}

func (b *touched) Give(n int) {
	b.times++
	b.Pool.Give(n)
}

// TestBusyShardSeldomTouchesTheBudget: also for messages of senders that wait for room, and for those that were parked,
// which no bound refuses (CARD-3).
func TestBusyShardSeldomTouchesTheBudget(t *testing.T) {
	for name, m := range map[string]Message{
		"tell": {}, "tell that waits": {Sender: newPresser(t, 512)}, "parked": {Parked: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &touched{Pool: Pool{Limit: 1 << 20}}
			r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = 64 << 10 })
			r.Shard = NewShard(r.Type(), 7, testFence, r.f, b)
			m.Payload = make([]byte, 64)
			for i := range 100 {
				m.ID = fmt.Append(nil, i%10)
				require.Equal(t, route.OK, r.Deliver(0, &m))
			}
			require.LessOrEqual(t, b.times, 100*(64+RecordOverhead)/budgetBlock+1)
			r.runAll()
			require.Zero(t, b.Used())
		})
	}
}

// keeping is a budget that lets shards keep so many bytes.
type keeping struct {
	touched
	room, kept int
}

func (b *keeping) Keep(n int) bool {
	b.times++
	if b.kept+n > b.room {
		return false
	}
	b.kept += n
	return true
}

func (b *keeping) GiveUp(n int) { b.kept -= n }

// TestShardWithoutABacklogDoesNotTouchTheBudget: where each message is handled before the next one comes, a shard that
// may keep a block goes to the budget for the first message alone; it keeps one block, and none once it ends. One that
// may not keep a block holds nothing while nothing waits (CARD-3, SHD-9).
func TestShardWithoutABacklogDoesNotTouchTheBudget(t *testing.T) {
	for name, end := range map[string]func(*Shard){
		"stop":    func(s *Shard) { s.Stop(0, StopMoved) },
		"abandon": func(s *Shard) { s.Abandon() },
		"cut":     func(s *Shard) { Cut(s, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			b := &keeping{touched: touched{Pool: Pool{Limit: 1 << 20}}, room: budgetBlock}
			var list [2]*rig // the first may keep a block, for the second there is no room
			for i := range list {
				list[i] = newRig(t, Blocking)
				list[i].Shard = NewShard(list[i].Type(), 7, testFence, list[i].f, b)
				list[i].deliver("a", "x", nil, 0)
				list[i].runAll()
				require.Equal(t, budgetBlock, b.Used())
			}
			require.Equal(t, budgetBlock, b.kept)
			before := b.times
			for range 100 {
				require.Equal(t, route.OK, list[0].deliver("a", "x", nil, 0))
				list[0].runAll()
			}
			require.Equal(t, before, b.times)
			list[0].deliver("a", string(make([]byte, 2*budgetBlock)), nil, 0)
			list[0].runAll()
			require.Equal(t, budgetBlock, b.Used(), "more than a block is given back")
			end(list[0].Shard)
			require.Zero(t, b.kept)
			require.Zero(t, b.Used())
			list[0].runAll()
			require.Zero(t, b.Used())
		})
	}
}
