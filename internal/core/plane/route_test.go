// Tests of routes: what each word about a home makes of a slot in each state, the agenda, members removed a moment ago.

package plane

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

var (
	self  = peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 1}
	there = peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}
	other = peer.ID{Addr: peer.MustAddr("10.0.0.2:1"), Inc: 1}
)

// slotIn returns a slot in a state, in which n messages wait: none in an open one.
func slotIn(t require.TestingT, st flow.State, n int) *flow.Slot {
	s := flow.MakeSlot(flow.NewParking(0, 1<<16, time.Minute, nil))
	for range n {
		require.NoError(t, s.Park(0, &wire.Envelope{Type: 1, Shard: 2}, "a"))
	}
	if st == flow.Asking {
		s.Want()
	}
	if st >= flow.Local {
		s.Resolve(st == flow.Local, there, route.MakeFence(9, 3, 4))
	}
	require.Equal(t, st, s.State())
	return &s
}

// What the node says of a home, against every state of the slot: what the runtime does, and what the slot knows then.
func TestMove(t *testing.T) {
	f := route.MakeFence(9, 5, 6)
	for _, c := range []struct {
		name  string
		from  flow.State
		waits int
		home  Home
		next  Next
		state flow.State
	}{
		{"nobody knows, nothing waits", flow.Remote, 0, Home{}, Rest, flow.Unknown},
		{"nobody knows, what waits asks", flow.Draining, 1, Home{}, LookUp, flow.Asking},
		{"nobody knows: asked anew", flow.Asking, 1, Home{}, LookUp, flow.Asking},
		{"a home elsewhere", flow.Unknown, 0, Home{At: other, Fence: f}, Flush, flow.Remote},
		{"what waits goes first", flow.Asking, 2, Home{At: other, Fence: f}, Flush, flow.Draining},
		{"another home than before", flow.Remote, 0, Home{At: other, Fence: f}, Flush, flow.Remote},
		{"the home it is already", flow.Remote, 0, Home{At: there, Fence: route.MakeFence(9, 3, 4)}, Rest, flow.Remote},
		{"it drains there already", flow.Draining, 1, Home{At: there, Fence: route.MakeFence(9, 3, 4)}, Rest, flow.Draining},
		{"here", flow.Remote, 0, Home{At: self, Fence: f, Local: true}, Flush, flow.Local},
		{"here, but told to stop since", flow.Unknown, 0, Home{At: self, Fence: f, Local: true, Gone: true}, Rest,
			flow.Unknown},
		{"at a member that is forgotten", flow.Remote, 0, Home{At: other, Fence: f, Gone: true}, Forget, flow.Unknown},
		{"at one that is forgotten, and something waits", flow.Asking, 1, Home{At: other, Fence: f, Gone: true}, Forget,
			flow.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := slotIn(t, c.from, c.waits)
			require.Equal(t, c.next, Move(s, c.home))
			require.Equal(t, c.state, s.State())
			n, _ := s.Parked()
			require.Equal(t, c.waits, n, "nothing that waits is lost")
		})
	}
}

// A home that is gone is closed when the slot leads there, and only then; what waits is asked for either way (SHD-5).
func TestRehome(t *testing.T) {
	for _, st := range []flow.State{flow.Remote, flow.Draining} {
		waits := map[flow.State]int{flow.Remote: 0, flow.Draining: 1}[st]
		want := map[flow.State]Next{flow.Remote: Rest, flow.Draining: LookUp}[st]
		s := slotIn(t, st, waits)
		require.Equal(t, Rest, Rehome(s, other, 3, 4), "it leads elsewhere")
		require.Equal(t, Rest, Rehome(s, there, 3, 5), "under another fence")
		require.Equal(t, st, s.State())
		require.Equal(t, want, Rehome(s, there, 3, 4))
		require.Less(t, s.State(), flow.Local)
	}
	require.Equal(t, LookUp, Rehome(slotIn(t, flow.Unknown, 1), there, 3, 4), "a drain has closed it already")
	require.Equal(t, Rest, Rehome(slotIn(t, flow.Asking, 1), there, 3, 4), "it is asked for already")
	require.Equal(t, Rest, Rehome(slotIn(t, flow.Local, 0), there, 3, 4), "this node is never gone")
}

