// Parcel: a message from a service of one node to the same service of another, past entities, in pieces.

package wire

// MaxParcelPiece is the most bytes of one piece, so that what comes behind it need not wait for long.
const MaxParcelPiece = 32 << 10

// parcelHead is how long a piece is beside its bytes.
const parcelHead = 9

// Parcel is one piece. The pieces of a message follow one another on one data connection; what began on a connection
// that breaks is not continued.
type Parcel struct {
	Service     uint64 // the low half of xxhash64 of a name
	First, Last bool   // of the message
	Piece       []byte // a view when it was parsed
}

// AppendParcel appends a whole frame.
func AppendParcel(dst []byte, p *Parcel) []byte {
	var flags uint8
	if p.First {
		flags |= 1
	}
	if p.Last {
		flags |= 2
	}
	dst, at := BeginFrame(dst, KindParcel, 0, 0)
	dst = append(AppendU8(AppendU64(dst, p.Service), flags), p.Piece...)
	EndFrame(dst, at)
	return dst
}

// ParcelSize returns how long the frame of a piece of so many bytes is.
func ParcelSize(piece int) int { return HeaderSize + parcelHead + piece }

// ParseParcel reads a body. The piece is a view.
func ParseParcel(body []byte) (Parcel, error) {
	r := NewReader(KindParcel, body)
	p := Parcel{Service: r.U64()}
	flags := r.U8()
	p.First, p.Last = flags&1 != 0, flags&2 != 0
	if p.Piece = r.Rest(); r.Err() == nil && (flags > 3 || len(p.Piece) == 0) {
		r.Fail(ErrBadValue)
	}
	return p, r.Done()
}
