// Tests of what is known of tells on connections that are over: golden bytes, examples, and a law over whole streams.

package flow

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/wire"
)

func sampleTaken() []Taken { return []Taken{{1, 2, 300}, {0, 7, 0}} }

func TestTakenGolden(t *testing.T) {
	body := AppendTaken(nil, sampleTaken())
	require.Equal(t, "02"+"0100"+"02000000"+"ac02"+"0000"+"07000000"+"00", hex.EncodeToString(body))
	got, err := ParseTaken(body)
	require.NoError(t, err)
	require.Equal(t, sampleTaken(), got)
	for n := range body {
		_, err := ParseTaken(body[:n])
		var bad *wire.Error
		require.ErrorAs(t, err, &bad, "%d bytes", n)
		require.Equal(t, wire.KindTaken, bad.Kind)
	}
	_, err = ParseTaken(append(body, 0))
	require.ErrorIs(t, err, wire.ErrTrailing)
	_, err = ParseTaken(wire.AppendUvarint(nil, MaxFlights+1))
	require.ErrorIs(t, err, wire.ErrTooLarge)
}

func FuzzTaken(f *testing.F) {
	f.Add(AppendTaken(nil, sampleTaken()))
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(body)) }()
		list, err := ParseTaken(body)
		if err == nil {
			require.Equal(t, string(body), string(AppendTaken(nil, list)))
		}
	})
}

// Whichever end of a connection hears of its end first, what is lost is what was sent less what was taken, once
// (SHD-4).
func TestFlightsInAnyOrder(t *testing.T) {
	flown, taken := Flown{Number: 1, Generation: 3, Sent: 10, Unknown: 6}, Taken{1, 3, 8}
	var f InFlight
	require.Zero(t, f.Over(flown))
	require.EqualValues(t, 2, f.Says(taken))
	require.Zero(t, f.End())
	require.Zero(t, f.Says(taken))
	require.EqualValues(t, 2, f.Over(flown))
	require.Zero(t, f.End())

	require.Zero(t, f.Over(flown))
	require.Zero(t, f.Says(Taken{1, 4, 8}), "of another connection")
	require.EqualValues(t, 6, f.End(), "nobody will ever say")
	require.Zero(t, f.End())

	require.Zero(t, f.Over(Flown{Sent: 10}), "all was consumed, by its credit")
	require.EqualValues(t, 1, f.Says(Taken{Tells: 9}), "which was that of what others had consumed behind it")
	require.Zero(t, f.Over(Flown{Sent: 10}))
	require.Zero(t, f.End())
	require.Zero(t, f.Over(flown))
	require.Zero(t, f.Says(Taken{1, 3, 11}), "more than was sent")
}

// Too many connections without a word are bounded, and no count is lost with them.
func TestFlightsAreBounded(t *testing.T) {
	var f InFlight
	lost := uint64(0)
	for i := range uint32(3 * MaxFlights) {
		lost += f.Over(Flown{Generation: i, Sent: 5, Unknown: 2})
		f.Says(Taken{9, i, 1})
	}
	require.Len(t, f.flown, MaxFlights)
	require.Len(t, f.taken, MaxFlights)
	require.EqualValues(t, 2*3*MaxFlights, lost+f.End())
	require.Zero(t, f.Over(Flown{Generation: 0, Sent: 5, Unknown: 2}))
	for i := range uint32(3 * MaxFlights) {
		require.Zero(t, f.Over(Flown{Number: 1, Generation: i, Sent: 5}), "those of which all was taken go first")
	}
	require.Len(t, f.flown, MaxFlights)
	require.EqualValues(t, 2, f.End())
	var w ConsumedCounts
	for i := range uint32(3 * MaxFlights) {
		w.Add(Taken{0, i, 1})
	}
	list := w.Take()
	require.Len(t, list, MaxFlights)
	require.EqualValues(t, 3*MaxFlights-1, list[len(list)-1].Generation)
	require.Empty(t, w.Take())
}

// However tells, asks and credit follow each other, and connections break, a link knows exactly how many tells it has
// handed out on a connection, and never takes one for consumed before its bytes are.
func TestLinkCountsTells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLink(200_000, 70_000)
		var sizes, tells []int // of the frames that were sent on this connection; one or none
		sent, waiting := 0, 0
		generation := uint32(1)
		l.Reconnected(generation)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(t, "frames") {
					e := wire.Envelope{ID: []byte("a"), Payload: make([]byte, rapid.IntRange(0, 3000).Draw(t, "size"))}
					if rapid.Bool().Draw(t, "ask") {
						e.Flags = wire.FlagAsk
					}
					room, err := l.Reserve(wire.SizeEnvelope(1, len(e.Payload)))
					if err != nil {
						return
					}
					if rapid.Bool().Draw(t, "put") {
						l.Put(room, &e, "a")
					} else {
						wire.PutEnvelope(room, &e, "a")
						l.Count(room)
					}
					if e.Flags == 0 {
						waiting++
					}
				}
			},
			"take": func(t *rapid.T) {
				for b := l.Take(); b != nil; b = l.Take() {
					for len(b) > 0 {
						n, tell := wire.SizeOf(b), 0
						if wire.IsTell(b) {
							tell = 1
						}
						sizes, tells = append(sizes, n), append(tells, tell)
						waiting -= tell
						b = b[n:]
					}
				}
			},
			"credit": func(t *rapid.T) {
				if l.sent > l.consumed {
					_, err := l.Granted(generation, uint64(rapid.Int64Range(l.consumed, l.sent).Draw(t, "consumed")))
					require.NoError(t, err)
				}
			},
			"break": func(t *rapid.T) {
				l.Broken()
				_, unknown := l.Flown()
				require.Zero(t, unknown, "it is settled")
				generation++
				l.Reconnected(generation)
				sizes, tells = nil, nil
			},
			"": func(t *rapid.T) {
				at, known := int64(0), 0
				sent = 0
				for i, n := range sizes {
					sent += tells[i]
					if at += int64(n); at <= l.consumed {
						known += tells[i]
					}
				}
				have, unknown := l.Flown()
				require.EqualValues(t, sent, have)
				require.GreaterOrEqual(t, int(unknown), sent-known, "none is taken for consumed that is not")
				if l.consumed == l.sent {
					require.Zero(t, unknown)
				}
				require.LessOrEqual(t, len(l.tally.flights), 70_000/markEvery+3)
			},
		})
	})
}

// At its own end a node tells what peers have not said and not read: what they have read to the end they handle or
// tell, unless their word says otherwise (SHD-4).
func TestFlightsAtTheEnd(t *testing.T) {
	var f InFlight
	require.Zero(t, f.Over(Flown{Generation: 1, Sent: 10, Unknown: 6}))
	require.Zero(t, f.Over(Flown{Generation: 2, Sent: 10, Unknown: 5, Read: true}))
	require.Zero(t, f.Over(Flown{Generation: 3, Sent: 10, Unknown: 4, Read: true}))
	require.EqualValues(t, 3, f.Says(Taken{Generation: 3, Tells: 7}), "it ended itself, and left them")
	require.EqualValues(t, 6, f.Close())
	require.Zero(t, f.Close())
	require.Zero(t, f.Over(Flown{Generation: 4, Sent: 10, Unknown: 5, Read: true}))
	require.EqualValues(t, 5, f.End(), "of a peer that is gone nobody knows what it has handled of what it read")
}
