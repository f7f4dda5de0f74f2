// Frames: the eight-byte header, appending a frame, and splitting a stream of bytes into frames.

package wire

import "encoding/binary"

// Sizes and limits. MaxFrame values come from the configuration; these are the protocol's own bounds.
const (
	HeaderSize      = 8         // bytes of a frame header
	EnvelopeSize    = 32        // bytes of an envelope header, the frame header included
	ReplySize       = 16        // bytes of a reply header, the frame header included
	MaxIDSize       = 1024      // longest entity id, bytes
	DefaultMaxFrame = 1 << 20   // default limit of a data frame, bytes
	MaxControlFrame = 8 << 20   // limit of a control frame, bytes (a full state of 10,000 members fits)
	MinFrameLimit   = 4096      // least configurable frame limit
	MaxFrameLimit   = 256 << 20 // largest configurable frame limit
)

// Header is the decoded frame header.
type Header struct {
	Size  uint32 // of the whole frame, header included
	Kind  Kind
	Flags uint8
	Aux   uint16
}

// PutHeader writes a frame header into b, which has at least HeaderSize bytes.
func PutHeader(b []byte, h Header) {
	_ = b[7]
	binary.LittleEndian.PutUint32(b, h.Size)
	b[4], b[5] = byte(h.Kind), h.Flags
	binary.LittleEndian.PutUint16(b[6:], h.Aux)
}

// ParseHeader reads the header of a frame that has at least HeaderSize bytes.
func ParseHeader(b []byte) Header {
	_ = b[7]
	return Header{binary.LittleEndian.Uint32(b), Kind(b[4]), b[5], binary.LittleEndian.Uint16(b[6:])}
}

// AppendFrame appends a whole frame with the given body.
func AppendFrame(dst []byte, k Kind, flags uint8, aux uint16, body []byte) []byte {
	dst, at := BeginFrame(dst, k, flags, aux)
	dst = append(dst, body...)
	EndFrame(dst, at)
	return dst
}

// BeginFrame appends a header with a size that EndFrame fills in, and returns where the frame starts.
func BeginFrame(dst []byte, k Kind, flags uint8, aux uint16) ([]byte, int) {
	at := len(dst)
	var h [HeaderSize]byte
	PutHeader(h[:], Header{Kind: k, Flags: flags, Aux: aux})
	return append(dst, h[:]...), at
}

// EndFrame writes the size of the frame that began at offset at and ends at the end of dst.
func EndFrame(dst []byte, at int) { binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at)) }

// Split returns the first whole frame of b as a view and its size. A frame that is not whole yet gives n = 0 and no
// error. An error, always an *Error, means that the stream is beyond repair: unknown kind, wrong lane, size below the
// header, over limit or over what its kind ever needs. It is found as soon as the header is there, so a caller never
// waits for bytes that it will not accept. The frames of the hello count as control frames on both connections.
func Split(b []byte, lane Lane, limit int) (frame []byte, n int, err error) {
	if len(b) < HeaderSize {
		return nil, 0, nil
	}
	size, k := binary.LittleEndian.Uint32(b), Kind(b[4])
	info := &kinds[k]
	if uint64(size) > uint64(limit) || size-HeaderSize > info.most || info.lane != lane || info.most == 0 {
		return nil, 0, splitError(size, k, lane, limit)
	}
	if uint64(len(b)) < uint64(size) {
		return nil, 0, nil
	}
	return b[:size:size], int(size), nil
}

// SplitAll returns how many bytes of b are whole frames, how many frames they are, as repeated Split would find, and
// how many of them are tells, as IsTell says. An error is that of the first frame behind them.
func SplitAll(b []byte, lane Lane, limit int) (n, frames, tells int, err error) {
	for last := len(b) - HeaderSize; n <= last; frames++ {
		// By index: each begin depends on the size before it, and a slice would make that chain longer.
		size, k := uint32(b[n])|uint32(b[n+1])<<8|uint32(b[n+2])<<16|uint32(b[n+3])<<24, Kind(b[n+4])
		info := &kinds[k]
		if uint64(size) > uint64(limit) || size-HeaderSize > info.most || info.lane != lane || info.most == 0 {
			return n, frames, tells, splitError(size, k, lane, limit)
		}
		if int(size) > len(b)-n {
			break
		}
		if k == KindEnvelope && b[n+5]&(FlagAsk|FlagBulk) == 0 {
			tells++
		}
		n += int(size)
	}
	return n, frames, tells, nil
}

func splitError(size uint32, k Kind, lane Lane, limit int) error {
	switch {
	case !k.Known():
		return &Error{k, 4, ErrBadKind}
	case k.Lane() != lane:
		return &Error{k, 4, ErrBadLane}
	case size < HeaderSize:
		return &Error{k, 0, ErrTooSmall}
	}
	return &Error{k, 0, ErrTooLarge}
}

// SizeOf returns the size of the frame that b begins with, which has at least HeaderSize bytes. It is what the frame
// says: Split judges it.
func SizeOf(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

// KindOf returns the kind of the frame that b begins with, which has at least HeaderSize bytes.
func KindOf(b []byte) Kind { return Kind(b[4]) }

// Body returns the body of a whole frame as a view.
func Body(frame []byte) []byte { return frame[HeaderSize:] }
