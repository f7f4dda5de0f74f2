// Tests of Slot: each rule by example, and the whole against a model.

package flow

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

var (
	home1  = peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 1}
	home2  = peer.ID{Addr: peer.MustAddr("10.0.0.2:7355"), Inc: 2}
	fence1 = route.MakeFence(7, 1, 1)
	fence2 = route.MakeFence(7, 1, 2)
)

func parkOne(t require.TestingT, s *Slot, now time.Duration, id, payload string) {
	e := wire.Envelope{Type: 9, Shard: 3, Payload: []byte(payload)}
	require.NoError(t, s.Park(now, &e, id))
}

// drain takes everything that may be taken and returns the payloads.
func drain(t require.TestingT, s *Slot) (payloads []string) {
	for frame, ok := s.PeekParked(); ok; frame, ok = s.PeekParked() {
		var e wire.Envelope
		require.NoError(t, wire.ParseEnvelope(frame, &e))
		require.Equal(t, wire.FlagParked, e.Flags&wire.FlagParked)
		require.Equal(t, []uint32{s.Fence().Term(), s.Fence().Epoch()}, []uint32{e.Term, e.Epoch})
		payloads = append(payloads, string(e.Payload))
		s.PopParked()
	}
	return payloads
}

// TestSlotParksUntilResolvedThenDrainsInOrderThenOpens pins SHD-4.
func TestSlotParksUntilResolvedThenDrainsInOrderThenOpens(t *testing.T) {
	// SHD-4: messages are buffered up to a limit and delivered in order afterwards.
	pool := &Pool{Limit: 1 << 20}
	s := MakeSlot(NewParking(0, 0, 0, pool))
	require.Equal(t, Unknown, s.State())
	require.False(t, s.Want(), "nothing waits, nobody wants the home")
	parkOne(t, &s, 0, "a", "1")
	require.True(t, s.Want())
	require.Equal(t, Asking, s.State())
	require.False(t, s.Want(), "asked already")
	parkOne(t, &s, 0, "b", "2")
	_, ok := s.PeekParked()
	require.False(t, ok, "no home, nothing to drain")
	require.True(t, s.Resolve(false, home1, fence1))
	require.Equal(t, Draining, s.State())
	require.False(t, s.IsLocal())
	parkOne(t, &s, 0, "c", "3") // behind the others, not past them
	require.False(t, s.OpenIfDrained())
	require.Equal(t, []string{"1", "2", "3"}, drain(t, &s))
	require.True(t, s.OpenIfDrained())
	require.Equal(t, Remote, s.State())
	require.False(t, s.OpenIfDrained())
	e := wire.Envelope{}
	require.ErrorIs(t, s.Park(0, &e, "d"), ErrOpen)
	require.Zero(t, pool.Used())
	require.Equal(t, SlotStats{Parked: 3, Drained: 3}, s.Stats())
}

func TestSlotStampKeepsTheRestOfTheEnvelope(t *testing.T) {
	s := MakeSlot(NewParking(0, 0, 0, nil))
	in := wire.Envelope{Flags: wire.FlagAsk, Type: 1, Shard: 2, Term: 90, Epoch: 91, Corr: 77, Payload: []byte("pay")}
	require.NoError(t, s.Park(0, &in, "entity"))
	s.Resolve(true, home1, fence2)
	frame, ok := s.PeekParked()
	require.True(t, ok)
	var out wire.Envelope
	require.NoError(t, wire.ParseEnvelope(frame, &out))
	require.Equal(t, wire.Envelope{Flags: wire.FlagAsk | wire.FlagParked, Type: 1, Shard: 2, Term: 1, Epoch: 2, Corr: 77,
		ID: []byte("entity"), Payload: []byte("pay")}, out)
}

