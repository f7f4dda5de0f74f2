// Tests of BulkSender, BulkReceiver and BulkRoom: each rule by example.

package flow

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

var bulkPeer = peer.ID{Addr: peer.MustAddr("h:1"), Inc: 5}

// bulkPair is both ends of a bulk connection without a network between them.
type bulkPair struct {
	t    require.TestingT
	now  time.Duration
	s    *BulkSender
	r    *BulkReceiver
	room *BulkRoom
	why  BulkEnd // what the receiver's runtime says to a begin
}

func newBulkPair(t require.TestingT, window, limit, room int) *bulkPair {
	p := &bulkPair{t: t, s: NewBulkSender(bulkPeer, 100, time.Second), room: &BulkRoom{Limit: room}}
	p.r = NewBulkReceiver(bulkPeer, 1, window, limit, time.Second, p.room)
	p.s.Connected(0, 1)
	return p
}

// send adds a transfer of n bytes, filled with its first byte.
func (p *bulkPair) send(n int, fill byte) *BulkTransfer {
	x := &BulkTransfer{Payload: bytes.Repeat([]byte{fill}, n)}
	require.NoError(p.t, p.s.Add(p.now, x))
	return x
}

// read gives one frame of the sender to the receiver and returns the number of the message that is whole with it.
func (p *bulkPair) read(frame []byte) (whole uint32) {
	body := wire.Body(frame)
	switch k := wire.ParseHeader(frame).Kind; k {
	case wire.KindBulkBegin:
		b, err := wire.ParseBulkBegin(body)
		require.NoError(p.t, err)
		require.NoError(p.t, p.r.Begin(p.now, b, p.why))
	case wire.KindBulkAbort:
		n, err := wire.ParseBulkNumber(k, body)
		require.NoError(p.t, err)
		require.NoError(p.t, p.r.Abort(n))
	case wire.KindBulkChunk:
		number, n, err := wire.ParseBulkChunk(frame)
		require.NoError(p.t, err)
		if want := p.r.Wants(number); want > 0 && n%2 == 0 {
			p.r.Provide(number, make([]byte, want))
		}
		dst, err := p.r.Chunk(number, n)
		require.NoError(p.t, err)
		if dst != nil {
			copy(dst, frame[wire.BulkChunkHead:])
		}
		if p.r.Filled(p.now, number, n) {
			return number
		}
	default:
		require.Fail(p.t, "a sender does not say "+k.String())
	}
	return 0
}

// bulkFrames splits what one end wrote.
func bulkFrames(t require.TestingT, b []byte) (list [][]byte) {
	for len(b) > 0 {
		frame, n, err := wire.Split(b, wire.LaneBulk, wire.MaxBulkFrame)
		require.NoError(t, err)
		require.NotZero(t, n)
		list = append(list, bytes.Clone(frame))
		b = b[n:]
	}
	return list
}

type bulkHeard struct {
	x     *BulkTransfer
	event BulkEvent
	end   BulkEnd
}

// pump carries frames to and fro until neither end has anything to say, and returns what the sender heard.
func (p *bulkPair) pump() (heard []bulkHeard) {
	for {
		out := p.s.Append(p.now, nil)
		back := p.r.AppendAnswers(nil)
		if len(out)+len(back) == 0 {
			return heard
		}
		for _, f := range bulkFrames(p.t, out) {
			p.read(f)
		}
		for _, f := range bulkFrames(p.t, back) {
			x, e, end, err := p.s.Handle(p.now, wire.ParseHeader(f).Kind, wire.Body(f))
			require.NoError(p.t, err)
			if e > BulkMayGo {
				heard = append(heard, bulkHeard{x, e, end})
			}
		}
	}
}

func TestBulkGoesOverInChunksAndIsTaken(t *testing.T) {
	p := newBulkPair(t, 250, 0, 5000)
	x := p.send(1001, 'a')
	require.Equal(t, []bulkHeard{{x, BulkIsWhole, BulkEnd{}}}, p.pump())
	require.True(t, x.Whole())
	require.Equal(t, wire.BulkRef{Generation: 1, Number: 1}, x.Ref())
	require.Equal(t, 1001, p.room.Used())
	_, payload, ok := p.r.Take(1)
	require.True(t, ok)
	require.Equal(t, x.Payload, payload)
	_, _, again := p.r.Take(1)
	require.False(t, again, "taken once")
	require.True(t, p.r.End(1, BulkEnd{}))
	require.False(t, p.r.End(1, BulkEnd{}))
	require.Equal(t, []bulkHeard{{x, BulkHasEnded, BulkEnd{Reason: route.OK}}}, p.pump())
	require.Equal(t, 1001, p.room.Used(), "the taker gives it back")
	require.True(t, p.s.Idle())
	require.Equal(t, stats.BulkSent{Bytes: 1001, Taken: 1}, p.s.Stats())
	require.Equal(t, stats.BulkReceived{Bytes: 1001, Taken: 1}, p.r.Stats())
}

