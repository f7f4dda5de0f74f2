// Micro measures: encoding and decoding one envelope, hashing one id, in this process and without a socket.

package bench

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/wire"
)

// The message of all workloads that are held against bulk.
const (
	PayloadBytes = 64
	IDBytes      = 16
	FrameBytes   = wire.EnvelopeSize + IDBytes + PayloadBytes // what such a message takes on the wire
	replyBytes   = wire.ReplySize + PayloadBytes
)

// ID returns the id of the i-th entity of a workload: 16 bytes.
func ID(i int) string { return fmt.Sprintf("entity-%09d", i) }

// IDs returns the ids of the first n entities.
func IDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = ID(i)
	}
	return ids
}

// microTime is how long one micro measure runs.
const microTime = 100 * time.Millisecond

// PerCall returns nanoseconds per call over about a tenth of a second: f runs its argument's number of calls.
func PerCall(f func(n int)) float64 {
	f(1000) // warm
	n := 1000
	for {
		begin := time.Now()
		f(n)
		if took := time.Since(begin); took >= microTime || n > 1<<30 {
			return float64(took) / float64(n)
		}
		n *= 2
	}
}

// sink keeps results alive.
var sink uint64

// Micro returns frame_bytes, encode_ns, decode_ns and hash_ns. Region's type decides the number of shards.
func Micro(region *kith.Region) Figures {
	f, ids := Codec(), IDs(1024)
	f["hash_ns"] = PerCall(func(n int) {
		for i := range n {
			sink += uint64(region.Shard(ids[i&1023]))
		}
	})
	return f
}

// Codec returns frame_bytes, encode_ns, decode_ns and parse_ns: one envelope written in place; one of a batch that is
// split and then parsed frame by frame, as a read is; and one parsed that is at hand as a whole, which is what other
// codecs' decoding of a message is.
func Codec() Figures {
	ids := IDs(1024)
	payload := make([]byte, PayloadBytes)
	frame := make([]byte, FrameBytes)
	env := wire.Envelope{Type: 1, Shard: 2, Term: 3, Epoch: 4, Payload: payload}
	f := Figures{"frame_bytes": FrameBytes}
	f["encode_ns"] = PerCall(func(n int) {
		for i := range n {
			wire.PutPlainEnvelope(frame, &env, ids[i&1023])
		}
	})
	batch := make([]byte, 0, 64*FrameBytes)
	for i := range 64 {
		env.ID = []byte(ids[i])
		batch = wire.AppendEnvelope(batch, &env)
	}
	f["decode_ns"] = PerCall(func(n int) {
		var e wire.Envelope
		sum := uint64(0)
		defer func() { sink += sum }()
		for at, whole := 0, 0; n > 0; n-- {
			if at == whole {
				var err error
				if whole, _, _, err = wire.SplitAll(batch, wire.LaneData, wire.DefaultMaxFrame); err != nil {
					panic(err) // the batch was encoded above
				}
				at = 0
			}
			end := at + int(binary.LittleEndian.Uint32(batch[at:]))
			if err := wire.ParseEnvelope(batch[at:end:end], &e); err != nil {
				panic(err)
			}
			sum += uint64(len(e.ID)) + uint64(len(e.Payload))
			at = end
		}
	})
	frames := make([][]byte, 0, 64)
	for rest := batch; len(rest) > 0; rest = rest[FrameBytes:] {
		frames = append(frames, rest[:FrameBytes:FrameBytes])
	}
	f["parse_ns"] = PerCall(func(n int) {
		var e wire.Envelope
		sum := uint64(0)
		for i := range n {
			if err := wire.ParseEnvelope(frames[i&63], &e); err != nil {
				panic(err)
			}
			sum += uint64(len(e.ID)) + uint64(len(e.Payload))
		}
		sink += sum
	})
	return f
}
