// Pack: the gzip around a version, made once and kept with it (GOS-8).

package members

import (
	"bytes"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/kith-io/kith/wire"
)

const (
	maxStateSize = wire.MaxControlFrame
	gzipRatio    = 1032 // the most that deflate can expand
	flagGzip     = 1 << 0
)

// Packed is a version as it travels: flags, and the bytes that they describe. Immutable.
type Packed struct {
	flags byte
	bytes []byte
}

// packOf returns the packed form of v: what it came in, or what is made now and kept.
func (c *coder) packOf(v *Version) Packed {
	if v.packed.bytes == nil {
		flags, b := c.pack(v.canonical())
		if flags&flagGzip != 0 {
			b = slices.Clone(b)
		}
		v.packed = Packed{flags, b}
	}
	return v.packed
}

// coder packs and unpacks states. Its gzip halves are made when first needed and kept.
type coder struct {
	above int
	w     *gzip.Writer
	out   bytes.Buffer
	r     *gzip.Reader
	in    bytes.Reader
	raw   []byte
}

// pack returns flags and bytes of a state's payload: plain, or its length and its gzip form when that is smaller.
// They are valid until the next pack.
func (c *coder) pack(plain []byte) (flags byte, packed []byte) {
	if len(plain) < c.above {
		return 0, plain
	}
	c.out.Reset()
	c.out.Write(wire.AppendUvarint(nil, uint64(len(plain))))
	if c.w == nil {
		c.w, _ = gzip.NewWriterLevel(&c.out, gzip.DefaultCompression) // a known level: cannot fail
	} else {
		c.w.Reset(&c.out)
	}
	// Writing to memory cannot fail.
	_, _ = c.w.Write(plain)
	_ = c.w.Close()
	if c.out.Len() >= len(plain) {
		return 0, plain
	}
	return flagGzip, c.out.Bytes()
}

// unpack returns the plain payload, valid until the next unpack. The announced length is believed only up to what
// these bytes can expand to, and never above the limit of a control frame. What could not be unpacked leaves no memory
// behind.
func (c *coder) unpack(kind wire.Kind, flags byte, packed []byte) (plain []byte, err error) {
	if flags&flagGzip == 0 {
		return packed, nil
	}
	if plain, err = c.inflate(kind, packed); err != nil {
		c.raw = nil
	}
	return plain, err
}

func (c *coder) inflate(kind wire.Kind, packed []byte) ([]byte, error) {
	r := wire.NewReader(kind, packed)
	size := r.Uvarint()
	if r.Err() == nil && (size > maxStateSize || size > uint64(r.Len())*gzipRatio) {
		r.Fail(wire.ErrTooLarge)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	at := r.Offset()
	c.in.Reset(r.Rest())
	var err error
	if c.r == nil {
		c.r, err = gzip.NewReader(&c.in)
	} else {
		err = c.r.Reset(&c.in)
	}
	if err != nil {
		return nil, &wire.Error{Kind: kind, Offset: at, Err: wire.ErrBadValue}
	}
	c.r.Multistream(false)
	c.raw = slices.Grow(c.raw[:0], int(size))[:size]
	if _, err = io.ReadFull(c.r, c.raw); err != nil {
		return nil, &wire.Error{Kind: kind, Offset: at, Err: wire.ErrTruncated}
	}
	var more [1]byte
	if n, err := c.r.Read(more[:]); n != 0 || err != io.EOF || c.in.Len() != 0 {
		return nil, &wire.Error{Kind: kind, Offset: at, Err: wire.ErrTrailing}
	}
	return c.raw, nil
}

// AppendPacked appends u8 flags and the bytes, which end a body.
func AppendPacked(b []byte, p Packed) []byte { return append(append(b, p.flags), p.bytes...) }

// ReadPacked reads the rest of a body as a packed version; its bytes are a view into the body.
func ReadPacked(r *wire.Reader) Packed {
	p := Packed{flags: r.U8()}
	check(r, p.flags&^flagGzip == 0, true)
	p.bytes = r.Rest()
	return p
}

// Plain returns the same version without gzip; ok is false when there is none around it, or it cannot be unpacked.
func (p Packed) Plain(kind wire.Kind) (plain Packed, ok bool) {
	if p.flags&flagGzip == 0 {
		return p, false
	}
	var c coder
	b, err := c.unpack(kind, p.flags, p.bytes)
	return Packed{p.flags &^ flagGzip, b}, err == nil
}
