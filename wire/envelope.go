// Envelope, reply, marker and credit: the frames of the data plane, encoded in place and parsed as views.

package wire

import "encoding/binary"

// Flags of an envelope.
const (
	FlagAsk    uint8 = 1 << 0 // Corr holds a correlation; an answer is wanted
	FlagParked uint8 = 1 << 1 // was parked before it was sent: never refused for a full mailbox
	FlagBulk   uint8 = 1 << 2 // the payload is a BulkRef: the message itself has come over the bulk connection
	FlagWait   uint8 = 1 << 3 // its sender waits for room: taken though the mailbox is full, which it hears; version 4

	FlagLimit   uint8 = 1 << 4 // behind the id stands how long an ask is waited for; since version 4
	FlagHeaders uint8 = 1 << 5 // behind that stand headers, of which the sender's application knows; since version 4

	flagsPlain = FlagAsk | FlagParked | FlagBulk | FlagWait // nothing stands between id and payload
	flagsKnown = flagsPlain | FlagLimit | FlagHeaders
)

// Envelope is one message to one entity. ID, Payload and Headers are views into the frame. Limit means something with
// FlagLimit alone, and Headers with FlagHeaders: a reader of a frame without these flags leaves both as they were.
//
//	offset 0  u32 size, u8 kind, u8 flags, u16 length of the id      (frame header)
//	       8  u32 type    hash of the type's name
//	      12  u32 shard
//	      16  u32 term    short fence: with the connection's cluster birth it is the fence
//	      20  u32 epoch
//	      24  u64 correlation: zero for a tell
//	      32  id, then with FlagLimit a u32, with FlagHeaders a u16 and as many bytes, then payload to the end
type Envelope struct {
	Flags       uint8
	Type, Shard uint32
	Term, Epoch uint32
	Corr        uint64
	ID, Payload []byte
	Limit       uint32 // milliseconds: see Depart
	Headers     []byte // at most MaxHeaders
}

// MaxHeaders is the most bytes of headers of one message.
const MaxHeaders = 4 << 10

// MaxMore is the most bytes that Envelope.More returns.
const MaxMore = limitSize + headersSize + MaxHeaders

// More returns how many bytes stand between the id and the payload: none without FlagLimit and FlagHeaders.
func (e *Envelope) More() int {
	n := 0
	if e.Flags&FlagLimit != 0 {
		n = limitSize
	}
	if e.Flags&FlagHeaders != 0 {
		n += headersSize + len(e.Headers)
	}
	return n
}

const (
	limitSize   = 4 // bytes of a limit
	headersSize = 2 // bytes of the length of headers
)

// SizeEnvelope returns the bytes of an envelope frame with nothing between id and payload; with it, Envelope.More come
// on top.
func SizeEnvelope(idLen, payloadLen int) int { return EnvelopeSize + idLen + payloadLen }

// PutEnvelope writes an envelope frame into b, which has exactly SizeEnvelope and e.More bytes. The id is given as a
// string so that callers need not convert; e.ID is ignored. The caller has checked that the id is not empty and not
// longer than MaxIDSize, and that headers are not longer than MaxHeaders.
func PutEnvelope(b []byte, e *Envelope, id string) {
	if e.Flags&^flagsPlain == 0 {
		PutPlainEnvelope(b, e, id)
	} else {
		e.putWithMore(b, id)
	}
}

// PutPlainEnvelope is PutEnvelope for an envelope without a limit and without headers, as most are: it is small enough
// to be inlined where each nanosecond counts.
func PutPlainEnvelope(b []byte, e *Envelope, id string) {
	_ = b[31]
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	b[4], b[5] = byte(KindEnvelope), e.Flags
	binary.LittleEndian.PutUint16(b[6:], uint16(len(id)))
	binary.LittleEndian.PutUint32(b[8:], e.Type)
	binary.LittleEndian.PutUint32(b[12:], e.Shard)
	binary.LittleEndian.PutUint32(b[16:], e.Term)
	binary.LittleEndian.PutUint32(b[20:], e.Epoch)
	binary.LittleEndian.PutUint64(b[24:], e.Corr)
	body := b[32:]
	copy(body[copy(body, id):], e.Payload)
}

// putWithMore is PutEnvelope for an envelope with a limit or headers, which stand between id and payload.
func (e *Envelope) putWithMore(b []byte, id string) {
	n := EnvelopeSize + len(id)
	PutPlainEnvelope(b[:n], e, id) // which has no room for the payload
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	b = b[n:]
	if e.Flags&FlagLimit != 0 {
		binary.LittleEndian.PutUint32(b, e.Limit)
		b = b[limitSize:]
	}
	if e.Flags&FlagHeaders != 0 {
		binary.LittleEndian.PutUint16(b, uint16(len(e.Headers)))
		b = b[headersSize:]
		b = b[copy(b, e.Headers):]
	}
	copy(b, e.Payload)
}