func TestBulkReplyNeedsNoEnvelope(t *testing.T) {
	p := newBulkPair(t, 250, 0, 5000)
	x := &BulkTransfer{Begin: wire.BulkBegin{Reply: true, Corr: 7}, Payload: make([]byte, 400)}
	require.NoError(t, p.s.Add(0, x))
	require.Empty(t, p.pump(), "nobody is told before it was taken")
	b, _, ok := p.r.Take(1)
	require.True(t, ok)
	require.Equal(t, uint64(7), b.Corr)
	p.r.End(1, BulkEnd{})
	require.Equal(t, []bulkHeard{{x, BulkHasEnded, BulkEnd{Reason: route.OK}}}, p.pump())
}

func TestBulkRefusals(t *testing.T) {
	p := newBulkPair(t, 250, 300, 5000)
	p.why = BulkEnd{Reason: route.NotOwner}
	x := p.send(200, 1)
	require.Equal(t, []bulkHeard{{x, BulkHasEnded, BulkEnd{route.NotOwner, 0}}}, p.pump())
	p.why = BulkEnd{}
	x = p.send(301, 1)
	require.Equal(t, []bulkHeard{{x, BulkHasEnded, BulkEnd{route.TooLarge, 300}}}, p.pump())
	require.Zero(t, p.room.Used())
	x = p.send(300, 1)
	p.pump()
	p.r.End(3, BulkEnd{route.MailboxFull, 77})
	require.Equal(t, []bulkHeard{{x, BulkHasEnded, BulkEnd{route.MailboxFull, 77}}}, p.pump())
	require.Zero(t, p.room.Used(), "what was not taken is free")
	require.Equal(t, uint64(3), p.s.Stats().Refused)
}

func TestBulkRoomIsSharedInOrder(t *testing.T) {
	p := newBulkPair(t, 1000, 0, 1000)
	other := NewBulkReceiver(bulkPeer, 2, 1000, 0, time.Second, p.room)
	first, large, small := p.send(600, 1), p.send(900, 2), p.send(100, 3)
	require.Equal(t, []bulkHeard{{first, BulkIsWhole, BulkEnd{}}}, p.pump())
	require.NoError(t, other.Begin(0, wire.BulkBegin{Number: 1, Size: 10}, BulkEnd{}))
	require.Empty(t, other.AppendAnswers(nil), "whoever came first is first, however small the later one is")
	require.Equal(t, 3, p.room.Waiting())
	_, _, _, ok := p.room.Turn()
	require.False(t, ok)
	p.r.Take(1)
	p.room.Give(bulkPeer, 600)
	_, k, n, ok := p.room.Turn()
	require.True(t, ok)
	require.Equal(t, BulkKey{1, 2}, k)
	p.r.Admitted(0, k.Number, n)
	_, _, _, ok = p.room.Turn()
	require.False(t, ok, "100 bytes fit beside 900, and are beyond the share")
	require.Equal(t, []bulkHeard{{large, BulkIsWhole, BulkEnd{}}}, p.pump())
	p.r.Take(2)
	p.room.Give(bulkPeer, 900)
	_, k, n, ok = p.room.Turn()
	require.True(t, ok)
	p.r.Admitted(0, k.Number, n)
	require.Equal(t, []bulkHeard{{small, BulkIsWhole, BulkEnd{}}}, p.pump())
	require.NoError(t, other.Abort(1))
	require.Zero(t, p.room.Waiting(), "who gave up waits no more")
	p.r.Broken()
	require.Zero(t, p.room.Used())
}

func TestBulkAdmittedTooLateGivesTheRoomBack(t *testing.T) {
	p := newBulkPair(t, 1000, 0, 1000)
	p.send(1000, 1)
	p.send(500, 2)
	p.pump()
	p.r.End(1, BulkEnd{Reason: route.NotOwner})
	_, k, n, ok := p.room.Turn()
	require.True(t, ok)
	require.NoError(t, p.r.Abort(k.Number)) // after its turn was sent, and before it heard of it
	require.Equal(t, 500, p.room.Used())
	p.r.Admitted(0, k.Number, n)
	require.Zero(t, p.room.Used())
}

