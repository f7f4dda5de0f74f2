// Tests of the frames of large messages: the bounds of a begin and a chunk, references, no allocation, garbage.

package wire

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBulkBeginRefuses holds that number and size are in their bounds before anybody believes them.
func TestBulkBeginRefuses(t *testing.T) {
	ok := BulkBegin{Number: 1, Size: MaxBulkSize}
	_, err := ParseBulkBegin(AppendBulkBegin(nil, &ok))
	require.NoError(t, err)
	for name, b := range map[string]BulkBegin{
		"no number": {Size: 1}, "no size": {Number: 1}, "too large": {Number: 1, Size: MaxBulkSize + 1},
	} {
		_, err := ParseBulkBegin(AppendBulkBegin(nil, &b))
		require.ErrorIs(t, err, ErrBadValue, name)
	}
	bad := AppendBulkBegin(nil, &ok)
	bad[32] = 2
	_, err = ParseBulkBegin(bad)
	require.ErrorIs(t, err, ErrBadValue, "neither a message nor a reply")
}

// TestBulkOverRefuses holds that a limit fits an int, and that a message which was taken has none.
func TestBulkOverRefuses(t *testing.T) {
	for _, ok := range []BulkOver{{1, 0, 0}, {1, 11, 0}, {1, 11, math.MaxInt64}} {
		got, err := ParseBulkOver(AppendBulkOver(nil, ok))
		require.NoError(t, err)
		require.Equal(t, ok, got)
	}
	for _, bad := range []BulkOver{{1, 0, 1}, {1, 11, math.MaxInt64 + 1}} {
		_, err := ParseBulkOver(AppendBulkOver(nil, bad))
		require.Equal(t, &Error{KindBulkOver, 14, ErrBadValue}, err)
	}
}

// TestBulkChunkHead reads the head of a chunk that has not arrived yet, and refuses what is none.
func TestBulkChunkHead(t *testing.T) {
	whole := AppendBulkChunk([]byte("x"), 7, make([]byte, 100))[1:]
	number, part, err := ParseBulkChunk(whole[:BulkChunkHead])
	require.NoError(t, err)
	require.Equal(t, []any{uint32(7), 100}, []any{number, part})
	for cut := range BulkChunkHead {
		_, _, err = ParseBulkChunk(whole[:cut:cut])
		require.Equal(t, &Error{KindBulkChunk, cut, ErrTruncated}, err)
	}
	number, rest, err := SplitBulkChunk(Body(whole))
	require.NoError(t, err)
	require.EqualValues(t, 7, number)
	require.Equal(t, Body(whole)[4:], rest)
	for cut := range 5 { // and without a byte of the part
		_, _, err = SplitBulkChunk(Body(whole)[:cut:cut])
		require.Error(t, err, "%d bytes", cut)
	}
	_, _, err = ParseBulkChunk(AppendBulkChunk(nil, 7, nil))
	require.ErrorIs(t, err, ErrTooSmall)
	_, _, err = ParseBulkChunk(AppendBulkChunk(nil, 0, []byte("hi")))
	require.ErrorIs(t, err, ErrBadValue)
	_, _, err = ParseBulkChunk(AppendBulkChunk(nil, 1, make([]byte, MaxBulkChunk)))
	require.NoError(t, err)
	_, _, err = ParseBulkChunk(AppendBulkChunk(nil, 1, make([]byte, MaxBulkChunk+1)))
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestBulkRef reads a reference back, and refuses every other length.
func TestBulkRef(t *testing.T) {
	want := BulkRef{1, 2}
	b := AppendBulkRef(nil, want)
	require.Len(t, b, BulkRefSize)
	got, err := ParseBulkRef(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for cut := range b {
		_, err = ParseBulkRef(b[:cut:cut])
		require.ErrorIs(t, err, ErrTruncated)
	}
	_, err = ParseBulkRef(append(b, 0))
	require.ErrorIs(t, err, ErrTrailing)
}

// TestBulkFramesDoNotAllocate holds zero allocations for what each chunk costs (CARD-4).
func TestBulkFramesDoNotAllocate(t *testing.T) {
	part, scratch := make([]byte, 64<<10), make([]byte, 0, 128<<10)
	for name, run := range map[string]func(){
		"chunk": func() { scratch = AppendBulkChunk(scratch[:0], 7, part); _, _, _ = ParseBulkChunk(scratch) },
		"grant": func() { scratch = AppendBulkGrant(scratch[:0], BulkGrant{1, 2}); _, _ = ParseBulkGrant(scratch) },
		"ref":   func() { scratch = AppendBulkRef(scratch[:0], BulkRef{1, 2}); _, _ = ParseBulkRef(scratch) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, run), name)
	}
}

// FuzzBulk feeds garbage to every decoder of the bulk connection: no panic; what is accepted encodes to the same bytes.
func FuzzBulk(f *testing.F) {
	f.Add(uint8(KindBulkBegin), AppendBulkBegin(nil, &BulkBegin{Number: 1, Size: 2, Reply: true}))
	f.Add(uint8(KindBulkGrant), AppendBulkGrant(nil, BulkGrant{1, 2}))
	f.Add(uint8(KindBulkOver), AppendBulkOver(nil, BulkOver{1, 2, 3}))
	f.Add(uint8(KindBulkOver), AppendBulkOver(nil, BulkOver{Number: 1}))
	f.Add(uint8(KindBulkAbort), AppendBulkNumber(nil, 1))
	f.Add(uint8(KindBulkChunk), []byte{1, 0, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		switch k := Kind(kind); k {
		case KindBulkBegin:
			if b, err := ParseBulkBegin(body); err == nil {
				require.Equal(t, body, AppendBulkBegin(nil, &b))
			}
		case KindBulkGrant:
			if g, err := ParseBulkGrant(body); err == nil {
				require.Equal(t, body, AppendBulkGrant(nil, g))
			}
		case KindBulkOver:
			if o, err := ParseBulkOver(body); err == nil {
				require.Equal(t, body, AppendBulkOver(nil, o))
			}
		case KindBulkChunk:
			frame := AppendFrame(nil, k, 0, 0, body)
			if number, n, err := ParseBulkChunk(frame); err == nil {
				require.Equal(t, frame, AppendBulkChunk(nil, number, frame[len(frame)-n:]))
			}
			if number, part, err := SplitBulkChunk(body); err == nil {
				require.Equal(t, frame, AppendBulkChunk(nil, number, part))
			}
		case KindBulkAbort, KindBulkWhole:
			if n, err := ParseBulkNumber(k, body); err == nil {
				require.Equal(t, body, AppendBulkNumber(nil, n))
			}
		default:
			if ref, err := ParseBulkRef(body); err == nil {
				require.Equal(t, body, AppendBulkRef(nil, ref))
			}
		}
	})
}