// AppendEnvelope appends an envelope frame.
func AppendEnvelope(dst []byte, e *Envelope) []byte {
	var h [EnvelopeSize]byte // of fixed size, so that nothing is checked
	binary.LittleEndian.PutUint32(h[:], uint32(SizeEnvelope(len(e.ID), len(e.Payload))+e.More()))
	h[4], h[5] = byte(KindEnvelope), e.Flags
	binary.LittleEndian.PutUint16(h[6:], uint16(len(e.ID)))
	binary.LittleEndian.PutUint32(h[8:], e.Type)
	binary.LittleEndian.PutUint32(h[12:], e.Shard)
	binary.LittleEndian.PutUint32(h[16:], e.Term)
	binary.LittleEndian.PutUint32(h[20:], e.Epoch)
	binary.LittleEndian.PutUint64(h[24:], e.Corr)
	dst = append(append(dst, h[:]...), e.ID...)
	if e.Flags&FlagLimit != 0 {
		dst = AppendU32(dst, e.Limit)
	}
	if e.Flags&FlagHeaders != 0 {
		dst = append(AppendU16(dst, uint16(len(e.Headers))), e.Headers...)
	}
	return append(dst, e.Payload...)
}

// ParseEnvelope reads a whole envelope frame, as Split returned it, into e; ID and Payload then point into the
// frame. On an error e is unchanged.
func ParseEnvelope(f []byte, e *Envelope) error {
	if len(f) < EnvelopeSize {
		return &Error{KindEnvelope, len(f), ErrTruncated}
	}
	h := (*[EnvelopeSize]byte)(f) // of fixed size, so that nothing is checked below
	n := int(binary.LittleEndian.Uint16(h[6:]))
	end := EnvelopeSize + n
	if uint(n-1) >= MaxIDSize || end > len(f) || h[5]&^flagsPlain != 0 {
		return parseMore(f, n, e)
	}
	e.Flags = h[5]
	e.Type = binary.LittleEndian.Uint32(h[8:])
	e.Shard = binary.LittleEndian.Uint32(h[12:])
	e.Term = binary.LittleEndian.Uint32(h[16:])
	e.Epoch = binary.LittleEndian.Uint32(h[20:])
	e.Corr = binary.LittleEndian.Uint64(h[24:])
	e.ID, e.Payload = f[EnvelopeSize:end:end], f[end:]
	return nil
}

// parseMore is ParseEnvelope for a frame that has something between the id of n bytes and the payload, or is refused.
func parseMore(f []byte, n int, e *Envelope) error {
	if uint(n-1) >= MaxIDSize || EnvelopeSize+n > len(f) || f[5]&^flagsKnown != 0 {
		return envelopeError(f, n)
	}
	flags, limit, headers, payload := f[5], e.Limit, e.Headers, f[EnvelopeSize+n:]
	if flags&FlagLimit != 0 {
		if len(payload) < limitSize {
			return &Error{KindEnvelope, len(f), ErrTruncated}
		}
		limit, payload = binary.LittleEndian.Uint32(payload), payload[limitSize:]
	}
	if flags&FlagHeaders != 0 {
		if len(payload) < headersSize {
			return &Error{KindEnvelope, len(f), ErrTruncated}
		}
		at, size := len(f)-len(payload), int(binary.LittleEndian.Uint16(payload))
		payload = payload[headersSize:]
		switch {
		case size > MaxHeaders:
			return &Error{KindEnvelope, at, ErrTooLarge}
		case size > len(payload):
			return &Error{KindEnvelope, len(f), ErrTruncated}
		}
		headers, payload = payload[:size:size], payload[size:]
	}
	e.Flags, e.Limit, e.Headers = flags, limit, headers // field by field, and only now: an error changes nothing
	e.Type = binary.LittleEndian.Uint32(f[8:])
	e.Shard = binary.LittleEndian.Uint32(f[12:])
	e.Term = binary.LittleEndian.Uint32(f[16:])
	e.Epoch = binary.LittleEndian.Uint32(f[20:])
	e.Corr = binary.LittleEndian.Uint64(f[24:])
	e.ID, e.Payload = f[EnvelopeSize:EnvelopeSize+n:EnvelopeSize+n], payload
	return nil
}

// StampParked marks an envelope that waited for its home, and writes the fence under which it goes there. frame is a
// whole envelope.
func StampParked(frame []byte, term, epoch uint32) {
	_ = frame[EnvelopeSize-1]
	frame[5] |= FlagParked
	binary.LittleEndian.PutUint32(frame[16:], term)
	binary.LittleEndian.PutUint32(frame[20:], epoch)
}