func TestSlotResolveWithoutWaitingOpensAtOnceAndRepeatsChangeNothing(t *testing.T) {
	s := MakeSlot(NewParking(0, 0, 0, nil))
	require.True(t, s.Resolve(true, home1, fence1))
	require.Equal(t, Local, s.State())
	require.True(t, s.IsLocal())
	require.False(t, s.Resolve(true, home1, fence1))
	require.True(t, s.Resolve(false, home2, fence2))
	require.Equal(t, Remote, s.State())
	require.Equal(t, home2, s.Home())
}

func TestSlotForgetOnlyUnderExactlyThatFence(t *testing.T) {
	for name, c := range map[string]struct {
		term, epoch uint32
		forgets     bool
	}{
		"same": {1, 2, true}, "older epoch": {1, 1, false}, "newer epoch": {1, 3, false}, "other term": {2, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := MakeSlot(NewParking(0, 0, 0, nil))
			s.Resolve(false, home1, fence2)
			require.Equal(t, c.forgets, s.Forget(c.term, c.epoch))
			require.Equal(t, c.forgets, s.State() == Unknown)
			require.Equal(t, c.forgets, s.Home().IsZero() && s.Fence().IsZero())
		})
	}
	s := MakeSlot(NewParking(0, 0, 0, nil))
	require.False(t, s.Forget(0, 0), "nothing is known, nothing is forgotten")
	require.False(t, s.Reset())
}

func TestSlotForgottenWhileDrainingKeepsWhatIsLeft(t *testing.T) {
	s := MakeSlot(NewParking(0, 0, 0, nil))
	parkOne(t, &s, 0, "a", "1")
	parkOne(t, &s, 0, "a", "2")
	require.True(t, s.Want())
	s.Resolve(false, home1, fence1)
	_, ok := s.PeekParked()
	require.True(t, ok)
	s.PopParked()
	require.True(t, s.Forget(1, 1))
	require.True(t, s.Want(), "what waits wants a home again")
	s.Resolve(false, home2, fence2)
	require.Equal(t, []string{"2"}, drain(t, &s))
}

func TestSlotBoundsAreTypedAndChangeNothing(t *testing.T) {
	e := wire.Envelope{Payload: make([]byte, 100)}
	cost := wire.SizeEnvelope(2, 100) + ParkOverhead
	for name, c := range map[string]struct {
		records, bytes, pool int
		fits                 int
		want                 route.ParkFullError
	}{
		"records": {3, 1 << 20, 1 << 20, 3, route.ParkFullError{Bound: "messages of the shard", Limit: 3}},
		"bytes":   {100, 4*cost - 1, 1 << 20, 3, route.ParkFullError{Bound: "bytes of the shard", Limit: 4*cost - 1}},
		"budget":  {100, 1 << 20, 2*cost + 5, 2, route.ParkFullError{Bound: "bytes of all shards", Limit: 2*cost + 5}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &Pool{Limit: c.pool}
			s := MakeSlot(NewParking(c.records, c.bytes, 0, pool))
			for range c.fits {
				require.NoError(t, s.Park(0, &e, "id"))
			}
			used := pool.Used()
			err := s.Park(0, &e, "id")
			require.ErrorIs(t, err, route.ErrParkFull)
			var full *route.ParkFullError
			require.ErrorAs(t, err, &full)
			require.Equal(t, c.want, *full)
			require.EqualError(t, err, fmt.Sprintf("kith: parking queue full: %d %s", c.want.Limit, c.want.Bound))
			records, bytes := s.Parked()
			require.Equal(t, []int{c.fits, c.fits * cost, used}, []int{records, bytes, pool.Used()})
			require.Zero(t, testing.AllocsPerRun(10, func() { _ = s.Park(0, &e, "id") }), "refusing is cheap")
			s.Resolve(true, home1, fence1)
			drain(t, &s)
			require.Zero(t, pool.Used())
		})
	}
}

