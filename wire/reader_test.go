// Tests of the primitives: golden bytes, round trips, truncation at every byte, bounds before belief.

package wire

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/spent"
)

// sample appends one value of every primitive; readSample reads them back.
func sample(b []byte) []byte {
	b = AppendU8(b, 0xab)
	b = AppendBool(b, true)
	b = AppendBool(b, false)
	b = AppendU16(b, 0x0102)
	b = AppendU32(b, 0x01020304)
	b = AppendU64(b, 0x0102030405060708)
	b = AppendUvarint(b, 300)
	b = AppendBytes(b, []byte{9, 8})
	return AppendString(b, "kith")
}

const sampleHex = "ab" + "01" + "00" + "0201" + "04030201" + "0807060504030201" + "ac02" + "020908" + "046b697468"

func readSample(r *Reader) (u8 uint8, yes, no bool, u16 uint16, u32 uint32, u64, v uint64, b []byte, s string) {
	return r.U8(), r.Bool(), r.Bool(), r.U16(), r.U32(), r.U64(), r.Uvarint(), r.Bytes(8), r.String(8)
}

// TestPrimitivesGolden freezes the bytes of every primitive and reads them back (CARD-4).
func TestPrimitivesGolden(t *testing.T) {
	b := sample(nil)
	require.Equal(t, sampleHex, hex.EncodeToString(b))
	r := NewReader(KindStatus, b)
	u8, yes, no, u16, u32, u64, v, view, s := readSample(&r)
	require.NoError(t, r.Done())
	require.Equal(t, []any{uint8(0xab), true, false, uint16(0x0102), uint32(0x01020304), uint64(0x0102030405060708),
		uint64(300), []byte{9, 8}, "kith"}, []any{u8, yes, no, u16, u32, u64, v, view, s})
	require.Equal(t, 2, cap(view), "a view must not reach into what follows it")
}

// TestReaderTruncatedAtEveryByte cuts the sample at every byte: always ErrTruncated at or before the cut, never a
// panic, never a value from beyond it.
func TestReaderTruncatedAtEveryByte(t *testing.T) {
	whole := sample(nil)
	for cut := range whole {
		r := NewReader(KindStatus, whole[:cut:cut])
		readSample(&r)
		err := r.Done()
		require.ErrorIs(t, err, ErrTruncated, "cut at %d", cut)
		var we *Error
		require.ErrorAs(t, err, &we)
		require.Equal(t, KindStatus, we.Kind)
		require.LessOrEqual(t, we.Offset, cut)
	}
}

