// Streams: numbered messages to entities picked at random, at a rate; what came of them is in the ledgers of the
// receivers.

package fleet

import (
	"context"
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// TellSize is the size of a numbered message: sender (4 bytes), number (8), little-endian. Longer ones carry padding.
const TellSize = 12

// Note notes a numbered message, which has TellSize bytes at least, on the page of the entity that it has reached.
func Note(p *ledger.Page, message []byte) {
	p.Add(binary.LittleEndian.Uint32(message), binary.LittleEndian.Uint64(message[4:]))
}

// Stream is one sender. Its numbers are its own: where another sender takes over it has another ID.
type Stream struct {
	ID     uint32
	Region *kith.Region
	IDs    []string // of the entities
	Large  int      // one message of so many is a large one; zero: none
	Size   int      // of these
	Sent   atomic.Uint64

	seqs []uint64 // by entity: the last number that was accepted
}

// notAccepted is the pause before a message is sent again that was not accepted.
const notAccepted = time.Millisecond

// Tell sends so many messages a second, or, where that is zero, as many as are accepted, until ctx ends. A number is
// used up only by a message that was accepted.
func (s *Stream) Tell(ctx context.Context, perSecond float64) {
	s.seqs = make([]uint64, len(s.IDs))
	r := rand.New(rand.NewPCG(uint64(s.ID), 0))
	room := make([]byte, max(TellSize, s.Size))
	binary.LittleEndian.PutUint32(room, s.ID)
	n := 0
	for range Due(ctx, perSecond, Early) {
		i, size := r.IntN(len(s.IDs)), TellSize
		if n++; s.Large > 0 && n%s.Large == 0 {
			size = s.Size
		}
		binary.LittleEndian.PutUint64(room[4:], s.seqs[i]+1)
		for s.Region.TellWait(ctx, s.IDs[i], room[:size]) != nil {
			if !cli.Pause(ctx, notAccepted) {
				return
			}
		}
		s.seqs[i]++
		s.Sent.Add(1)
	}
}

// Counts returns how many numbers were used for which entity, when Tell has returned.
func (s *Stream) Counts() map[string]uint64 {
	m := map[string]uint64{}
	for i, n := range s.seqs {
		if n > 0 {
			m[s.IDs[i]] = n
		}
	}
	return m
}

// Early is how early tells may go, so that not each of them waits for a timer of its own.
const Early = time.Millisecond

// Due yields the moments at which something is to be done, so many a second, each at most so early, until ctx ends.
// Those that have passed while its caller was busy come at once, each as the moment that it was. Zero a second is as
// fast as the caller is, and the moments mean nothing.
func Due(ctx context.Context, perSecond float64, early time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		begin := time.Now()
		for n, at := 0, begin; ctx.Err() == nil; n++ {
			if perSecond > 0 {
				at = begin.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
				if wait := time.Until(at); wait > early && !cli.Pause(ctx, wait) {
					return
				}
			}
			if !yield(at) {
				return
			}
		}
	}
}

// NewTimes returns a histogram from a microsecond to a minute, in nanoseconds, to three digits.
func NewTimes() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
}

// EncodeTimes returns a histogram for AddTimes.
func EncodeTimes(h *hdrhistogram.Histogram) ([]byte, error) {
	return h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// AddTimes adds what EncodeTimes has returned elsewhere.
func AddTimes(h *hdrhistogram.Histogram, encoded []byte) error {
	more, err := hdrhistogram.Decode(encoded)
	if err == nil {
		h.Merge(more)
	}
	return err
}