func TestBulkCancelBeforeDuringAndBehind(t *testing.T) {
	p := newBulkPair(t, 100, 0, 5000)
	for len(p.s.live) < MaxBulkActive {
		p.send(1000, 1)
		p.s.Append(0, nil)
	}
	waits := p.send(10, 2)
	require.True(t, p.s.Cancel(waits))
	require.False(t, p.s.Cancel(waits))
	p.s.Broken(nil)
	p = newBulkPair(t, 100, 0, 5000)
	x := p.send(1000, 1)
	for _, f := range bulkFrames(t, p.s.Append(0, nil)) {
		p.read(f)
	}
	require.Equal(t, 1000, p.room.Used())
	require.True(t, p.s.Cancel(x))
	require.Empty(t, p.pump(), "late grants for it are nothing to the runtime")
	require.Zero(t, p.room.Used())
	require.Zero(t, p.r.Underway())
	x = p.send(100, 1)
	p.pump()
	require.True(t, x.Whole())
	require.True(t, p.s.Cancel(x))
	p.pump()
	_, _, ok := p.r.Take(2)
	require.False(t, ok, "an envelope that comes now stands for nothing")
	require.Zero(t, p.room.Used())
	require.Equal(t, uint64(2), p.r.Stats().Aborted)
}

func TestBulkBrokenConnectionLosesWhatHadBegun(t *testing.T) {
	p := newBulkPair(t, 100, 0, 5000)
	var begun []*BulkTransfer
	for range MaxBulkActive {
		begun = append(begun, p.send(1000, 1))
	}
	waits := p.send(1000, 2)
	p.s.Append(0, nil)
	require.Equal(t, begun, p.s.Broken(nil))
	p.r.Broken()
	require.Empty(t, p.s.Append(0, nil), "no connection")
	p.r = NewBulkReceiver(bulkPeer, 2, 100, 0, time.Second, p.room)
	p.s.Connected(0, 2)
	require.Equal(t, []bulkHeard{{waits, BulkIsWhole, BulkEnd{}}}, p.pump())
	require.Equal(t, wire.BulkRef{Generation: 2, Number: 1}, waits.Ref())
	require.NoError(t, p.s.Add(0, begun[0]), "a transfer that is over may be sent again")
	require.Len(t, p.s.FailAll(nil), 2)
	require.True(t, p.s.Idle())
	require.Equal(t, uint64(MaxBulkActive+2), p.s.Stats().Lost)
}

func TestBulkStalls(t *testing.T) {
	p := newBulkPair(t, 100, 0, 1000)
	x := p.send(1000, 1)
	for _, f := range bulkFrames(t, p.s.Append(0, nil)) {
		p.read(f)
	}
	p.now = 999 * time.Millisecond
	p.r.Tick(p.now)
	require.Empty(t, p.s.Tick(p.now, nil))
	p.now = time.Second
	p.r.Tick(p.now)
	require.Zero(t, p.r.Underway(), "room is not held for a sender that says nothing")
	require.Zero(t, p.room.Used())
	require.Equal(t, []*BulkTransfer{x}, p.s.Tick(p.now, nil), "nor payloads for a receiver that does")
	require.Empty(t, p.pump(), "each end's word crosses the other's, which is nothing new")

	require.True(t, p.room.Take(bulkPeer, BulkKey{9, 9}, 1000))
	p.send(10, 1)
	p.pump()
	p.now += time.Hour
	p.r.Tick(p.now)
	require.Equal(t, 1, p.r.Underway(), "who waits for room holds none")
	p.room.Give(bulkPeer, 1000)
	_, _, n, ok := p.room.Turn()
	require.True(t, ok)
	p.r.Admitted(p.now, 2, n)
	require.Len(t, p.pump(), 1)
	p.now += 2*time.Second - 1
	p.r.Tick(p.now)
	require.Equal(t, 1, p.r.Underway(), "who is whole waits for its envelope, for two stall times")
	require.Empty(t, p.s.Tick(p.now, nil))

	p = newBulkPair(t, 100, 0, 1000)
	p.s.Broken(nil)
	x = p.send(10, 1)
	require.Empty(t, p.s.Tick(999*time.Millisecond, nil))
	require.Equal(t, []*BulkTransfer{x}, p.s.Tick(time.Second, nil), "no connection comes about")
	require.True(t, p.s.Idle())
}

