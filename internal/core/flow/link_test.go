// Tests of Link and Meter: each rule by example, and both ends of a connection against a model.

package flow

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// put appends a frame of n bytes that carries a number, if it fits.
func put(l *Link, n int, number uint32) error {
	room, err := l.Reserve(n)
	if err != nil {
		return err
	}
	wire.PutHeader(room, wire.Header{Size: uint32(n), Kind: wire.KindEnvelope})
	clear(room[wire.HeaderSize:])
	binary.LittleEndian.PutUint32(room[wire.HeaderSize:], number)
	return nil
}

// numbers splits b into whole frames and returns the numbers that they carry.
func numbers(t require.TestingT, b []byte) (got []uint32) {
	for len(b) > 0 {
		frame, n, err := wire.Split(b, wire.LaneData, wire.MaxFrameLimit)
		require.NoError(t, err)
		require.NotZero(t, n, "a frame was cut")
		got = append(got, binary.LittleEndian.Uint32(wire.Body(frame)))
		b = b[n:]
	}
	return got
}

func TestLinkTakesEverythingWhileCreditIsPositive(t *testing.T) {
	l := NewLink(1000, 500)
	require.NoError(t, put(l, 100, 1))
	require.Nil(t, l.Take(), "no connection yet")
	require.Zero(t, l.Reconnected(1))
	require.NoError(t, put(l, 100, 2))
	require.Equal(t, []uint32{1, 2}, numbers(t, l.Take()))
	require.Nil(t, l.Take())
	require.Equal(t, int64(200), l.Outstanding())
	require.Equal(t, 300, l.Credit())
}

func TestLinkCutsAtAFrameAndOvershootsByAtMostOne(t *testing.T) {
	l := NewLink(10_000, 250)
	l.Reconnected(1)
	for i := range 6 {
		require.NoError(t, put(l, 100, uint32(i)))
	}
	require.Equal(t, []uint32{0, 1, 2}, numbers(t, l.Take()), "250 bytes of credit let a third frame begin")
	require.Nil(t, l.Take(), "credit is used up")
	require.Equal(t, -50, l.Credit())
	require.Equal(t, 300, l.Pending())
	wake, err := l.Granted(1, 50)
	require.NoError(t, err)
	require.False(t, wake, "credit is zero, not positive")
	require.Nil(t, l.Take())
	wake, err = l.Granted(1, 51)
	require.NoError(t, err)
	require.True(t, wake)
	require.NoError(t, put(l, 100, 6)) // goes behind the leftover
	require.Equal(t, []uint32{3}, numbers(t, l.Take()))
	_, err = l.Granted(1, 400)
	require.NoError(t, err)
	require.Equal(t, []uint32{4, 5}, numbers(t, l.Take()))
	require.Equal(t, []uint32{6}, numbers(t, l.Take()))
}

func TestLinkExactCreditDoesNotOvershoot(t *testing.T) {
	l := NewLink(10_000, 200)
	l.Reconnected(1)
	for i := range 3 {
		require.NoError(t, put(l, 100, uint32(i)))
	}
	require.Equal(t, []uint32{0, 1}, numbers(t, l.Take()))
	require.Nil(t, l.Take())
}

func TestLinkLargerFrameThanWindowStillGoes(t *testing.T) {
	l := NewLink(10_000, 100)
	l.Reconnected(1)
	require.NoError(t, put(l, 5000, 1))
	require.Len(t, l.Take(), 5000)
	require.NoError(t, put(l, 5000, 2))
	require.Nil(t, l.Take())
	wake, err := l.Granted(1, 5000)
	require.NoError(t, err)
	require.True(t, wake)
	require.Len(t, l.Take(), 5000)
}

