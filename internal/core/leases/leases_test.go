// Tests of leases: when an entity may live, and what becomes of a store that hangs, errs, forgets or answers late.

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

var cfg = Config{Timeout: 2 * time.Second, Renew: 5 * time.Second, Hold: 20 * time.Second, Backoff: time.Second}

func fence(n int) route.Fence { return route.MakeFence(1, 1, uint32(n)) }

// desk is a holder with calls that a test answers.
type desk struct {
	t   require.TestingT
	h   *Holder
	now time.Duration
	op  *Op // under way
	Effects
}

func newDesk(t require.TestingT) *desk { return &desk{t: t, h: New(cfg)} }

// took drains what the last verb has left.
func (d *desk) took() *desk {
	d.Effects = d.h.Drain()
	require.False(d.t, d.Permit && d.Withhold)
	require.Empty(d.t, d.h.Drain(), "Drain only hands over")
	if d.Op != nil {
		require.Nil(d.t, d.op, "two calls at a time")
		d.op = d.Op
	}
	return d
}

func (d *desk) begin(n int) *desk { d.h.Begin(d.now, fence(n)); return d.took() }
func (d *desk) end(n int) *desk   { d.h.End(d.now, fence(n)); return d.took() }

func (d *desk) answer(ok bool, err string) *desk {
	require.NotNil(d.t, d.op)
	id := d.op.ID
	d.op = nil
	d.h.Answer(d.now, Result{id, ok, err})
	return d.took()
}

// tick goes to the next deadline.
func (d *desk) tick() *desk {
	at, ok := d.h.Next()
	require.True(d.t, ok)
	d.now = max(d.now, at)
	d.h.Tick(d.now)
	return d.took()
}

// lost ticks until the lease is lost, which takes less than a hundred deadlines.
func (d *desk) lost() {
	for n := 0; !d.Withhold; n++ {
		require.Less(d.t, n, 100, "it is never lost")
		d.tick()
	}
}

// TestLeaseIsAskedFor: nothing may live before the store has said yes; a refusal is followed by another attempt, each
// time a longer rest later, at most Renew (SHD-12).
func TestLeaseIsAskedFor(t *testing.T) {
	d := newDesk(t).begin(1)
	require.Equal(t, Op{1, false, fence(1), cfg.Timeout}, *d.Op)
	require.False(t, d.Permit)
	require.Equal(t, Waits, d.h.Status().State)
	var rests []time.Duration
	for range 5 {
		d.answer(false, "")
		require.False(t, d.Permit)
		require.Equal(t, "another has it", d.h.Status().Why)
		was := d.now
		d.tick()
		rests = append(rests, d.now-was)
	}
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second},
		rests)
	d.answer(true, "")
	require.True(t, d.Permit)
	require.Equal(t, Held, d.h.Status().State)
	require.Equal(t, Counts{Acquired: 1, Refused: 5}, d.h.Status().Counts)
	was := d.now
	d.tick()
	require.Equal(t, cfg.Renew, d.now-was, "it is confirmed")
	d.answer(true, "")
	require.False(t, d.Permit || d.Withhold)
}

// TestLeaseIsLost: at once when another has it, and Hold after the last call that confirmed it was made, whatever the
// store does meanwhile.
func TestLeaseIsLost(t *testing.T) {
	held := func() *desk { return newDesk(t).begin(1).answer(true, "") }
	d := held().tick().answer(false, "")
	require.True(t, d.Withhold)
	require.Equal(t, Event{Lost, fence(1), "another has it"}, d.Events[0])

	d = held() // errors
	for d.tick(); d.Op != nil; d.tick() {
		d.answer(false, "store away")
		require.False(t, d.Withhold, "at %v", d.now)
		require.LessOrEqual(t, d.now, cfg.Hold)
	}
	require.True(t, d.Withhold)
	require.Equal(t, cfg.Hold, d.now)

	d = newDesk(t).begin(1) // an answer that took its time
	d.now = time.Second
	d.answer(true, "").tick()
	require.Equal(t, cfg.Renew, d.now)
	d.lost()
	require.Equal(t, cfg.Hold, d.now, "from when the call was made")

	d = held() // it hangs
	d.tick().lost()
	require.Equal(t, cfg.Hold, d.now)
	require.Contains(t, d.h.Status().Why, "Acquire has not returned")
	_, due := d.h.Next()
	require.False(t, due, "one call at a time, for ever")
	d.now += time.Hour
	d.answer(true, "")
	require.False(t, d.Permit, "an answer after its time counts as none")
	d.tick().answer(true, "")
	require.True(t, d.Permit)
}

