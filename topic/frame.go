// Frames: a message on its way to a node, and the numbers by which that one knows what it missed.

package topic

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxName bounds the name of a topic, in bytes.
const MaxName = 200

// format is the first byte of a frame. A node that reads no such format drops the message, and counts it.
const format = 1

// overhead is how many bytes a frame has beside the payload, at most: format, incarnation, number, name, publisher.
const overhead = 1 + 8 + 8 + 2 + MaxName + 300

// noKind is what errors of these readers are about: a frame of topics is the payload of a message.
const noKind = wire.Kind(0)

// errFrame is wrapped by the error of a frame that no node of this version sends.
var errFrame = errors.New("topic: a frame that nobody here reads")

// frame is what a node gets.
type frame struct {
	to      uint64 // incarnation
	number  uint64 // from 1, of the publisher's node to this one
	name    string
	from    kith.ID
	payload []byte // memory of the frame
}

func appendFrame(b []byte, f *frame) []byte {
	b = wire.AppendU64(wire.AppendU64(append(b, format), f.to), f.number)
	return append(peer.AppendID(wire.AppendString(b, f.name), f.from), f.payload...)
}

func parseFrame(b []byte) (frame, error) {
	r := wire.NewReader(noKind, b)
	if v := r.U8(); r.Err() == nil && v != format {
		return frame{}, fmt.Errorf("%w: format %d", errFrame, v)
	}
	f := frame{to: r.U64(), number: r.U64(), name: r.String(MaxName), from: peer.ReadID(&r)}
	f.payload = r.Rest()
	if err := r.Err(); err != nil {
		return frame{}, fmt.Errorf("%w: %w", errFrame, err)
	}
	return f, nil
}

// key is a node in the set of those that have subscribers.
func key(id kith.ID) string { return string(peer.AppendID(nil, id)) }

// nodeOf is the node of a key; false: it is none.
func nodeOf(key string) (kith.ID, bool) {
	r := wire.NewReader(noKind, []byte(key))
	id := peer.ReadID(&r)
	return id, r.Done() == nil
}

// stream is what came from one publisher's node: the number of its last message, and which message of the topic here
// that was.
type stream struct {
	number, at uint64
	gone       time.Time // when the node was seen to be no member any more; zero: it is one
}

// next takes note of a message, the n-th of the topic here. It returns how many of the publisher's were missed before
// it, and which message here was the last before those; false: a later one has come, and it counts as missed already.
func (s *stream) next(number, n uint64) (missed, since uint64, ok bool) {
	if number <= s.number {
		return 0, 0, false
	}
	missed, since = number-s.number-1, s.at
	s.number, s.at = number, n
	return missed, since, true
}