func TestLinkBoundIsTypedAndCoversTheLeftover(t *testing.T) {
	l := NewLink(350, 100)
	l.Reconnected(1)
	for i := range 3 {
		require.NoError(t, put(l, 100, uint32(i)))
	}
	err := put(l, 100, 3)
	require.ErrorIs(t, err, route.ErrLinkFull)
	var full *LinkFullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, 350, full.Limit)
	require.Contains(t, err.Error(), "350")
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = put(l, 100, 3) }), "refusing is cheap")
	require.Len(t, l.Take(), 100)
	require.NoError(t, put(l, 150, 4))
	require.Equal(t, 350, l.Pending(), "two frames left over and one gathered")
	require.Error(t, put(l, 8, 5))
	require.False(t, l.Roomy())
	_, err = l.Granted(1, 100)
	require.NoError(t, err)
	require.Len(t, l.Take(), 100)
	require.False(t, l.Roomy(), "more than half waits")
	_, err = l.Granted(1, 200)
	require.NoError(t, err)
	require.Len(t, l.Take(), 100)
	require.True(t, l.Roomy())
	require.False(t, l.Roomy(), "told once")
}

func TestLinkHasRoomForMarkersBeyondTheBound(t *testing.T) {
	l := NewLinkWithin(Bounds{Buffer: 100, Window: 1 << 20, Frame: 100})
	l.Reconnected(1)
	require.NoError(t, put(l, 100, 1))
	require.Error(t, put(l, 12, 2))
	m := wire.Marker{Type: 1, Shard: 2, Term: 3, Seq: 4}
	require.NoError(t, l.AppendMarker(m))
	require.Error(t, put(l, 12, 2), "markers' room is no one else's")
	b := l.Take()
	frame, n, err := wire.Split(b[100:], wire.LaneData, 1<<20)
	require.NoError(t, err)
	require.Equal(t, MarkerSize, n)
	got, err := wire.ParseMarker(wire.Body(frame))
	require.NoError(t, err)
	require.Equal(t, m, got)
	for range MarkerRoom / MarkerSize {
		require.NoError(t, l.AppendMarker(m))
	}
	for err = nil; err == nil; err = l.AppendMarker(m) {
		require.LessOrEqual(t, l.Pending(), 100+100+MarkerRoom)
	}
	require.ErrorIs(t, err, route.ErrLinkFull)
}

// A frame above OrdinaryFrame may go beyond the bound, once: the next frame of any size is refused until less waits.
func TestLinkOneLargeFrameMayOvershoot(t *testing.T) {
	const buffer, large = 64 << 10, 300 << 10
	l := NewLinkWithin(Bounds{Buffer: buffer, Window: 1 << 20, Frame: large})
	require.Equal(t, buffer+large+MarkerRoom, Bounds{Buffer: buffer, Frame: large}.Most())
	l.Reconnected(1)
	for l.Pending() <= buffer-OrdinaryFrame {
		require.NoError(t, put(l, OrdinaryFrame-1, 1))
	}
	require.Error(t, put(l, OrdinaryFrame, 2), "an ordinary frame keeps to the bound")
	require.NoError(t, put(l, large, 3))
	require.LessOrEqual(t, l.Pending(), buffer+large)
	require.ErrorIs(t, put(l, large, 4), route.ErrLinkFull)
	require.ErrorIs(t, put(l, 12, 5), route.ErrLinkFull)
	require.NoError(t, l.AppendMarker(wire.Marker{}), "markers still have their room")
	require.NotEmpty(t, l.Take())
	require.NoError(t, put(l, large, 6), "an empty link takes any frame")
}

// Credit cuts at the same frame whether it is found from the front or from a frame remembered on the way, over batches
// of all sizes and frames above and below the distance of two marks.
func TestLinkCutsFromAMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(1, 300_000).Draw(t, "window")
		l := NewLinkWithin(Bounds{Buffer: 1 << 20, Window: window, Frame: 100_000})
		l.Reconnected(1)
		var sizes []int
		number, consumed := uint32(0), uint64(0)
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			for range rapid.IntRange(0, 60).Draw(t, "frames") {
				size := rapid.SampledFrom([]int{12, 108, 4000, markEvery - 1, markEvery, markEvery + 1, 100_000}).Draw(t, "size")
				if put(l, size, number) != nil {
					break
				}
				sizes = append(sizes, size)
				number++
			}
			for credit, b := l.Credit(), l.Take(); b != nil; credit, b = l.Credit(), l.Take() {
				n, frames := 0, numbers(t, b)
				for i := range frames {
					require.Less(t, n, credit, "only the last frame overshoots")
					n += sizes[i]
				}
				require.Equal(t, len(b), n)
				sizes = sizes[len(frames):]
			}
			consumed += uint64(rapid.IntRange(0, int(l.Outstanding())).Draw(t, "consumed"))
			_, err := l.Granted(1, consumed)
			require.NoError(t, err)
		}
	})
}