// F-R2 of the reference, its exact values: there is room for three, nobody knows the home, and five come. The last two
// are refused, typed, in place of dropped; the first three go to the home in order, each with its sender (SHD-4).
func TestConformanceParking(t *testing.T) {
	s := MakeSlot(NewParking(3, 0, 0, &Pool{Limit: 1 << 20}))
	for i := range uint64(5) {
		e := wire.Envelope{Flags: wire.FlagAsk, Corr: 100 + i, Payload: strconv.AppendUint(nil, i+1, 10)}
		if err := s.Park(0, &e, "id"); i < 3 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, route.ErrParkFull)
		}
	}
	s.Resolve(false, home1, fence1)
	var got []string
	for frame, ok := s.PeekParked(); ok; frame, ok = s.PeekParked() {
		var e wire.Envelope
		require.NoError(t, wire.ParseEnvelope(frame, &e))
		got = append(got, fmt.Sprintf("%s of %d", e.Payload, e.Corr))
		s.PopParked()
	}
	require.Equal(t, []string{"1 of 100", "2 of 101", "3 of 102"}, got)
}

func TestSlotBudgetIsSharedBySlots(t *testing.T) {
	pool := &Pool{Limit: 200}
	p := NewParking(0, 0, 0, pool)
	a, b := MakeSlot(p), MakeSlot(p)
	parkOne(t, &a, 0, "x", string(make([]byte, 100)))
	e := wire.Envelope{Payload: make([]byte, 100)}
	require.ErrorIs(t, b.Park(0, &e, "x"), route.ErrParkFull)
	require.Equal(t, 1, a.FailAll(nil))
	require.NoError(t, b.Park(0, &e, "x"))
}

func TestSlotExpiresOnlyWhatWaitedTooLong(t *testing.T) {
	pool := &Pool{Limit: 1 << 20}
	s := MakeSlot(NewParking(0, 0, 10*time.Second, pool))
	_, ok := s.Next()
	require.False(t, ok)
	parkOne(t, &s, 1*time.Second, "a", "1")
	parkOne(t, &s, 3*time.Second, "a", "2")
	parkOne(t, &s, 2*time.Second, "a", "3") // a sender that read its clock before it got the lock
	next, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, 11*time.Second, next)
	var failed []string
	fail := func(frame []byte) {
		var e wire.Envelope
		require.NoError(t, wire.ParseEnvelope(frame, &e))
		failed = append(failed, string(e.Payload))
	}
	require.Zero(t, s.Expire(11*time.Second-1, fail))
	require.Equal(t, 1, s.Expire(11*time.Second, fail))
	require.Equal(t, 2, s.Expire(13*time.Second, fail))
	require.Equal(t, []string{"1", "2", "3"}, failed)
	require.Equal(t, SlotStats{Parked: 3, Expired: 3}, s.Stats())
	require.Zero(t, pool.Used())
	require.False(t, s.Want(), "nothing waits any more")
}

func TestSlotFailAllInOrder(t *testing.T) {
	s := MakeSlot(NewParking(0, 0, 0, nil))
	for i := range 5 {
		parkOne(t, &s, 0, "a", fmt.Sprint(i))
	}
	var failed []string
	n := s.FailAll(func(frame []byte) { failed = append(failed, string(frame[len(frame)-1:])) })
	require.Equal(t, 5, n)
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, failed)
	require.Equal(t, uint64(5), s.Stats().Failed)
	require.Zero(t, s.FailAll(nil))
}

// When all that waited for a home has been failed, the next message asks for it anew: the asker is the one that looks
// after its time limit (SHD-9).
func TestSlotAsksAnewWhenNobodyWaits(t *testing.T) {
	s := MakeSlot(NewParking(0, 0, time.Second, nil))
	for i := range 3 {
		now := time.Duration(i) * time.Minute
		parkOne(t, &s, now, "a", "1")
		require.True(t, s.Want())
		parkOne(t, &s, now+time.Millisecond, "a", "2")
		require.False(t, s.Want())
		require.Equal(t, 1, s.Expire(now+time.Second, nil))
		require.Equal(t, Asking, s.State(), "one waits still")
		if i == 1 {
			require.Equal(t, 1, s.FailAll(nil))
		} else {
			require.Equal(t, 1, s.Expire(now+2*time.Second, nil))
		}
		require.Equal(t, Unknown, s.State())
		require.False(t, s.Want(), "nothing waits")
	}
}