// Only a refusal by the node that the slot leads to, under its fence, for a reason that means a wrong home, counts.
func TestSlotDoubts(t *testing.T) {
	for _, st := range []flow.State{flow.Unknown, flow.Asking, flow.Local, flow.Remote, flow.Draining} {
		waits := 0
		if st == flow.Asking || st == flow.Draining {
			waits = 1
		}
		s := slotIn(t, st, waits)
		leads := st == flow.Remote || st == flow.Draining
		for why := range route.Reason(route.Reasons) {
			k := &RefusalKey{Term: 3, Epoch: 4, Reason: why}
			require.Equal(t, leads && WrongHome(why), Doubts(s, there, k), "%v %v", st, why)
			require.False(t, Doubts(s, other, k))
			require.False(t, Doubts(s, there, &RefusalKey{Term: 3, Epoch: 5, Reason: why}))
		}
	}
}

// The slot of a large message closes behind it; one with an unknown home asks once (SHD-4).
func TestParkAndHold(t *testing.T) {
	e := &wire.Envelope{Type: 1, Shard: 2}
	s := slotIn(t, flow.Unknown, 0)
	next, err := Park(s, 0, e, "a")
	require.NoError(t, err)
	require.Equal(t, LookUp, next)
	for range 2 {
		next, err = Hold(s, 0, e, "a")
		require.NoError(t, err)
		require.Equal(t, Rest, next, "it is asked for already")
	}
	open := slotIn(t, flow.Remote, 0)
	_, err = Park(open, 0, e, "a")
	require.ErrorIs(t, err, flow.ErrOpen)
	next, err = Hold(open, 0, e, "a")
	require.NoError(t, err)
	require.Equal(t, Flush, next)
	require.Equal(t, flow.Draining, open.State())
	full := flow.MakeSlot(flow.NewParking(1, 0, 0, nil))
	_, err = Hold(&full, 0, e, "a")
	require.NoError(t, err)
	next, err = Hold(&full, 0, e, "a")
	require.ErrorIs(t, err, route.ErrParkFull)
	require.Equal(t, Rest, next)
}

// What runs out of time is failed; a drain that had stopped at it may open the slot.
func TestExpire(t *testing.T) {
	for _, st := range []flow.State{flow.Asking, flow.Draining} {
		s, failed := slotIn(t, st, 2), 0
		next, watch := Expire(s, time.Minute-1, func([]byte) { failed++ })
		require.Equal(t, Rest, next)
		require.True(t, watch)
		require.Zero(t, failed)
		next, watch = Expire(s, time.Minute, func([]byte) { failed++ })
		require.Equal(t, st == flow.Draining, next == Flush)
		require.False(t, watch)
		require.Equal(t, 2, failed)
	}
}

// However homes come, go and are doubted, what waits is sent once, in order, or runs out of time; and a slot in which
// something waits is asked for, leads somewhere, or the runtime has been asked to forget its home.
func TestRouteLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot := flow.MakeSlot(flow.NewParking(0, 1<<16, time.Minute, nil))
		s, now, forgetting := &slot, time.Duration(0), false
		put, got := 0, -1
		step := func(frame []byte, e *wire.Envelope) Step {
			st := rapid.SampledFrom([]Step{Sent, Sent, Sent, NoRoom, NoHome}).Draw(t, "step")
			if st == Sent {
				require.Greater(t, int(e.Corr), got, "in order, and once")
				got = int(e.Corr)
			}
			return st
		}
		follow := func(next Next) {
			switch next {
			case Flush:
				if Drain(s, func(e *wire.Envelope, f []byte) Step { return step(f, e) }) == NoHome {
					forgetting = true
				}
			case Forget:
				forgetting = true
			}
		}
		home := func() Home {
			term := rapid.Uint32Range(1, 3).Draw(t, "term")
			at := rapid.SampledFrom([]peer.ID{there, other}).Draw(t, "at")
			return Home{At: at, Fence: route.MakeFence(9, term, 1), Gone: rapid.Bool().Draw(t, "gone")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"move":  func(*rapid.T) { follow(Move(s, home())) },
			"close": func(*rapid.T) { follow(Close(s)) },
			"rehome": func(*rapid.T) {
				h := home()
				follow(Rehome(s, h.At, h.Fence.Term(), 1))
				forgetting = false
			},
			"send": func(*rapid.T) {
				put++
				next, err := Hold(s, now, &wire.Envelope{Type: 1, Shard: 2, Corr: uint64(put)}, "a")
				require.NoError(t, err)
				follow(next)
			},
			"expire": func(*rapid.T) {
				now += time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second
				next, _ := Expire(s, now, func(f []byte) {
					var e wire.Envelope
					require.NoError(t, wire.ParseEnvelope(f, &e))
					require.Greater(t, int(e.Corr), got, "in order, and once")
					got = int(e.Corr)
				})
				follow(next)
			},
			"": func(*rapid.T) {
				n, _ := s.Parked()
				require.False(t, n > 0 && s.State().Open())
				require.False(t, n > 0 && s.State() == flow.Unknown && !forgetting, "nobody asks for what waits")
				if n == 0 {
					require.Equal(t, max(put, 0), max(got, 0), "none is missing")
				}
			},
		})
	})
}

