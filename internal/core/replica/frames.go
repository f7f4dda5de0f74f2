// Frames: what nodes say to one another about replicated values.

package replica

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of frames and of what they carry, in bytes.
const (
	MaxName   = 255      // of a key
	maxKind   = 64       // the name of a kind
	maxFrame  = 16 << 10 // of a body, unless one entry alone is longer
	maxBody   = 12 << 10 // of deltas and of states that travel whole
	maxState  = 4 << 20  // of a state that is taken: four times MaxValue
	buckets   = 256
	minDelta  = peer.MinIDSize + 3
	minEntry  = 2
	maxDeltas = 1 << 12
)

// mode says what the sender of a held frame wants.
type mode uint8

const (
	wantMissing mode = 1 << iota // send me what I lack
	wantCompare                  // and tell me what you lack
	wantTold                     // tell me what you hold
	isAnswer                     // the nonce is the receiver's
)

// heldFrame says what its sender holds of some keys.
type heldFrame struct {
	nonce uint64 // of what somebody waits for; zero: nothing
	mode  mode
	list  []keyHeld
}

type keyHeld struct {
	name string
	held held
}

func appendKeyHeld(b []byte, k keyHeld) []byte {
	return appendHeld(wire.AppendString(b, k.name), k.held)
}

// appendHeldFrame appends the body of a KindReplicaHeld frame: nonce (8), mode (1), how many keys (varint), and for
// each its name and what is held of it.
func appendHeldFrame(b []byte, f *heldFrame) []byte {
	b = wire.AppendUvarint(wire.AppendU8(wire.AppendU64(b, f.nonce), uint8(f.mode)), uint64(len(f.list)))
	for _, k := range f.list {
		b = appendKeyHeld(b, k)
	}
	return b
}

func parseHeldFrame(body []byte) (*heldFrame, error) {
	r := wire.NewReader(wire.KindReplicaHeld, body)
	f := &heldFrame{nonce: r.U64(), mode: mode(r.U8())}
	if f.mode >= isAnswer<<1 {
		r.Fail(wire.ErrBadValue)
	}
	for range r.Count(minEntry, MaxKeys) {
		k := keyHeld{r.String(MaxName), readHeld(&r)}
		if r.Err() != nil {
			break
		}
		f.list = append(f.list, k)
	}
	return f, r.Done()
}

// delta is what updates of one incarnation changed, those behind after up to upTo.
type delta struct {
	by          peer.ID
	after, upTo uint64
	body        []byte
}

// keyDeltas are deltas of one key, those of one incarnation in order.
type keyDeltas struct {
	name, kind string
	list       []delta
}

// appendKeyDeltas appends a key's entry of a KindReplicaDeltas frame, which begins with a nonce (8) and ends with its
// body: name, kind, how many deltas (varint), and for each its maker, after (varint), how many updates (varint) and
// the delta with its length.
func appendKeyDeltas(b []byte, k *keyDeltas) []byte {
	b = wire.AppendString(wire.AppendString(b, k.name), k.kind)
	b = wire.AppendUvarint(b, uint64(len(k.list)))
	for _, d := range k.list {
		b = wire.AppendUvarint(wire.AppendUvarint(peer.AppendID(b, d.by), d.after), d.upTo-d.after)
		b = wire.AppendBytes(b, d.body)
	}
	return b
}

func parseDeltas(body []byte) (nonce uint64, list []keyDeltas, err error) {
	r := wire.NewReader(wire.KindReplicaDeltas, body)
	nonce = r.U64()
	for r.Err() == nil && r.Len() > 0 {
		k := keyDeltas{name: r.String(MaxName), kind: r.String(maxKind)}
		for range r.Count(minDelta, maxDeltas) {
			d := delta{by: peer.ReadID(&r), after: r.Uvarint()}
			n := r.Uvarint()
			d.upTo = d.after + n
			if d.body = r.Bytes(maxState); n == 0 || d.upTo < d.after {
				r.Fail(wire.ErrBadValue)
			}
			if r.Err() != nil {
				break
			}
			k.list = append(k.list, d)
		}
		list = append(list, k)
	}
	return nonce, list, r.Done()
}

// piece is a part of a whole state: of what is held, and the value, as one run of bytes.
type piece struct {
	nonce      uint64 // of what somebody waits for
	transfer   uint64 // which state of its sender this is
	name, kind string
	total      int
	offset     int
	bytes      []byte
}

// appendPiece appends the body of a KindReplicaPiece frame: nonce (8), transfer (8), name, kind, total (varint), offset
// (varint), and the bytes to the end.
func appendPiece(b []byte, p *piece) []byte {
	b = wire.AppendU64(wire.AppendU64(b, p.nonce), p.transfer)
	b = wire.AppendString(wire.AppendString(b, p.name), p.kind)
	return append(wire.AppendUvarint(wire.AppendUvarint(b, uint64(p.total)), uint64(p.offset)), p.bytes...)
}

func parsePiece(body []byte) (*piece, error) {
	r := wire.NewReader(wire.KindReplicaPiece, body)
	p := &piece{nonce: r.U64(), transfer: r.U64(), name: r.String(MaxName), kind: r.String(maxKind)}
	p.total, p.offset = r.Count(0, maxState), r.Count(0, maxState)
	p.bytes = r.Rest()
	if r.Err() == nil && (len(p.bytes) == 0 || p.offset+len(p.bytes) > p.total) {
		r.Fail(wire.ErrBadValue)
	}
	return p, r.Done()
}

// appendNext appends the body of a KindReplicaNext frame, which asks for the next piece: transfer (8), offset (varint).
func appendNext(b []byte, transfer uint64, offset int) []byte {
	return wire.AppendUvarint(wire.AppendU64(b, transfer), uint64(offset))
}

func parseNext(body []byte) (transfer uint64, offset int, err error) {
	r := wire.NewReader(wire.KindReplicaNext, body)
	transfer, offset = r.U64(), r.Count(0, maxState)
	return transfer, offset, r.Done()
}

// parseState reads the run of bytes that pieces make: what is held, and the value.
func parseState(run []byte) (held, []byte, error) {
	r := wire.NewReader(0, run)
	h := readHeld(&r)
	value := r.Rest()
	return h, value, r.Done()
}

func parseDigest(body []byte) (uint64, error) {
	r := wire.NewReader(wire.KindReplicaDigest, body)
	v := r.U64()
	return v, r.Done()
}

// appendSums appends the body of a KindReplicaSums frame: the sum of each bucket (8 each).
func appendSums(b []byte, sums *[buckets]uint64) []byte {
	for _, s := range sums {
		b = wire.AppendU64(b, s)
	}
	return b
}

func parseSums(body []byte) (sums [buckets]uint64, err error) {
	r := wire.NewReader(wire.KindReplicaSums, body)
	for i := range sums {
		sums[i] = r.U64()
	}
	return sums, r.Done()
}