func TestStateNames(t *testing.T) {
	names := map[State]string{Unknown: "unknown", Asking: "asking", Local: "local", Remote: "remote",
		Draining: "draining", 9: "state-9"}
	for st, name := range names {
		require.Equal(t, name, st.String())
		require.Equal(t, st == Local || st == Remote, st.Open())
	}
}

// slotModel says what a slot must do, in the plainest way.
type slotModel struct {
	slot     Slot
	pool     *Pool
	now      time.Duration
	next     int
	waiting  []modelParked
	accepted int
	out      int
	resolved bool
	local    bool
	asked    bool
	settled  bool
	fence    route.Fence
	records  int
	bytes    int
}

type modelParked struct {
	number   int
	deadline time.Duration
	cost     int
}

const modelWait = 5 * time.Second

func (m *slotModel) park(t *rapid.T) {
	payload := fmt.Sprintf("%08d", m.next) + string(make([]byte, rapid.IntRange(0, 200).Draw(t, "size")))
	e := wire.Envelope{Payload: []byte(payload)}
	cost := wire.SizeEnvelope(1, len(payload)) + ParkOverhead
	held := 0
	for _, w := range m.waiting {
		held += w.cost
	}
	state := m.slot.State()
	err := m.slot.Park(m.now, &e, "x")
	require.Equal(t, state, m.slot.State())
	if m.settled {
		require.ErrorIs(t, err, ErrOpen)
		return
	}
	if len(m.waiting) >= m.records || held+cost > m.bytes || held+cost > m.pool.Limit {
		require.ErrorIs(t, err, route.ErrParkFull)
		return
	}
	require.NoError(t, err)
	m.waiting = append(m.waiting, modelParked{m.next, m.now + modelWait, cost})
	m.next++
	m.accepted++
}

func (m *slotModel) came(t *rapid.T, frame []byte) {
	var e wire.Envelope
	require.NoError(t, wire.ParseEnvelope(frame, &e))
	number := -1
	_, err := fmt.Sscanf(string(e.Payload[:8]), "%d", &number)
	require.NoError(t, err)
	require.NotEmpty(t, m.waiting, "a message was invented")
	require.Equal(t, m.waiting[0].number, number, "exactly once and in order")
	m.waiting = m.waiting[1:]
	m.asked = m.asked && len(m.waiting) > 0
	m.out++
}

func (m *slotModel) check(t *rapid.T) {
	records, _ := m.slot.Parked()
	require.Equal(t, len(m.waiting), records)
	require.Equal(t, m.accepted, m.out+len(m.waiting))
	held := 0
	for _, w := range m.waiting {
		held += w.cost
	}
	require.Equal(t, held, m.pool.Used())
	want := Unknown
	switch {
	case m.settled && m.local:
		want = Local
	case m.settled:
		want = Remote
	case m.resolved:
		want = Draining
	case m.asked:
		want = Asking
	}
	require.Equal(t, want, m.slot.State())
}