// TestReaderKeepsItsFirstError reads on behind an error: zero values, the same error, no panic.
func TestReaderKeepsItsFirstError(t *testing.T) {
	r := NewReader(KindGossip, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	r.U16()
	r.Fail(ErrBadOrder)
	first := r.Err()
	u8, yes, no, u16, u32, u64, v, view, s := readSample(&r)
	require.Equal(t, []any{uint8(0), false, false, uint16(0), uint32(0), uint64(0), uint64(0), []byte(nil), ""},
		[]any{u8, yes, no, u16, u32, u64, v, view, s})
	r.Fail(ErrTooLarge)
	require.Zero(t, r.Len())
	require.Empty(t, r.Rest())
	require.Nil(t, r.Fixed(1))
	require.Zero(t, r.Count(1, 10))
	require.Same(t, first, r.Done())
	require.EqualError(t, first, "wire: gossip at byte 2: entries out of order")
	require.ErrorIs(t, first, ErrBadOrder)
}

// TestReaderRefuses holds each reason and the offset at which it is given.
func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		read       func(*Reader)
		want       error
		offset     int
	}{
		{"trailing", "0102", func(r *Reader) { r.U8() }, ErrTrailing, 1},
		{"bool 2", "0002", func(r *Reader) { r.Bool(); r.Bool() }, ErrBadValue, 1},
		{"varint over 64 bits", "ffffffffffffffffff02", func(r *Reader) { r.Uvarint() }, ErrBadValue, 0},
		{"varint of eleven bytes", "8080808080808080808001", func(r *Reader) { r.Uvarint() }, ErrBadValue, 0},
		{"varint not shortest", "8000", func(r *Reader) { r.Uvarint() }, ErrBadValue, 0},
		{"varint not shortest, large", "ffff00", func(r *Reader) { r.Uvarint() }, ErrBadValue, 0},
		{"varint cut", "80", func(r *Reader) { r.Uvarint() }, ErrTruncated, 0},
		{"count over limit", "0b", func(r *Reader) { r.Count(0, 10) }, ErrTooLarge, 0},
		{"count over negative limit", "01", func(r *Reader) { r.Count(0, -1) }, ErrTooLarge, 0},
		{"count over what is left", "04000000", func(r *Reader) { r.Count(1, 10) }, ErrTruncated, 0},
		{"count over what is left, wide", "02" + strings.Repeat("00", 15), func(r *Reader) { r.Count(8, 10) },
			ErrTruncated, 0},
		{"count of 2^64-1", "ffffffffffffffffff01", func(r *Reader) { r.Count(1, math.MaxInt) }, ErrTooLarge, 0},
		{"count of 2^62", "808080808080808040", func(r *Reader) { r.Count(1, math.MaxInt) }, ErrTruncated, 0},
		{"bytes over limit", "03000000", func(r *Reader) { r.Bytes(2) }, ErrTooLarge, 0},
		{"string over what is left", "0300", func(r *Reader) { _ = r.String(9) }, ErrTruncated, 0},
		{"fixed over what is left", "00", func(r *Reader) { r.Fixed(2) }, ErrTruncated, 0},
		{"fixed negative", "00", func(r *Reader) { r.Fixed(-1) }, ErrTruncated, 0},
	} {
		body, err := hex.DecodeString(c.body)
		require.NoError(t, err)
		r := NewReader(KindVersion, body)
		c.read(&r)
		require.Equal(t, &Error{KindVersion, c.offset, c.want}, r.Done(), c.name)
	}
}

// TestReaderRest reads what is left as one view.
func TestReaderRest(t *testing.T) {
	r := NewReader(KindVersion, []byte{1, 2, 3})
	r.U8()
	require.Equal(t, 1, r.Offset())
	require.Equal(t, []byte{2, 3}, r.Rest())
	require.NoError(t, r.Done())
	require.Equal(t, []byte{}, r.Rest())
	require.NoError(t, r.Done())
}

// TestReaderAllocations holds that reading allocates nothing but strings and errors.
func TestReaderAllocations(t *testing.T) {
	body := sample(nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := NewReader(KindStatus, body)
		r.U8()
		r.Bool()
		r.Bool()
		r.U16()
		r.U32()
		r.U64()
		r.Uvarint()
		r.Bytes(8)
		r.Bytes(8)
		if r.Done() != nil {
			t.Fatal("does not read back")
		}
	}))
	buffer := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() { buffer = sample(buffer[:0]) }))
}

// TestUvarintRoundTrip is the law: every number has one encoding, and it reads back.
func TestUvarintRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v")
		b := AppendUvarint(nil, v)
		r := NewReader(KindStatus, b)
		require.Equal(t, v, r.Uvarint())
		require.NoError(t, r.Done())
	})
}

// FuzzReader runs any sequence of reads over any bytes: no panic, the offset stays inside, views lie inside the input,
// an error is always an *Error and stays the first.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}, sample(nil))
	f.Add([]byte{6, 8, 9}, []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, program, body []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(body)) }()
		r := NewReader(KindGossip, body)
		var first error
		for _, op := range program {
			switch op % 10 {
			case 0:
				r.U8()
			case 1:
				r.Bool()
			case 2:
				r.U16()
			case 3:
				r.U32()
			case 4:
				r.U64()
			case 5:
				r.Uvarint()
			case 6:
				require.LessOrEqual(t, r.Count(int(op/10), 1000)*int(op/10), len(body))
			case 7:
				require.LessOrEqual(t, len(r.Bytes(int(op))), int(op))
			case 8:
				require.LessOrEqual(t, len(r.String(int(op))), len(body))
			case 9:
				r.Fixed(int(op / 10))
			}
			require.True(t, r.Offset() >= 0 && r.Offset() <= len(body) && r.Len() >= 0)
			if first == nil {
				first = r.Err()
			}
			if first != nil {
				require.Same(t, first, r.Err())
			}
		}
	})
}
