// Laws of the buffers against plain models, and what they allocate.

package ringbuf

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestDoubleModel runs random reservations, swaps and trims against a byte slice: what a swap hands out is exactly what
// was written since the last one, it stays untouched until the next, and bounds hold at every step.
func TestDoubleModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 5*DoubleClass).Draw(t, "limit")
		d := &Double{Limit: limit}
		var model, out, outCopy []byte
		fill := byte(0)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "verb") {
			case 0:
				out = d.Swap()
				require.True(t, bytes.Equal(model, out))
				require.Equal(t, len(out), cap(out))
				model, outCopy = model[:0], bytes.Clone(out)
			case 1:
				d.Trim()
				if len(model) == 0 {
					require.Zero(t, d.Held())
				}
			default:
				n := rapid.IntRange(0, DoubleClass).Draw(t, "n")
				span, err := d.Reserve(n)
				if len(model)+n > limit {
					require.ErrorIs(t, err, ErrFull)
					require.Nil(t, span)
					break
				}
				require.NoError(t, err)
				require.Len(t, span, n)
				fill++
				for i := range span {
					span[i] = fill
				}
				model = append(model, span...)
			}
			require.Equal(t, len(model), d.Len())
			require.Equal(t, limit-len(model), d.Room())
			require.LessOrEqual(t, d.Held(), 2*limit)
			require.True(t, bytes.Equal(outCopy, out), "handed-out bytes changed under the flusher")
		}
	})
}

// TestDoubleReserveAbsurd holds that lengths nobody can have are refused, not believed.
func TestDoubleReserveAbsurd(t *testing.T) {
	for _, limit := range []int{0, 1, DoubleClass, math.MaxInt} {
		d := Double{Limit: limit}
		if limit < math.MaxInt {
			_, err := d.Reserve(math.MaxInt)
			require.ErrorIs(t, err, ErrFull)
			_, err = d.Reserve(limit + 1)
			require.ErrorIs(t, err, ErrFull)
		} else {
			_, err := d.Reserve(10)
			require.NoError(t, err)
			_, err = d.Reserve(math.MaxInt)
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, 10, d.Len())
		}
	}
}

// TestDoubleGrowsByClasses holds the sizes: the first class, then doubled, never over the limit.
func TestDoubleGrowsByClasses(t *testing.T) {
	d := &Double{Limit: 3*DoubleClass + 1}
	require.Zero(t, d.Held())
	for _, c := range []struct{ n, held int }{
		{1, DoubleClass}, {DoubleClass - 1, DoubleClass}, {1, 2 * DoubleClass}, {DoubleClass, 3*DoubleClass + 1},
	} {
		_, err := d.Reserve(c.n)
		require.NoError(t, err)
		require.Equal(t, c.held, d.Held())
	}
}

// TestQueueModel runs random pushes and pops against a slice of records.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 3*QueueKeep).Draw(t, "limit")
		longest := rapid.SampledFrom([]int{0, 3, 60, 2000, 3 * QueueKeep}).Draw(t, "longest")
		bias := rapid.IntRange(1, 9).Draw(t, "bias")
		q := NewQueue(limit)
		var model [][]byte
		size := 0
		fill := byte(0)
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "verb") < bias {
				rec := make([]byte, rapid.IntRange(0, longest).Draw(t, "n"))
				fill++
				for i := range rec {
					rec[i] = fill
				}
				err := q.Push(rec)
				if size+len(rec)+RecordOverhead > limit {
					require.ErrorIs(t, err, ErrFull)
				} else {
					require.NoError(t, err)
					model = append(model, rec)
					size += len(rec) + RecordOverhead
				}
			} else if q.Pop(); len(model) > 0 {
				size -= len(model[0]) + RecordOverhead
				model = model[1:]
			}
			require.Equal(t, len(model), q.Len())
			require.Equal(t, size, q.Bytes())
			require.LessOrEqual(t, q.Held(), 2*limit)
			if len(model) == 0 {
				require.Nil(t, q.Peek())
				require.LessOrEqual(t, q.Held(), QueueKeep)
			} else {
				require.True(t, bytes.Equal(model[0], q.Peek()), "oldest record")
				require.NotNil(t, q.Peek())
			}
		}
		for _, rec := range model {
			require.True(t, bytes.Equal(rec, q.Peek()), "order")
			q.Pop()
		}
		require.Zero(t, q.Bytes())
	})
}

