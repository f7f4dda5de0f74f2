// Tests of frames: splitting a stream at every byte, and every way in which a stream is beyond repair.

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHeaderRoundTrip freezes the header's bytes and reads them back.
func TestHeaderRoundTrip(t *testing.T) {
	h := Header{Size: 0x01020304, Kind: KindReply, Flags: 0xa5, Aux: 0x0708}
	b := make([]byte, HeaderSize)
	PutHeader(b, h)
	require.Equal(t, []byte{4, 3, 2, 1, 17, 0xa5, 8, 7}, b)
	require.Equal(t, h, ParseHeader(b))
}

// TestBeginEndFrame holds that a frame written in place is the frame appended whole, also behind other bytes.
func TestBeginEndFrame(t *testing.T) {
	want := AppendFrame([]byte("before"), KindGossip, 0, 0, []byte("body"))
	got, at := BeginFrame([]byte("before"), KindGossip, 0, 0)
	require.Equal(t, len("before"), at)
	got = append(got, "body"...)
	EndFrame(got, at)
	require.Equal(t, want, got)
	require.Equal(t, []byte("body"), Body(got[at:]))
}

// feed hands a stream to Split in pieces, as a connection would, and returns the bodies of the frames it found.
func feed(t require.TestingT, stream []byte, lane Lane, limit int, pieces []int) [][]byte {
	var carry []byte
	var found [][]byte
	take := func() {
		for {
			frame, n, err := Split(carry, lane, limit)
			require.NoError(t, err)
			if n == 0 {
				return
			}
			require.Len(t, frame, n)
			require.Equal(t, n, cap(frame), "a frame must not reach into the next")
			found = append(found, bytes.Clone(Body(frame)))
			carry = carry[n:]
		}
	}
	for _, n := range pieces {
		n = min(n, len(stream))
		carry = append(carry, stream[:n]...)
		stream = stream[n:]
		take()
	}
	carry = append(carry, stream...)
	take()
	require.Empty(t, carry)
	return found
}

// TestSplitAtEveryByte cuts a stream of three frames, one of them empty, at every pair of bytes: the frames come out
// whole and in order wherever the cuts are (CARD-3).
func TestSplitAtEveryByte(t *testing.T) {
	bodies := [][]byte{[]byte("first"), {}, []byte("the last one")}
	var stream []byte
	for _, body := range bodies {
		stream = AppendFrame(stream, KindMarker, 0, 0, body)
	}
	for a := range stream {
		for b := range len(stream) - a {
			found := feed(t, stream, LaneData, 64, []int{a, b})
			require.Len(t, found, len(bodies), "cuts %d %d", a, b)
			for i := range bodies {
				require.True(t, bytes.Equal(bodies[i], found[i]), "cuts %d %d frame %d", a, b, i)
			}
		}
	}
	ones := make([]int, len(stream))
	for i := range ones {
		ones[i] = 1
	}
	require.Len(t, feed(t, stream, LaneData, 64, ones), len(bodies))
}

// TestSplitRandomStreams is the same law over random frames and random pieces.
func TestSplitRandomStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 8).Draw(t, "bodies")
		pieces := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 30).Draw(t, "pieces")
		var stream []byte
		for _, body := range bodies {
			stream = AppendFrame(stream, KindGossip, 0, 0, body)
		}
		found := feed(t, stream, LaneControl, 48, pieces)
		require.Len(t, found, len(bodies))
		for i := range bodies {
			require.True(t, bytes.Equal(bodies[i], found[i]))
		}
	})
}

