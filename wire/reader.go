// Reader is the cursor of every decoder: it checks each length before it believes it and keeps the first error.

package wire

import "encoding/binary"

// Reader reads values from a body front to back. After the first error every read returns zero values and Err says
// what happened, so a decoder reads straight through and checks once. Views returned by Bytes and Rest point into the
// input.
type Reader struct {
	b    []byte
	off  int
	kind Kind
	err  *Error
}

// NewReader returns a cursor at the start of body; kind names the frame in errors.
func NewReader(kind Kind, body []byte) Reader { return Reader{b: body, kind: kind} }

// Fail records err at the current offset unless an error stands already.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = &Error{Kind: r.kind, Offset: r.off, Err: err}
		r.b = r.b[:min(r.off, len(r.b))]
	}
}

// Err returns the first error as *Error, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Done returns the first error, or ErrTrailing when unread bytes are left.
func (r *Reader) Done() error {
	if r.err == nil && r.off != len(r.b) {
		r.Fail(ErrTrailing)
	}
	return r.Err()
}

// Len returns how many bytes are unread.
func (r *Reader) Len() int { return len(r.b) - r.off }

// Offset returns how many bytes have been read.
func (r *Reader) Offset() int { return r.off }

func (r *Reader) take(n int) []byte {
	if n < 0 || n > len(r.b)-r.off {
		r.Fail(ErrTruncated)
		return nil
	}
	v := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	return v
}

// U8 reads one byte.
func (r *Reader) U8() uint8 {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

// Bool reads one byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	v := r.U8()
	if v > 1 {
		r.off--
		r.Fail(ErrBadValue)
		return false
	}
	return v == 1
}

// U16 reads two bytes.
func (r *Reader) U16() uint16 {
	if v := r.take(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

// U32 reads four bytes.
func (r *Reader) U32() uint32 {
	if v := r.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// U64 reads eight bytes.
func (r *Reader) U64() uint64 {
	if v := r.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// Uvarint reads a varint of at most ten bytes, in its shortest form: each number has one encoding, so that equal values
// have equal bytes and digests.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b[r.off:])
	if n == 0 {
		r.Fail(ErrTruncated)
		return 0
	}
	if n < 0 || n > 1 && r.b[r.off+n-1] == 0 {
		r.Fail(ErrBadValue)
		return 0
	}
	r.off += n
	return v
}

// Count reads a varint that counts entries of at least least bytes each and must not exceed limit. It is checked
// against the bytes that are left, so the caller may allocate that many entries.
func (r *Reader) Count(least, limit int) int {
	at := r.off
	v := r.Uvarint()
	if r.err != nil {
		return 0
	}
	if v > uint64(max(limit, 0)) {
		r.off = at
		r.Fail(ErrTooLarge)
		return 0
	}
	if least > 0 && v > uint64(r.Len()/least) {
		r.off = at
		r.Fail(ErrTruncated)
		return 0
	}
	return int(v)
}

// Fixed reads n bytes as a view into the input.
func (r *Reader) Fixed(n int) []byte { return r.take(n) }

// Bytes reads a varint length of at most limit and that many bytes, as a view into the input.
func (r *Reader) Bytes(limit int) []byte {
	n := r.Count(1, limit)
	if r.err != nil {
		return nil
	}
	return r.take(n)
}

// String reads a varint length of at most limit and that many bytes, copied into a string.
func (r *Reader) String(limit int) string { return string(r.Bytes(limit)) }

// Rest reads everything that is left, as a view into the input.
func (r *Reader) Rest() []byte { return r.take(r.Len()) }
