// Limits: how long an ask is waited for, as frames in memory and frames on the wire carry it.

package wire

import "encoding/binary"

// MaxLimit is the longest limit that travels, in milliseconds: half of what the numbers tell apart, and a little less.
const MaxLimit = 1 << 30

// Left returns how many milliseconds before a moment it is at now, both counted modulo 1<<32 from one origin: zero or
// below when the moment has come.
func Left(moment, now uint32) int32 { return int32(moment - now) }

// limitField returns the bytes of an envelope's limit, nil without one. It may be given what a peer has sent: a frame
// that does not parse has none.
func limitField(f []byte) []byte {
	if len(f) < EnvelopeSize || f[4] != byte(KindEnvelope) || f[5]&FlagLimit == 0 {
		return nil
	}
	at := EnvelopeSize + int(binary.LittleEndian.Uint16(f[6:]))
	if at+limitSize > len(f) {
		return nil
	}
	return f[at : at+limitSize]
}

// Depart readies whole frames of our own for the wire, in place, and returns them. In memory a limit is a moment of the
// node's clock, in milliseconds modulo 1<<32, so that waiting counts; on the wire it is what is left, since clocks
// differ: zero when the moment has come. now is the clock, rounded down. A peer that speaks a version before 4 is sent
// no limits and no headers: they are cut out, and the frames become shorter.
func Depart(frames []byte, now uint32, version uint16) []byte {
	if version != 0 && version < kindMore {
		return strip(frames)
	}
	for rest := frames; len(rest) > 0; {
		n := SizeOf(rest)
		if l := limitField(rest[:n]); l != nil {
			left := Left(binary.LittleEndian.Uint32(l), now)
			binary.LittleEndian.PutUint32(l, uint32(max(left, 0)))
		}
		rest = rest[n:]
	}
	return frames
}

// Arrive turns the limit of a frame that has come at now, rounded up, into a moment of this node's clock: one that has
// passed when nothing is left. A frame without one stays as it is.
func Arrive(frame []byte, now uint32) {
	l := limitField(frame)
	if l == nil {
		return
	}
	left := min(binary.LittleEndian.Uint32(l), MaxLimit)
	if left == 0 {
		now-- // the present, rounded up, may not have come yet
	}
	binary.LittleEndian.PutUint32(l, now+left)
}

// ArriveAll is Arrive of whole frames.
func ArriveAll(frames []byte, now uint32) {
	for len(frames) > 0 {
		n := SizeOf(frames)
		Arrive(frames[:n], now)
		frames = frames[n:]
	}
}

// kindMore is the version in which limits and headers came.
const kindMore = 4

// strip cuts limits and headers out of whole frames of our own, in place.
func strip(frames []byte) []byte {
	out := frames[:0]
	for len(frames) > 0 {
		n := SizeOf(frames)
		f := frames[:n]
		frames = frames[n:]
		var e Envelope
		if f[4] != byte(KindEnvelope) || f[5]&^flagsPlain == 0 || ParseEnvelope(f, &e) != nil {
			out = append(out, f...)
			continue
		}
		at := len(out)
		out = append(out, f[:EnvelopeSize+len(e.ID)]...)
		out = append(out, e.Payload...)
		binary.LittleEndian.PutUint32(out[at:], uint32(len(out)-at))
		out[at+5] &= flagsPlain
	}
	return out
}