// A link with a source that has no memory refuses, unchanged, and goes on when there is some; what it needs no more
// goes back.
func TestLinkUnderABudget(t *testing.T) {
	memory := ringbuf.NewClasses(4*ringbuf.DoubleClass, Bounds{Buffer: 1 << 20}.Most(), 0)
	link := func() *Link {
		l := NewLinkWithin(Bounds{Buffer: 1 << 20, Memory: memory})
		l.Reconnected(1)
		return l
	}
	a, b := link(), link()
	for put(a, 1000, 1) == nil {
	}
	require.LessOrEqual(t, a.Pending(), 2*ringbuf.DoubleClass, "the last quarter is for first buffers")
	err := put(a, 1000, 1)
	require.ErrorIs(t, err, ringbuf.ErrMemory)
	require.NoError(t, put(b, 1000, 1), "another link gets a small buffer")
	waits := a.Pending()
	require.Len(t, numbers(t, a.Take()), waits/1000)
	require.True(t, a.Roomy())
	a.Fit()
	require.NotZero(t, a.Held(), "it has needed them")
	require.NoError(t, put(a, 1000, 2))
	require.Len(t, a.Take(), 1000)
	a.Trim()
	require.Zero(t, a.Held())
	require.Equal(t, b.Held(), memory.Out())
	b.Take()
	b.Trim()
	require.Zero(t, memory.Out())
}

// A link in use gives back what it has not needed for a while.
func TestLinkFitsItsBuffers(t *testing.T) {
	memory := ringbuf.NewClasses(1<<30, Bounds{Buffer: 1 << 20}.Most(), 0)
	l := NewLinkWithin(Bounds{Buffer: 1 << 20, Memory: memory})
	l.Reconnected(1)
	for range 500 {
		require.NoError(t, put(l, 1000, 1))
	}
	l.Fit()
	require.Equal(t, 500_000, l.Pending(), "what waits is not touched")
	require.NotEmpty(t, l.Take())
	l.Fit()
	require.Equal(t, 512<<10, l.Held(), "it has needed that much")
	require.NoError(t, put(l, 1000, 1))
	require.NotEmpty(t, l.Take())
	l.Fit()
	require.Zero(t, l.Held())
	require.Zero(t, memory.Out())
}

func TestLinkTakeHandsOutTheGatheringBuffer(t *testing.T) {
	l := NewLink(1<<20, 1<<20)
	l.Reconnected(1)
	room, err := l.Reserve(64)
	require.NoError(t, err)
	wire.PutHeader(room, wire.Header{Size: 64, Kind: wire.KindEnvelope})
	require.Same(t, unsafe.SliceData(room), unsafe.SliceData(l.Take()), "no copy")
}

func TestLinkCreditThatNoHonestReceiverSends(t *testing.T) {
	l := NewLink(1000, 1000)
	l.Reconnected(3)
	require.NoError(t, put(l, 100, 1))
	require.Len(t, l.Take(), 100)
	_, err := l.Granted(3, 101)
	require.ErrorIs(t, err, ErrBadCredit)
	_, err = l.Granted(4, 0)
	require.ErrorIs(t, err, ErrBadCredit)
	_, err = l.Granted(3, 1<<63+5)
	require.ErrorIs(t, err, ErrBadCredit)
	require.Equal(t, int64(100), l.Outstanding(), "nothing changed")
	_, err = l.Granted(2, 1<<40)
	require.NoError(t, err, "of an older connection: a late copy")
	_, err = l.Granted(3, 60)
	require.NoError(t, err)
	_, err = l.Granted(3, 50)
	require.NoError(t, err, "behind what was heard: a late copy")
	require.Equal(t, int64(40), l.Outstanding())
}