// Unflag takes flags off a whole frame if it is an envelope.
func Unflag(frame []byte, flags uint8) {
	if frame[4] == byte(KindEnvelope) {
		frame[5] &^= flags
	}
}

// IsTell reports whether a frame of at least HeaderSize bytes is the envelope of a tell that carries its payload.
func IsTell(f []byte) bool {
	return f[4] == byte(KindEnvelope) && f[5]&(FlagAsk|FlagBulk) == 0
}

// AddressOf returns the type and the shard of an envelope frame and looks at nothing else: the one that it is handed on
// to parses it. ok is false for a frame of another kind, and for one that is too short.
func AddressOf(f []byte) (typ, shard uint32, ok bool) {
	if len(f) < EnvelopeSize || f[4] != byte(KindEnvelope) {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint32(f[8:]), binary.LittleEndian.Uint32(f[12:]), true
}

func envelopeError(f []byte, n int) error {
	switch {
	case f[5]&^flagsKnown != 0:
		return &Error{KindEnvelope, 5, ErrBadValue}
	case n == 0:
		return &Error{KindEnvelope, 6, ErrTooSmall}
	case n > MaxIDSize:
		return &Error{KindEnvelope, 6, ErrTooLarge}
	}
	return &Error{KindEnvelope, len(f), ErrTruncated}
}

// PutReply writes a reply frame into b, which has exactly ReplySize + len(payload) bytes. Status zero is success,
// any other is a delivery reason (package route) and the payload is its text.
//
//	offset 0  u32 size, u8 kind, u8 flags, u16 status      (frame header)
//	       8  u64 correlation
//	      16  payload
func PutReply(b []byte, status uint16, corr uint64, payload []byte) {
	_ = b[15]
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	b[4], b[5] = byte(KindReply), 0
	binary.LittleEndian.PutUint16(b[6:], status)
	binary.LittleEndian.PutUint64(b[8:], corr)
	copy(b[16:], payload)
}

// ParseReply reads a whole reply frame, as Split returned it; payload is a view.
func ParseReply(f []byte) (status uint16, corr uint64, payload []byte, err error) {
	if len(f) < ReplySize {
		return 0, 0, nil, &Error{KindReply, len(f), ErrTruncated}
	}
	if f[5] != 0 {
		return 0, 0, nil, &Error{KindReply, 5, ErrBadValue}
	}
	return binary.LittleEndian.Uint16(f[6:]), binary.LittleEndian.Uint64(f[8:]), f[ReplySize:], nil
}

// CancelSize is how long a frame is by which an asker gives up.
const CancelSize = HeaderSize + 8

// PutCancel writes the frame by which the asker of a correlation gives up into b, which has exactly CancelSize bytes.
func PutCancel(b []byte, corr uint64) {
	_ = b[CancelSize-1]
	binary.LittleEndian.PutUint32(b, CancelSize)
	b[4], b[5], b[6], b[7] = byte(KindCancel), 0, 0, 0
	binary.LittleEndian.PutUint64(b[HeaderSize:], corr)
}

// ParseCancel reads the body of a cancel frame: the correlation.
func ParseCancel(body []byte) (corr uint64, err error) {
	r := NewReader(KindCancel, body)
	corr = r.U64()
	return corr, r.Done()
}

// Credit tells a sender how much of one of its data connections has been consumed.
type Credit struct {
	Lane       uint16 // which data connection of the peer pair
	Generation uint32 // of that connection, chosen by the sender in its hello
	Consumed   uint64 // running total of bytes since the connection began
}

// AppendCredit appends the body of a credit frame (14 bytes).
func AppendCredit(dst []byte, c Credit) []byte {
	return AppendU64(AppendU32(AppendU16(dst, c.Lane), c.Generation), c.Consumed)
}

// ParseCredit reads the body of a credit frame.
func ParseCredit(body []byte) (Credit, error) {
	r := NewReader(KindCredit, body)
	c := Credit{r.U16(), r.U32(), r.U64()}
	return c, r.Done()
}

// Marker stands on a data connection behind the last envelope of a shard before a move.
type Marker struct {
	Type, Shard uint32
	Term, Seq   uint32 // number of the move
}

// AppendMarker appends the body of a marker frame (16 bytes).
func AppendMarker(dst []byte, m Marker) []byte {
	return AppendU32(AppendU32(AppendU32(AppendU32(dst, m.Type), m.Shard), m.Term), m.Seq)
}

// ParseMarker reads the body of a marker frame.
func ParseMarker(body []byte) (Marker, error) {
	r := NewReader(KindMarker, body)
	m := Marker{r.U32(), r.U32(), r.U32(), r.U32()}
	return m, r.Done()
}
