// Tests of the queue between a read pass and a worker: frames keep their order and their origin, however they came.

package exec

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/wire"
)

// TestQueueKeepsFramesAndOrigins appends passes of any length, messages of this node and parked frames, takes at any
// time, and demands every frame once, in order, with its origin, and a buffer that the next pass may overwrite.
func TestQueueKeepsFramesAndOrigins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q execQueue
		q.init(1<<20, func() bool { return true })
		origins := []*Source{nil, {}, {}}
		type entry struct {
			from *Source
			n    uint32
			size int
		}
		var want, got []entry
		number := uint32(0)
		frame := func(buf []byte, from *Source, size int) []byte {
			number++
			want = append(want, entry{from, number, size})
			return wire.AppendFrame(buf, wire.KindEnvelope, 0, 0, append(wire.AppendU32(nil, number), make([]byte, size)...))
		}
		var stage []byte
		take := func() {
			for b := q.take(); b != nil; b = q.take() {
				total := 0
				b.frames(func(from *Source, f []byte) {
					r := wire.NewReader(wire.KindEnvelope, wire.Body(f))
					got = append(got, entry{from, r.U32(), r.Len()})
					total += len(f)
				})
				require.Equal(t, b.size, total)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			from := rapid.SampledFrom(origins).Draw(t, "from")
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0:
				take()
			case 1:
				require.True(t, q.appendFrame(frame(nil, nil, rapid.IntRange(0, 300).Draw(t, "size"))))
			default:
				for range rapid.IntRange(1, 30).Draw(t, "frames") {
					stage = frame(stage, from, rapid.IntRange(0, 2000).Draw(t, "size"))
				}
				stage = q.appendRead(nil, from, stage)
				require.Empty(t, stage)
				clear(stage[:cap(stage)]) // the next pass writes over it
			}
		}
		take()
		require.Equal(t, want, got)
		require.LessOrEqual(t, q.in.kept+q.out.kept, 2*keepBatch)
	})
}

// However many connections take turns with one short frame each, what a worker that lags behind, or a closed gate,
// holds takes memory by its size: not a buffer of full length for each frame.
func TestManyOriginsInTurn(t *testing.T) {
	const frame, frames = 40, 20_000
	origins := []*Source{{}, {}, {}}
	for of := 1; of <= len(origins); of++ {
		var b batch
		for i := range frames {
			b.room(nil, origins[i%of], frame)
		}
		held := 0
		for i := range b.chunks {
			held += cap(b.chunks[i].buf)
		}
		require.Equal(t, frame*frames, b.size)
		require.LessOrEqual(t, held, keepBatch+frames*leastChunk, "%d origins", of)
		b.reset()
		require.LessOrEqual(t, b.kept, keepBatch)
		for _, buf := range b.spare {
			require.GreaterOrEqual(t, cap(buf), adoptBytes, "small ones are not kept")
		}
	}
}