// TestSplitRefuses holds each error, and that it needs no more than the header.
func TestSplitRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   uint32
		kind   Kind
		lane   Lane
		limit  int
		want   error
		offset int
	}{
		{"unknown kind", 16, 200, LaneData, 4096, ErrBadKind, 4},
		{"kind zero", 16, 0, LaneControl, 4096, ErrBadKind, 4},
		{"unknown kind of absurd size", 1 << 31, 99, LaneData, 4096, ErrBadKind, 4},
		{"data on control", 40, KindEnvelope, LaneControl, 4096, ErrBadLane, 4},
		{"control on data", 40, KindGossip, LaneData, 4096, ErrBadLane, 4},
		{"size zero", 0, KindEnvelope, LaneData, 4096, ErrTooSmall, 0},
		{"size below the header", 7, KindEnvelope, LaneData, 4096, ErrTooSmall, 0},
		{"size over the limit", 4097, KindEnvelope, LaneData, 4096, ErrTooLarge, 0},
		{"size of 2^32-1", 1<<32 - 1, KindEnvelope, LaneData, 4096, ErrTooLarge, 0},
		{"size of 2^31", 1 << 31, KindGossip, LaneControl, MaxControlFrame, ErrTooLarge, 0},
		{"heartbeat with a tail", 8 + 17, KindHeartbeat, LaneControl, 4096, ErrTooLarge, 0},
		{"credit with a tail", 8 + 15, KindCredit, LaneControl, 4096, ErrTooLarge, 0},
		{"hello of an unknown peer", 8 + 64<<10 + 1, KindHello, LaneControl, MaxControlFrame, ErrTooLarge, 0},
	} {
		head := make([]byte, HeaderSize)
		PutHeader(head, Header{Size: c.size, Kind: c.kind})
		frame, n, err := Split(head, c.lane, c.limit)
		require.Equal(t, &Error{c.kind, c.offset, c.want}, err, c.name)
		require.Nil(t, frame)
		require.Zero(t, n)
		for cut := range HeaderSize {
			_, n, err = Split(head[:cut], c.lane, c.limit)
			require.NoError(t, err, "%s: not enough bytes to judge", c.name)
			require.Zero(t, n)
		}
	}
}

// TestSplitAtTheLimit holds that the limit itself is allowed.
func TestSplitAtTheLimit(t *testing.T) {
	whole := AppendFrame(nil, KindReply, 0, 0, make([]byte, 4096-HeaderSize))
	frame, n, err := Split(whole, LaneData, 4096)
	require.NoError(t, err)
	require.Equal(t, 4096, n)
	require.Equal(t, whole, frame)
	_, n, err = Split(whole[:4095], LaneData, 4096)
	require.NoError(t, err)
	require.Zero(t, n)
}

// sameAsAll holds that SplitAll finds what repeated Split finds.
func sameAsAll(t *testing.T, b []byte, lane Lane) {
	n, frames, tells, err := 0, 0, 0, error(nil)
	for {
		var frame []byte
		var size int
		if frame, size, err = Split(b[n:], lane, 4096); err != nil || size == 0 {
			break
		}
		if IsTell(frame) {
			tells++
		}
		n += size
		frames++
	}
	n2, frames2, tells2, err2 := SplitAll(b, lane, 4096)
	require.Equal(t, tells, tells2)
	require.Equal(t, n, n2)
	require.Equal(t, frames, frames2)
	require.Equal(t, err, err2)
}

func TestSplitAll(t *testing.T) {
	var b []byte
	for size := range 20 {
		b = AppendEnvelope(b, &Envelope{Flags: uint8(size % 8), ID: []byte("id"), Payload: make([]byte, size)})
	}
	for end := range len(b) + 1 {
		sameAsAll(t, b[:end], LaneData)
		sameAsAll(t, append(b[:end:end], 1, 0, 0, 0, byte(KindReply), 0, 0, 0), LaneData) // a size below the header's
		sameAsAll(t, append(b[:end:end], 9, 0, 0, 0, byte(KindGossip), 0, 0, 0, 0), LaneData)
	}
}

// FuzzSplit feeds garbage: no panic, and a frame that comes out is what its header says.
func FuzzSplit(f *testing.F) {
	f.Add(AppendFrame(nil, KindMarker, 0, 0, make([]byte, 16)), true)
	f.Add(AppendFrame(nil, KindGossip, 0, 0, []byte("x")), false)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), false)
	f.Add([]byte{255, 255, 255, 255, 16, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, data bool) {
		lane := LaneControl
		if data {
			lane = LaneData
		}
		frame, n, err := Split(b, lane, 4096)
		sameAsAll(t, b, lane)
		switch {
		case err != nil:
			var we *Error
			require.ErrorAs(t, err, &we)
			require.Zero(t, n)
		case n > 0:
			require.Equal(t, int(binary.LittleEndian.Uint32(b)), n)
			require.Equal(t, b[:n], frame)
			require.Equal(t, lane, ParseHeader(frame).Kind.Lane())
			require.LessOrEqual(t, n, 4096)
		default:
			require.True(t, len(b) < HeaderSize || len(b) < int(binary.LittleEndian.Uint32(b)))
		}
	})
}