func TestLinkReconnectKeepsWhatWaitsAndCountsWhatWasOut(t *testing.T) {
	l := NewLink(1000, 250)
	l.Reconnected(1)
	for i := range 5 {
		require.NoError(t, put(l, 100, uint32(i)))
	}
	require.Equal(t, []uint32{0, 1, 2}, numbers(t, l.Take()))
	_, err := l.Granted(1, 120)
	require.NoError(t, err)
	require.Equal(t, int64(180), l.Broken())
	require.Zero(t, l.Broken())
	require.False(t, l.Connected())
	require.Nil(t, l.Take())
	require.NoError(t, put(l, 100, 5))
	wake, err := l.Granted(1, 300)
	require.NoError(t, err)
	require.False(t, wake, "credit of a broken connection wakes nobody")
	require.Zero(t, l.Reconnected(2))
	require.Equal(t, []uint32{3, 4}, numbers(t, l.Take()))
	require.Equal(t, []uint32{5}, numbers(t, l.Take()))
	require.Equal(t, int64(300), l.Reconnected(7), "Broken was not called")
	require.Equal(t, LinkStats{Sent: 600, Takes: 3, Lost: 480, Sizes: [SizeClasses]uint64{1: 1, 2: 1, 3: 1}}, l.Stats())
	require.Panics(t, func() { l.Reconnected(7) }, "generations grow")
}

func TestLinkFailAllHandsOutEveryWaitingFrameOnce(t *testing.T) {
	l := NewLink(1000, 100)
	l.Reconnected(1)
	for i := range 3 {
		require.NoError(t, put(l, 100, uint32(i)))
	}
	require.Equal(t, []uint32{0}, numbers(t, l.Take()))
	require.NoError(t, put(l, 100, 3))
	var failed []uint32
	n := l.FailAll(func(frame []byte) { failed = append(failed, numbers(t, frame)...) })
	require.Equal(t, 3, n)
	require.Equal(t, []uint32{1, 2, 3}, failed)
	require.Zero(t, l.Pending())
	require.Zero(t, l.FailAll(nil))
	require.Equal(t, uint64(3), l.Stats().Dropped)
}

func TestLinkIdleHoldsNoMemory(t *testing.T) {
	l := NewLink(1<<20, 1<<20)
	l.Reconnected(1)
	require.NoError(t, put(l, 1000, 1))
	l.Trim()
	require.Equal(t, []uint32{1}, numbers(t, l.Take()), "what waits is not trimmed")
	require.NotZero(t, l.q.Held())
	l.Trim()
	require.Zero(t, l.q.Held())
	require.NoError(t, put(l, 1000, 2))
	require.Equal(t, []uint32{2}, numbers(t, l.Take()))
}

func TestLinkStopsAtAFrameThatIsNotItsRoom(t *testing.T) {
	for name, size := range map[string]uint32{"too small": 7, "too large": 101} {
		t.Run(name, func(t *testing.T) {
			l := NewLink(1000, 50)
			l.Reconnected(1)
			room, err := l.Reserve(100)
			require.NoError(t, err)
			binary.LittleEndian.PutUint32(room, size)
			require.Panics(t, func() { l.Take() })
		})
	}
}

func TestLinkDefaults(t *testing.T) {
	l := NewLink(0, -1)
	require.Equal(t, DefaultWindow, l.Credit())
	require.Equal(t, DefaultLinkBuffer, l.limit)
}