// TestLeaseIsGivenBack: when nothing lives here any more, after the call that is under way; a caller that waits for
// that goes on then, or after Timeout. What fails is tried again.
func TestLeaseIsGivenBack(t *testing.T) {
	d := newDesk(t).begin(1).answer(true, "").end(1)
	require.Equal(t, Op{2, true, fence(1), cfg.Timeout}, *d.Op)
	require.Empty(t, d.Freed)
	d.answer(true, "")
	require.Equal(t, []route.Fence{fence(1)}, d.Freed)
	require.Equal(t, Unwanted, d.h.Status().State)
	require.Empty(t, d.h.Owed())

	d = newDesk(t).begin(1).end(1) // Acquire hangs
	require.Nil(t, d.Op)
	d.tick()
	require.Equal(t, []route.Fence{fence(1)}, d.Freed)
	require.Equal(t, cfg.Timeout, d.now)
	d.begin(2)
	require.Nil(t, d.Op)
	d.now += time.Minute
	d.answer(true, "")
	require.False(t, d.Permit, "that was for another owner")
	require.True(t, d.Op.Release, "which is to have nothing")
	d.answer(false, "store away")
	require.Equal(t, Op{3, false, fence(2), cfg.Timeout}, *d.Op)
	require.Equal(t, NotFreed, d.Events[0].Kind)
	d.answer(true, "")
	require.True(t, d.Permit)
	d.tick()
	require.True(t, d.Op.Release, "again")

	d = newDesk(t)
	d.h.End(0, fence(9))
	require.Equal(t, []route.Fence{fence(9)}, d.took().Freed, "nothing was asked for")
}

// TestLeasesToGiveBackAreBounded: a store that never takes one back costs a bounded list.
func TestLeasesToGiveBackAreBounded(t *testing.T) {
	d := newDesk(t)
	freed := 0
	for n := range 3 * maxGiven {
		d.begin(n + 1)
		for d.op == nil {
			d.tick()
		}
		for d.op.Release {
			d.answer(false, "no")
			freed += len(d.Freed)
			for d.op == nil {
				d.tick()
				freed += len(d.Freed)
			}
		}
		d.answer(false, "")
		freed += len(d.Freed)
		d.end(n + 1)
		freed += len(d.Freed)
	}
	require.LessOrEqual(t, len(d.h.Owed()), maxGiven)
	require.Positive(t, d.h.Status().Dropped)
	for d.op != nil {
		d.answer(false, "no")
		freed += len(d.Freed)
	}
	require.Equal(t, 3*maxGiven, freed, "each is told once")
}

// store is a lease with a time limit, as nodes see it that reach it slowly or not at all.
type store struct {
	owner route.Fence
	until time.Duration
}

func (s *store) acquire(now, limit time.Duration, f route.Fence) bool {
	if s.owner != f && !s.owner.IsZero() && now < s.until {
		return false
	}
	s.owner, s.until = f, now+limit
	return true
}

// flight is a call on its way: it takes effect, perhaps, and the answer comes, perhaps.
type flight struct {
	op          Op
	at, back    time.Duration
	lost, blind bool // it has no effect; its answer is lost: an error in its stead
	done, ok    bool
}