// TestSlotLaws drives a slot at random: every accepted message comes out exactly once and in order, or is failed; the
// slot is open only when nothing waits; budgets balance; the generation grows with every change and with nothing else.
func TestSlotLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &slotModel{
			records: rapid.IntRange(1, 20).Draw(t, "records"),
			bytes:   rapid.IntRange(50, 4000).Draw(t, "bytes"),
			pool:    &Pool{Limit: rapid.IntRange(50, 4000).Draw(t, "pool")},
		}
		m.slot = MakeSlot(NewParking(m.records, m.bytes, modelWait, m.pool))
		t.Repeat(map[string]func(*rapid.T){
			"":     m.check,
			"park": m.park,
			"want": func(t *rapid.T) {
				want := !m.resolved && !m.asked && len(m.waiting) > 0
				require.Equal(t, want, m.slot.Want())
				m.asked = m.asked || want
			},
			"resolve": func(t *rapid.T) {
				local, epoch := rapid.Bool().Draw(t, "local"), rapid.Uint32Range(1, 3).Draw(t, "epoch")
				f := route.MakeFence(7, 1, epoch)
				same := m.resolved && m.local == local && m.fence == f
				require.Equal(t, !same, m.slot.Resolve(local, home1, f))
				if !same {
					m.resolved, m.local, m.fence, m.settled = true, local, f, len(m.waiting) == 0
				}
			},
			"drain one": func(t *rapid.T) {
				frame, ok := m.slot.PeekParked()
				require.Equal(t, m.resolved && !m.settled && len(m.waiting) > 0, ok)
				if ok {
					m.came(t, frame)
					m.slot.PopParked()
				}
			},
			"settle": func(t *rapid.T) {
				settles := m.resolved && !m.settled && len(m.waiting) == 0
				require.Equal(t, settles, m.slot.OpenIfDrained())
				m.settled = m.settled || settles
			},
			"forget": func(t *rapid.T) {
				epoch := rapid.Uint32Range(1, 3).Draw(t, "epoch")
				forgets := m.resolved && m.fence.Epoch() == epoch
				require.Equal(t, forgets, m.slot.Forget(1, epoch))
				if forgets {
					m.resolved, m.settled, m.asked, m.fence = false, false, false, route.Fence{}
				}
			},
			"time": func(t *rapid.T) {
				m.now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
				due := 0
				for _, w := range m.waiting {
					if w.deadline <= m.now {
						due++
					}
				}
				require.Equal(t, due, m.slot.Expire(m.now, func(frame []byte) { m.came(t, frame) }))
			},
			"fail all": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
					t.Skip("rarely")
				}
				require.Equal(t, len(m.waiting), m.slot.FailAll(func(frame []byte) { m.came(t, frame) }))
			},
		})
	})
}

func BenchmarkSlotParkDrain(b *testing.B) {
	s := MakeSlot(NewParking(0, 0, 0, nil))
	e := wire.Envelope{Payload: make([]byte, 64)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%64 == 0 {
			s.Resolve(false, home1, fence1)
			for _, ok := s.PeekParked(); ok; _, ok = s.PeekParked() {
				s.PopParked()
			}
			s.Reset()
		}
		if s.Park(0, &e, "entity-000000001") != nil {
			b.Fatal("full")
		}
	}
}

// While the shard moves nothing that waits is failed, whenever it came; when that has ended its time begins anew, also
// behind a drain that stops for want of room.
func TestSlotExpiresNothingInAMove(t *testing.T) {
	const limit = time.Second
	s := MakeSlot(NewParking(0, 0, limit, nil))
	expires := func(at time.Duration) int { return s.Expire(at, nil) }
	require.True(t, s.Resolve(false, home1, fence1))
	s.Leave()
	require.Equal(t, Unknown, s.State())
	parkOne(t, &s, 0, "a", "1")
	require.True(t, s.Want())
	parkOne(t, &s, 8*limit, "a", "2")
	require.Zero(t, expires(9*limit))
	_, ok := s.Next()
	require.False(t, ok)
	require.True(t, s.Resolve(false, home2, fence2))
	require.Zero(t, expires(10*limit-1))
	require.Equal(t, []string{"1", "2"}, drain(t, &s))
	require.True(t, s.OpenIfDrained())

	s.Leave()
	parkOne(t, &s, 20*limit, "a", "3")
	require.Zero(t, expires(30*limit))
	s.Reset() // its owner is lost
	require.Zero(t, expires(31*limit-1))
	require.Equal(t, 1, expires(31*limit))
	parkOne(t, &s, 40*limit, "a", "4")
	require.Equal(t, 1, expires(41*limit), "of the move nothing is left")
}