func TestMeterTellsEveryQuarterWindowAndTheRestAfterAPause(t *testing.T) {
	m := MakeMeter(400)
	total, due := m.Consume(99)
	require.Equal(t, uint64(99), total)
	require.False(t, due)
	total, due = m.Consume(1)
	require.Equal(t, uint64(100), total)
	require.True(t, due)
	_, due = m.Flush()
	require.False(t, due, "told already")
	_, due = m.Consume(5)
	require.False(t, due)
	total, due = m.Flush()
	require.Equal(t, uint64(105), total)
	require.True(t, due)
	_, due = m.Flush()
	require.False(t, due)
	_, due = m.Consume(99)
	require.False(t, due, "a flush begins a new quarter")
	require.Equal(t, uint64(204), m.Total())
	tiny := MakeMeter(1)
	_, due = tiny.Consume(1)
	require.True(t, due)
	_, due = tiny.Consume(0)
	require.False(t, due)
}

// pipeModel is a sender's link, a receiver's meter and what lies between them.
type pipeModel struct {
	link   *Link
	meter  Meter
	window int
	limit  int
	gen    uint32

	next    uint32
	waiting []frameModel // accepted, not taken
	flight  []frameModel // taken, not consumed
	largest int
	seen    uint32 // numbers come out in order: the next one is at least this
	lost    int
	credits []wire.Credit // on their way
}

type frameModel struct {
	number uint32
	size   int
}

func sum(frames []frameModel) (n int) {
	for _, f := range frames {
		n += f.size
	}
	return n
}

func (m *pipeModel) take(t *rapid.T) {
	before := m.link.Credit()
	for b := m.link.Take(); b != nil; b = m.link.Take() {
		require.True(t, m.link.Connected())
		require.Positive(t, before, "bytes without credit")
		for _, number := range numbers(t, b) {
			require.NotEmpty(t, m.waiting, "a frame was invented")
			require.Equal(t, m.waiting[0].number, number, "order")
			m.flight = append(m.flight, m.waiting[0])
			m.waiting = m.waiting[1:]
		}
		before = m.link.Credit()
	}
	if m.link.Connected() && m.link.Credit() > 0 {
		require.Empty(t, m.waiting, "credit was left and frames too")
	}
}

func (m *pipeModel) consume(t *rapid.T) {
	for n := rapid.IntRange(1, 5).Draw(t, "frames"); n > 0 && len(m.flight) > 0; n-- {
		f := m.flight[0]
		m.flight = m.flight[1:]
		require.GreaterOrEqual(t, f.number, m.seen, "order over connections")
		m.seen = f.number + 1
		if total, due := m.meter.Consume(f.size); due {
			m.credits = append(m.credits, wire.Credit{Generation: m.gen, Consumed: total})
		}
	}
}