func TestBulkQueueIsBounded(t *testing.T) {
	s := NewBulkSender(bulkPeer, 0, 0)
	for range MaxBulkQueued {
		require.NoError(t, s.Add(0, &BulkTransfer{Payload: []byte{1}}))
	}
	err := s.Add(0, &BulkTransfer{Payload: []byte{1}})
	require.ErrorIs(t, err, route.ErrLinkFull)
	require.Equal(t, &route.BulkFullError{Bound: "large messages", Limit: 1024, Peer: bulkPeer}, err)
	require.EqualError(t, err, "kith: link full: 1024 large messages wait to be sent to h:1#5")
}

func TestBulkSenderRefusesNonsense(t *testing.T) {
	answer := func(k wire.Kind, body []byte) func(*bulkPair) error {
		return func(p *bulkPair) error {
			_, _, _, err := p.s.Handle(0, k, body)
			return err
		}
	}
	grant := func(n, upTo uint32) func(*bulkPair) error {
		return answer(wire.KindBulkGrant, wire.AppendBulkGrant(nil, wire.BulkGrant{Number: n, Allowed: upTo}))
	}
	over := func(n uint32, status uint16) func(*bulkPair) error {
		return answer(wire.KindBulkOver, wire.AppendBulkOver(nil, wire.BulkOver{Number: n, Status: status}))
	}
	for name, say := range map[string]func(*bulkPair) error{
		"number zero": grant(0, 10), "never begun": grant(2, 10), "granted nothing": grant(1, 0),
		"granted more than there is": grant(1, 1001), "over with a reason nobody knows": over(1, 999),
		"taken before it was sent": over(1, 0), "whole before it was sent": answer(wire.KindBulkWhole,
			wire.AppendBulkNumber(nil, 1)),
		"no answer":    answer(wire.KindBulkChunk, nil),
		"does not end": answer(wire.KindBulkGrant, make([]byte, 9)),
		"is cut":       answer(wire.KindBulkOver, make([]byte, 5)),
		"is cut too":   answer(wire.KindBulkWhole, make([]byte, 3)),
	} {
		t.Run(name, func(t *testing.T) {
			p := newBulkPair(t, 100, 0, 5000)
			x := p.send(1000, 1)
			p.s.Append(0, nil)
			before := *x
			require.Error(t, say(p))
			require.Equal(t, before, *x, "nothing has changed")
		})
	}
}

func TestBulkReceiverRefusesNonsense(t *testing.T) {
	p := newBulkPair(t, 100, 0, 50_000)
	begin := func(n uint32) error { return p.r.Begin(0, wire.BulkBegin{Number: n, Size: 1000}, BulkEnd{}) }
	require.ErrorIs(t, begin(2), ErrBulkProtocol, "numbers grow one by one")
	require.NoError(t, begin(1))
	require.ErrorIs(t, begin(1), ErrBulkProtocol)
	for _, n := range []uint32{0, 2} {
		_, err := p.r.Chunk(n, 1)
		require.ErrorIs(t, err, ErrBulkProtocol)
		require.ErrorIs(t, p.r.Abort(n), ErrBulkProtocol)
	}
	_, err := p.r.Chunk(1, 101)
	require.ErrorIs(t, err, ErrBulkProtocol, "more than was granted")
	for n := uint32(2); n <= MaxBulkActive; n++ {
		require.NoError(t, begin(n))
	}
	require.ErrorIs(t, begin(MaxBulkActive+1), ErrBulkProtocol, "more than may be under way")
	require.Equal(t, MaxBulkActive*1000, p.room.Used())
	p.r.Broken()
	require.Zero(t, p.room.Used())
	p = newBulkPair(t, 100, 10, 50_000)
	n := uint32(1)
	for ; begin(n) == nil; n++ {
		require.Less(t, n, uint32(10_000), "answers that nobody reads are bounded")
	}
}

// TestBulkRests: a sender that rests begins nothing, what has begun comes to its end, and then nothing is left on the
// connection; on the next one it begins.
func TestBulkRests(t *testing.T) {
	p := newBulkPair(t, 1000, 1<<20, 1<<20)
	require.False(t, p.s.Rested(), "it does not rest")
	first := p.send(300, 1)
	frames := p.s.Append(0, nil) // it has begun
	second := p.send(300, 2)
	p.s.Rest(true)
	require.False(t, p.s.Rested())
	queued, begun := p.s.Underway()
	require.Equal(t, []int{1, 1}, []int{queued, begun})
	require.NotEmpty(t, frames)
	require.True(t, p.s.Cancel(first))
	require.False(t, p.s.Rested(), "its end is to be told")
	require.NotEmpty(t, p.s.Append(0, nil))
	require.True(t, p.s.Rested())
	require.Empty(t, p.s.Append(0, nil))
	require.Empty(t, p.s.Broken(nil), "nothing is lost")
	p.s.Connected(0, 2)
	require.False(t, p.s.Rested())
	require.NotEmpty(t, p.s.Append(0, nil))
	require.Equal(t, uint32(2), second.Ref().Generation)
}