// TestQueueLong keeps small queues nearly full for many laps, so that records meet the end of the ring, and each other,
// at every distance; each record's bytes are its own number.
func TestQueueLong(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		q := NewQueue(200 + int(seed)*7)
		longest := 1 + random.IntN(90)
		var model [][]byte
		for step := range 5000 {
			rec := bytes.Repeat([]byte{byte(step)}, random.IntN(longest+1))
			if q.Push(rec) == nil {
				model = append(model, rec)
			}
			for q.Len() > 0 && (q.Limit-q.Bytes() < longest || random.IntN(9) == 0) {
				if !bytes.Equal(model[0], q.Peek()) {
					t.Fatalf("seed %d step %d: oldest record is %v, want %v", seed, step, q.Peek(), model[0])
				}
				q.Pop()
				model = model[1:]
			}
		}
		require.Len(t, model, q.Len())
	}
}

// TestQueueMeetsItsHead wraps two records of every size in front of the oldest one: they fit exactly, or the ring
// grows; they never run into it.
func TestQueueMeetsItsHead(t *testing.T) {
	fill := func(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }
	grown := 0
	for third := range 70 {
		for fourth := range 70 {
			q := NewQueue(1000)
			records := [][]byte{fill(60, 1), fill(queueFirst-60-2*RecordOverhead, 2), fill(third, 3), fill(fourth, 4)}
			require.NoError(t, q.Push(records[0]))
			require.NoError(t, q.Push(records[1]))
			require.Equal(t, queueFirst, q.Held(), "both fill the first ring to its last byte")
			q.Pop()
			for _, rec := range records[2:] {
				require.NoError(t, q.Push(rec))
			}
			if q.Held() > queueFirst {
				grown++
			} else {
				require.LessOrEqual(t, third+fourth+2*RecordOverhead, 60+RecordOverhead)
			}
			for i, rec := range records[1:] {
				if !bytes.Equal(rec, q.Peek()) {
					t.Fatalf("sizes %d and %d: record %d is %v", third, fourth, i+1, q.Peek())
				}
				q.Pop()
			}
		}
	}
	require.Equal(t, 70*70-57*58/2, grown, "it grows only when the two do not fit")
}

// TestQueueViewOutlivesGrowth holds that a peeked record stays as it is while others are pushed.
func TestQueueViewOutlivesGrowth(t *testing.T) {
	q := NewQueue(1 << 20)
	require.NoError(t, q.Push([]byte("oldest")))
	view := q.Peek()
	for i := range 1000 {
		require.NoError(t, q.Push(fmt.Append(nil, "record ", i)))
		require.Equal(t, "oldest", string(view))
		require.Equal(t, "oldest", string(q.Peek()))
	}
}

// TestQueueAbsurd holds bounds at their edges.
func TestQueueAbsurd(t *testing.T) {
	q := Queue{Limit: RecordOverhead + 10}
	_, err := q.Reserve(math.MaxInt)
	require.ErrorIs(t, err, ErrFull)
	_, err = q.Reserve(11)
	require.ErrorIs(t, err, ErrFull)
	span, err := q.Reserve(10)
	require.NoError(t, err)
	require.Len(t, span, 10)
	require.ErrorIs(t, q.Push(nil), ErrFull, "an empty record is not free")
	require.ErrorIs(t, (&Queue{}).Push(nil), ErrFull)
	require.Panics(t, func() { _, _ = q.Reserve(-1) })
	q.Reset()
	require.Zero(t, q.Len()+q.Bytes())
	q.Pop()
	require.Nil(t, q.Peek())
}

// TestNoAllocation holds that warm buffers allocate nothing (CARD-4).
func TestNoAllocation(t *testing.T) {
	d, q := &Double{Limit: 1 << 20}, NewQueue(1<<20)
	rec := make([]byte, 108)
	var sum int
	for name, run := range map[string]func(){
		"double": func() {
			for range 100 {
				span, err := d.Reserve(len(rec))
				if err != nil {
					t.Fatal(err)
				}
				copy(span, rec)
			}
			sum += len(d.Swap())
		},
		"queue": func() {
			for range 20 {
				if err := q.Push(rec); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				sum += len(q.Peek())
				q.Pop()
			}
		},
	} {
		run()
		run()
		require.Zero(t, testing.AllocsPerRun(100, run), name)
	}
	require.Positive(t, sum)
}
