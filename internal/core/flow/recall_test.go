// Laws of what is taken back out of a link: the order of each shard, the books, and the express way of markers.

package flow

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// putOf puts a message of one of the streams: two shards of each of two types.
func putOf(t require.TestingT, l *Link, stream uint32, n, size int) {
	e := wire.Envelope{Type: 1 + stream/2, Shard: stream % 2, Payload: make([]byte, max(size, 8))}
	binary.LittleEndian.PutUint64(e.Payload, uint64(n))
	room, err := l.Reserve(wire.SizeEnvelope(1, len(e.Payload)))
	require.NoError(t, err)
	l.Put(room, &e, "a")
}

func numberOf(t require.TestingT, frame []byte) (stream uint32, n int) {
	var e wire.Envelope
	require.NoError(t, wire.ParseEnvelope(frame, &e))
	return 2*(e.Type-1) + e.Shard, int(binary.LittleEndian.Uint64(e.Payload))
}

// Whatever is gathered, sent and taken back: of each shard of each type all comes out, once and in order, and the tells
// are counted that are sent.
func TestWithdrawLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLinkWithin(Bounds{Buffer: 256 << 10, Window: 32 << 10})
		l.Reconnected(1)
		var put, out [4]int
		sent, tells := uint64(0), uint64(0)
		came := func(frame []byte) {
			stream, n := numberOf(t, frame)
			require.Equal(t, out[stream], n)
			out[stream]++
		}
		take := func() {
			for b := l.Take(); b != nil; b = l.Take() {
				sent += uint64(len(b))
				for len(b) > 0 {
					size := wire.SizeOf(b)
					came(b[:size:size])
					tells++
					b = b[size:]
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					stream := rapid.Uint32Range(0, 3).Draw(t, "stream")
					if size := rapid.IntRange(8, 3000).Draw(t, "size"); l.Pending()+size+100 < 256<<10 {
						putOf(t, l, stream, put[stream], size)
						put[stream]++
					}
				}
			},
			"take":   func(*rapid.T) { take() },
			"credit": func(*rapid.T) { _, err := l.Granted(1, sent); require.NoError(t, err) },
			"withdraw": func(t *rapid.T) {
				stream := rapid.Uint32Range(0, 3).Draw(t, "stream")
				typ, shard := 1+stream/2, stream%2
				frames, bytes, large := l.Waiting(typ, shard)
				before := l.Pending()
				require.False(t, large)
				require.Equal(t, put[stream]-out[stream], frames)
				l.Withdraw(typ, shard, func(frame []byte) { came(frame); frames--; bytes -= len(frame) })
				require.Zero(t, frames)
				require.Zero(t, bytes)
				require.LessOrEqual(t, l.Pending(), before)
				require.Equal(t, put[stream], out[stream])
			},
			"": func(t *rapid.T) {
				flown, _ := l.Flown()
				require.Equal(t, tells, flown)
			},
		})
		for l.Pending() > 0 {
			_, err := l.Granted(1, sent)
			require.NoError(t, err)
			take()
		}
		require.Equal(t, put, out)
	})
}

func TestExpressMarker(t *testing.T) {
	l := NewLinkWithin(Bounds{Buffer: 64 << 10, Window: 16 << 10})
	m := wire.Marker{Type: 1, Shard: 2, Term: 3, Seq: 4}
	require.NoError(t, l.ExpressMarker(m))
	require.Equal(t, MarkerSize, l.Pending())
	require.Nil(t, l.Take(), "no connection")
	l.Reconnected(1)
	for n := range 100 {
		putOf(t, l, 1, n, 400)
	}
	require.Len(t, l.Take(), MarkerSize, "it goes first")
	for l.Take() != nil {
		continue
	}
	require.LessOrEqual(t, l.Credit(), 0)
	seen := 0
	for range 3 * expressBeyond / MarkerSize {
		require.NoError(t, l.ExpressMarker(m))
		if b := l.Take(); b != nil {
			require.Equal(t, wire.KindMarker, wire.KindOf(b))
			seen++
		}
	}
	require.NotZero(t, seen, "beyond the window")
	require.LessOrEqual(t, l.Outstanding(), int64(16<<10+expressBeyond), "and not for ever")
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 2*(MarkerRoom+wire.DefaultMaxFrame)/MarkerSize)
		err = l.ExpressMarker(m)
	}
	require.NotZero(t, l.FailAll(nil))
	require.Zero(t, l.Pending())
}

// What is put first goes before what waits, and both keep within the bounds.
func TestSlotPutFirst(t *testing.T) {
	pool := &Pool{Limit: 400}
	slot := MakeSlot(NewParking(10, 1000, time.Second, pool))
	s := &slot
	frame := func(text string) []byte {
		e := wire.Envelope{Type: 1, Shard: 2, Payload: []byte(text), ID: []byte("a")}
		return wire.AppendEnvelope(nil, &e)
	}
	parkOne(t, s, 0, "a", "3")
	parkOne(t, s, 0, "a", "4")
	list := [][]byte{frame("1"), frame("2")}
	size := len(list[0]) + len(list[1])
	put := func(put func([]byte)) {
		for _, f := range list {
			put(f)
		}
	}
	require.True(t, s.PutFirst(0, 2, size, put))
	require.True(t, s.Resolve(false, home1, fence1))
	require.Equal(t, []string{"1", "2", "3", "4"}, drain(t, s))
	require.True(t, s.OpenIfDrained())
	require.False(t, s.PutFirst(0, 2, size, put), "it is open")
	require.Zero(t, pool.used)
}

// What was accepted already has its place however full the slot and the budget are; what is new has none, until what
// waits is below the bounds again.
func TestSlotPutFirstBeyondTheBounds(t *testing.T) {
	e := wire.Envelope{Type: 1, Shard: 2, Payload: []byte("x"), ID: []byte("a")}
	frame := wire.AppendEnvelope(nil, &e)
	each := len(frame) + ParkOverhead
	for name, p := range map[string]*Parking{
		"records": NewParking(3, 1000*each, time.Second, nil),
		"bytes":   NewParking(1000, 3*each, time.Second, nil),
		"budget":  NewParking(1000, 1000*each, time.Second, &Pool{Limit: 3 * each}),
	} {
		t.Run(name, func(t *testing.T) {
			slot := MakeSlot(p)
			s := &slot
			var want []string
			for i := range 3 {
				parkOne(t, s, 0, "a", string(rune('d'+i)))
			}
			require.ErrorIs(t, s.Park(0, &e, "a"), route.ErrParkFull)
			require.True(t, s.PutFirst(0, 50, 50*len(frame), func(put func([]byte)) {
				for i := range 50 {
					f := wire.AppendEnvelope(nil, &wire.Envelope{Type: 1, Shard: 2, Payload: []byte{byte(i)}, ID: []byte("a")})
					want = append(want, string(rune(i)))
					put(f)
				}
			}))
			want = append(want, "d", "e", "f")
			records, bytes := s.Parked()
			require.Equal(t, []int{53, 53 * each}, []int{records, bytes})
			require.ErrorIs(t, s.Park(0, &e, "a"), route.ErrParkFull)
			require.True(t, s.Resolve(false, home1, fence1))
			require.Equal(t, want, drain(t, s))
			if pool, ok := p.budget.(*Pool); ok {
				require.Zero(t, pool.used)
			}
			require.NoError(t, s.Hold(0, &e, "a"))
		})
	}
}