// A peer that lets what it sent lie leaves half of the room to others: beyond its share it waits, and those behind it
// are served, which in turn are not starved by what it sends after that (SEC-4).
func TestBulkShares(t *testing.T) {
	room := &BulkRoom{Limit: 1000}
	id := func(n uint64) peer.ID { return peer.ID{Addr: bulkPeer.Addr, Inc: n} }
	key := func(n uint32) BulkKey { return BulkKey{1, n} }
	greedy, other, third := id(1), id(2), id(3)
	require.True(t, room.Take(greedy, key(1), 400))
	require.False(t, room.Take(greedy, key(2), 200), "beyond half of it, though nobody else wants any")
	require.False(t, room.Take(greedy, key(3), 50), "nothing overtakes it in its own row")
	require.Equal(t, 400, room.Held(greedy))
	require.True(t, room.Take(other, key(4), 500), "others are served at once")
	require.Equal(t, 500, room.Share())
	require.False(t, room.Take(third, key(5), 300), "it has not come free yet")
	require.Equal(t, 333, room.Share())
	_, _, _, ok := room.Turn()
	require.False(t, ok)
	room.Give(other, 500)
	from, k, n, ok := room.Turn()
	require.Equal(t, []any{third, key(5), 300, true}, []any{from, k, n, ok})
	_, _, _, ok = room.Turn()
	require.False(t, ok, "the greedy one holds more than it may")
	room.Give(greedy, 400)
	for _, want := range []BulkKey{key(2), key(3)} {
		_, k, _, ok = room.Turn()
		require.True(t, ok)
		require.Equal(t, want, k)
	}
	room.Give(greedy, 250)
	room.Give(third, 300)
	require.Zero(t, room.Used())
	require.Empty(t, room.parties)
	require.True(t, room.Take(greedy, key(6), 1000), "one that holds nothing may have a message of any size")
}

// A sender that gives up waiting is forgotten, and what it kept free is for the others.
func TestBulkShareOfOneThatGaveUp(t *testing.T) {
	room := &BulkRoom{Limit: 100}
	a, b := peer.ID{Addr: bulkPeer.Addr, Inc: 1}, peer.ID{Addr: bulkPeer.Addr, Inc: 2}
	require.True(t, room.Take(a, BulkKey{1, 1}, 50))
	require.False(t, room.Take(b, BulkKey{2, 1}, 90))
	require.False(t, room.Take(b, BulkKey{2, 2}, 10), "kept for the first")
	room.Drop(b, BulkKey{2, 7})
	room.Drop(b, BulkKey{2, 1})
	_, k, _, ok := room.Turn()
	require.True(t, ok)
	require.Equal(t, BulkKey{2, 2}, k)
}

// Messages that are whole and that nobody claims, and those that come too slowly, give their room back: their senders
// hear that they have expired (SEC-4).
func TestBulkRoomHasAPrice(t *testing.T) {
	p := newBulkPair(t, 1000, 0, 10<<20)
	x := p.send(1000, 1)
	p.pump()
	p.now += 2 * time.Second
	p.r.Tick(p.now)
	require.Zero(t, p.room.Used())
	require.Equal(t, []bulkHeard{{x, BulkHasEnded, BulkEnd{Reason: route.TimedOut}}}, p.pump())
	_, _, ok := p.r.Take(1)
	require.False(t, ok, "its envelope comes too late")
	require.Equal(t, uint64(1), p.r.Stats().Unclaimed)

	begin := wire.BulkBegin{Number: 2, Size: 1 << 20}
	require.NoError(t, p.r.Begin(p.now, begin, BulkEnd{}))
	drip := func() { // a little every half second
		_, err := p.r.Chunk(2, 1)
		require.NoError(t, err)
		p.r.Filled(p.now, 2, 1)
		p.now += 500 * time.Millisecond
		p.r.Tick(p.now)
	}
	drip()
	drip()
	require.Equal(t, 1, p.r.Underway(), "within the stall time it may be slow")
	drip()
	require.Zero(t, p.r.Underway())
	require.Zero(t, p.room.Used())
	require.Equal(t, uint64(1), p.r.Stats().Slow)
	require.Zero(t, p.r.Stats().Stalled)
}