// TestPipeLaws: whatever happens, at most the window and one frame are outstanding, frames keep their order also over
// reconnects, none is invented, cut or lost but with its connection, and a pipe has credit once its receiver has
// consumed everything, even if some reports were lost.
func TestPipeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &pipeModel{window: rapid.IntRange(1, 2000).Draw(t, "window"), limit: rapid.IntRange(200, 3000).Draw(t, "limit")}
		m.link, m.meter = NewLink(m.limit, m.window), MakeMeter(m.window)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, sum(m.waiting), m.link.Pending())
				require.LessOrEqual(t, m.link.Pending(), m.limit)
				require.LessOrEqual(t, int(m.link.Outstanding()), m.window+m.largest)
				require.GreaterOrEqual(t, int(m.link.Outstanding()), 0)
				if m.link.Connected() {
					require.GreaterOrEqual(t, int(m.link.Outstanding()), sum(m.flight))
				}
				require.Equal(t, uint64(m.lost), m.link.Stats().Lost)
			},
			"send": func(t *rapid.T) {
				size := rapid.IntRange(12, 300).Draw(t, "size")
				err := put(m.link, size, m.next)
				if sum(m.waiting)+size > m.limit {
					require.ErrorIs(t, err, route.ErrLinkFull)
					return
				}
				require.NoError(t, err)
				m.waiting = append(m.waiting, frameModel{m.next, size})
				m.largest = max(m.largest, size)
				m.next++
			},
			"take":    m.take,
			"consume": m.consume,
			"idle": func(t *rapid.T) {
				if total, due := m.meter.Flush(); due && m.gen > 0 {
					m.credits = append(m.credits, wire.Credit{Generation: m.gen, Consumed: total})
				}
			},
			"credit arrives": func(t *rapid.T) {
				if len(m.credits) == 0 {
					t.Skip("none on its way")
				}
				i := rapid.IntRange(0, len(m.credits)-1).Draw(t, "which") // reordered, or lost by never being drawn
				stuck := m.link.Credit() <= 0 && m.link.Connected() && m.link.Pending() > 0
				wake, err := m.link.Granted(m.credits[i].Generation, m.credits[i].Consumed)
				require.NoError(t, err)
				require.Equal(t, stuck && m.link.Credit() > 0, wake)
				if rapid.Bool().Draw(t, "keep") { // duplicated
					return
				}
				m.credits = append(m.credits[:i:i], m.credits[i+1:]...)
			},
			"break": func(t *rapid.T) {
				m.lost += int(m.link.Outstanding())
				m.link.Broken()
				m.flight = nil
			},
			"connect": func(t *rapid.T) {
				m.lost += int(m.link.Outstanding())
				m.gen++
				m.link.Reconnected(m.gen)
				m.flight, m.meter = nil, MakeMeter(m.window)
			},
			"everything consumed": func(t *rapid.T) {
				if !m.link.Connected() {
					t.Skip("not connected")
				}
				for len(m.flight) > 0 {
					m.consume(t)
				}
				// The meter reported all but less than a quarter of the window, or Flush does after a pause: on a new control
				// connection the newest total is repeated.
				_, err := m.link.Granted(m.gen, m.meter.told)
				require.NoError(t, err)
				require.Positive(t, m.link.Credit(), "the pipe is stuck")
			},
			"trim": func(*rapid.T) { m.link.Trim() },
		})
	})
}

func TestLinkSteadyStateDoesNotAllocate(t *testing.T) {
	l, m := NewLink(0, 0), MakeMeter(0)
	l.Reconnected(1)
	round := func() {
		for i := range 200 {
			_ = put(l, 108, uint32(i))
		}
		for b := l.Take(); b != nil; b = l.Take() {
			if total, due := m.Consume(len(b)); due {
				_, _ = l.Granted(1, total)
			}
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

func BenchmarkLinkReserve(b *testing.B) {
	l := NewLink(1<<20, 1<<30)
	e := wire.Envelope{Type: 1, Shard: 2, Term: 3, Epoch: 4, Payload: make([]byte, 64)}
	id := "entity-000000001"
	size := wire.SizeEnvelope(len(id), len(e.Payload))
	l.Reconnected(1)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for i := 0; b.Loop(); i++ {
		room, err := l.Reserve(size)
		if err != nil {
			b.Fatal(err)
		}
		wire.PutEnvelope(room, &e, id)
		if i%512 == 511 {
			taken := l.Take()
			_, _ = l.Granted(1, uint64(l.sent))
			_ = taken
		}
	}
}

func BenchmarkLinkCut(b *testing.B) {
	l := NewLink(1<<20, 64<<10)
	l.Reconnected(1)
	b.ReportAllocs()
	b.SetBytes(108)
	for i := 0; b.Loop(); i++ {
		if put(l, 108, 1) == nil && i%2048 != 2047 {
			continue
		}
		for l.Pending() > 0 {
			l.Take()
			_, _ = l.Granted(1, uint64(l.sent))
		}
	}
}

// The classes of batches: each holds what is at most twice the one before, the last one the rest.
func TestSizeClasses(t *testing.T) {
	for n, class := range map[int]int{1: 0, 64: 0, 65: 1, 128: 1, 129: 2, 4096: 6, 4097: 7, 1 << 20: 14, 1<<20 + 1: 15,
		1 << 30: 15} {
		require.Equal(t, class, sizeClass(n), "%d bytes", n)
	}
}