// The agenda names a slot once, in order, when it is due, and is due at once while homes are wanted.
func TestAgenda(t *testing.T) {
	var a Agenda[int]
	_, some := a.Next()
	require.False(t, some)
	for _, k := range []int{3, 1, 3, 2} {
		a.Stall(100, k)
	}
	require.Equal(t, 3, a.Stalls())
	at, _ := a.Next()
	require.Equal(t, 100+RetryDrain, at)
	require.Empty(t, a.Stalled(at-1))
	require.Equal(t, []int{3, 1, 2}, a.Stalled(at))
	require.Empty(t, a.Stalled(at))
	at, _ = a.Next()
	require.Equal(t, 100+ScanParked, at)
	require.Equal(t, []int{3, 1, 2}, a.Waiting(at), "what is stalled waits, too")
	a.Stall(at, 7)
	a.Roomy()
	require.Equal(t, []int{7}, a.Stalled(0))
	a.Want(at, 9)
	at, _ = a.Next()
	require.Zero(t, at)
	require.Equal(t, []int{9}, a.Wanted())
	require.Empty(t, a.Wanted())
}

// A removed member is known for a while, and handed over once, in the order of their ends.
func TestRemoved(t *testing.T) {
	var r Removed
	r.Add(0, there, false)
	r.Add(time.Second, other, false)
	r.Add(time.Second, there, false)
	require.True(t, r.Has(there))
	require.False(t, r.Has(self))
	_, ok := r.Due(time.Second + ForgetAfter - 1)
	require.False(t, ok)
	var ids []peer.ID
	for id, ok := r.Due(time.Second + ForgetAfter); ok; id, ok = r.Due(time.Second + ForgetAfter) {
		ids = append(ids, id)
	}
	require.Equal(t, []peer.ID{other, there}, ids)
	require.False(t, slices.ContainsFunc(ids, r.Has))
	r.Add(0, there, false)
	r.Add(0, other, true)
	id, ok := r.Lost()
	require.True(t, ok)
	require.Equal(t, other, id)
	_, ok = r.Lost()
	require.False(t, ok, "the other one left")
	require.True(t, r.Has(there))
}

// A handler may ask its own shard while that lives here, also while what had parked goes first; not when it leaves.
func TestAsksItself(t *testing.T) {
	s := flow.MakeSlot(flow.NewParking(0, 0, 0, nil))
	require.Equal(t, route.ShardStopping, AsksItself(&s))
	_, err := Park(&s, 0, &wire.Envelope{Payload: []byte("x")}, "id")
	require.NoError(t, err)
	require.Equal(t, route.ShardStopping, AsksItself(&s))
	here := Home{At: peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}, Fence: route.MakeFence(1, 1, 1), Local: true}
	require.Equal(t, Flush, Move(&s, here))
	require.Equal(t, route.OK, AsksItself(&s))
	Close(&s)
	require.Equal(t, route.ShardStopping, AsksItself(&s))
}