// TestLeaseLaws: of several nodes that use one store, with calls that are slow, late, lost or lose their answer, never
// two may live at once, be the goroutine that steps a holder stuck or not, provided that the store keeps a lease for
// Hold from when it was last given; and in the end, when all goes well, the one that wants it has it (SHD-12).
func TestLeaseLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now, fences := &store{}, time.Duration(0), 0
		const nodes = 3
		var desks [nodes]*desk
		var calls [nodes]*flight
		var lives [nodes]route.Fence // wants or has it
		var may [nodes]bool
		var guards [nodes]Guard
		var stuck [nodes]time.Duration // until when nobody steps its holder; the guard is looked at all the same
		for i := range desks {
			desks[i] = newDesk(t)
		}
		calm := false
		carry := func(i int) {
			d := desks[i]
			guards[i].Follow(d.h.Valid())
			if may[i] = (may[i] || d.Permit) && !d.Withhold; d.Op == nil {
				return
			}
			f := &flight{op: *d.Op, at: now + 5*time.Millisecond, back: now + 10*time.Millisecond}
			if !calm && rapid.IntRange(0, 2).Draw(t, "fate") == 0 {
				f.at = now + time.Duration(rapid.IntRange(0, 8000).Draw(t, "there"))*time.Millisecond
				f.back = f.at + time.Duration(rapid.IntRange(0, 8000).Draw(t, "back"))*time.Millisecond
				f.lost, f.blind = rapid.Bool().Draw(t, "lost"), rapid.Bool().Draw(t, "blind")
			}
			calls[i] = f
		}
		advance := func(d time.Duration) {
			for end := now + d; now < end; now += 25 * time.Millisecond {
				for i, c := range calls {
					if c != nil && !c.done && now >= c.at {
						c.done = true
						switch {
						case c.lost:
						case !c.op.Release:
							c.ok = s.acquire(now, cfg.Hold, c.op.Fence)
						case s.owner == c.op.Fence:
							s.owner = route.Fence{}
						}
					}
					if c != nil && now >= max(c.back, stuck[i]) {
						calls[i] = nil
						desks[i].now = now
						if c.lost || c.blind {
							desks[i].answer(false, "no answer")
						} else {
							desks[i].answer(c.ok || c.op.Release, "")
						}
						carry(i)
					}
				}
				living := 0
				for i, d := range desks {
					may[i] = !guards[i].Tick(now) && may[i]
					if at, ok := d.h.Next(); ok && at <= now && now >= stuck[i] {
						d.now = now
						d.h.Tick(now)
						d.took()
						carry(i)
					}
					if may[i] && !lives[i].IsZero() {
						living++
						require.Equal(t, lives[i], s.owner, "at %v it lives, and the store says otherwise", now)
					}
				}
				require.LessOrEqual(t, living, 1)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if i := rapid.IntRange(0, nodes-1).Draw(t, "node"); lives[i].IsZero() && now >= stuck[i] {
					fences++
					lives[i], may[i] = fence(fences), false
					desks[i].now = now
					desks[i].begin(fences)
					carry(i)
				}
			},
			"end": func(t *rapid.T) {
				if i := rapid.IntRange(0, nodes-1).Draw(t, "node"); !lives[i].IsZero() && now >= stuck[i] {
					desks[i].now = now
					desks[i].h.End(now, lives[i])
					lives[i], may[i] = route.Fence{}, false
					desks[i].took()
					carry(i)
				}
			},
			"stick": func(t *rapid.T) {
				i := rapid.IntRange(0, nodes-1).Draw(t, "node")
				stuck[i] = now + time.Duration(rapid.IntRange(0, 40000).Draw(t, "for"))*time.Millisecond
			},
			"time": func(t *rapid.T) {
				advance(time.Duration(rapid.IntRange(1, 6000).Draw(t, "ms")) * time.Millisecond)
			},
		})
		calm, stuck = true, [nodes]time.Duration{}
		wanted := false
		for _, f := range lives {
			wanted = wanted || !f.IsZero()
		}
		advance(2 * time.Minute)
		someone := false
		for _, m := range may {
			someone = someone || m
		}
		require.Equal(t, wanted, someone)
	})
}
