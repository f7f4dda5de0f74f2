// Laws of the buffers by class: the budget, the share of small ones, and what is kept.

package ringbuf

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestClassesHandOutTheSmallestThatFits(t *testing.T) {
	c := NewClasses(1<<30, 100_000, 0)
	for _, e := range []struct{ n, size int }{{0, DoubleClass}, {1, DoubleClass}, {DoubleClass, DoubleClass},
		{DoubleClass + 1, 2 * DoubleClass}, {3 * DoubleClass, 4 * DoubleClass}, {4*DoubleClass + 1, 100_000},
		{100_000, 100_000}} {
		b := c.Get(e.n)
		require.Empty(t, b)
		require.Equal(t, e.size, cap(b), "for %d bytes", e.n)
		c.Put(b)
	}
	require.Nil(t, c.Get(100_001))
	require.EqualValues(t, 1, c.Refused())
	require.Equal(t, 100, cap(NewClasses(1<<20, 100, 0).Get(1)), "one class, below the first")
}

// The last quarter of the budget is for small buffers: what few large ones hold takes none from the others.
func TestClassesKeepAShareForSmallBuffers(t *testing.T) {
	c := NewClasses(16*DoubleClass, 16*DoubleClass, 0)
	var large [][]byte
	for b := c.Get(4 * DoubleClass); b != nil; b = c.Get(4 * DoubleClass) {
		large = append(large, b)
	}
	require.Len(t, large, 3)
	require.True(t, c.Tight())
	for range 4 {
		require.NotNil(t, c.Get(1))
	}
	require.Nil(t, c.Get(1), "the budget is used up")
	require.Equal(t, c.Limit(), c.Out())
	c.Put(large[0])
	require.NotNil(t, c.Get(1))
	require.Nil(t, c.Get(4*DoubleClass))
}

// A buffer that comes back twice, or was never handed out, is found at once.
func TestClassesRefuseStrangers(t *testing.T) {
	c := NewClasses(1<<30, 1<<20, 1<<20)
	b := c.Get(1)
	c.Put(b)
	require.Panics(t, func() { c.Put(b) })
	c = NewClasses(1<<30, 1<<20, 1<<20)
	require.Panics(t, func() { c.Put(make([]byte, DoubleClass+1)) })
	c.Put(nil)
}

// TestClassesModel: whatever is taken and given back, the books are right, no buffer is in two hands, at most Limit is
// out, at most Keep is kept, and what nobody asks for over two trims is gone.
func TestClassesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 40).Draw(t, "limit") * DoubleClass
		most := rapid.IntRange(1, 12*DoubleClass).Draw(t, "most")
		keep := rapid.IntRange(0, 20).Draw(t, "keep") * DoubleClass
		c := NewClasses(limit, most, keep)
		var held [][]byte
		out := 0
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "verb") {
			case 0:
				c.Trim()
			case 1, 2, 3, 4:
				if len(held) == 0 {
					break
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				out -= cap(held[i])
				c.Put(held[i])
				held = append(held[:i], held[i+1:]...)
			default:
				n := rapid.IntRange(0, most).Draw(t, "n")
				b := c.Get(n)
				if b == nil {
					require.Less(t, limit-limit/firstShare-out, max(2*n, DoubleClass), "refused with room")
					break
				}
				require.Empty(t, b)
				require.GreaterOrEqual(t, cap(b), n)
				b = b[:1]
				for _, other := range held {
					require.NotSame(t, &b[0], &other[:1][0], "one buffer in two hands")
				}
				held = append(held, b)
				out += cap(b)
			}
			require.Equal(t, out, c.Out())
			require.LessOrEqual(t, out, limit)
			require.LessOrEqual(t, c.Kept(), keep)
		}
		c.Trim()
		c.Trim()
		require.Zero(t, c.Kept())
	})
}

// A Double over a source: the same bytes as without, growth and trim give everything back, and a source that has
// nothing refuses without a change.
func TestDoubleOverASource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 5 * DoubleClass
		c := NewClasses(rapid.IntRange(0, 16).Draw(t, "budget")*DoubleClass, limit, 1<<20)
		d, plain := Double{Limit: limit, From: c}, Double{Limit: limit}
		fill := byte(0)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "verb") {
			case 0, 1:
				require.True(t, bytes.Equal(plain.Swap(), d.Swap()))
			case 2:
				d.Trim()
			default:
				n := rapid.IntRange(0, DoubleClass).Draw(t, "n")
				before := d.Len()
				span, err := d.Reserve(n)
				if err != nil {
					require.Equal(t, before, d.Len())
					if n <= limit-before {
						require.ErrorIs(t, err, ErrMemory)
					}
					break
				}
				want, err := plain.Reserve(n)
				require.NoError(t, err)
				fill++
				for i := range span {
					span[i], want[i] = fill, fill
				}
			}
			require.Equal(t, d.Held(), c.Out(), "all that is out is held")
		}
		d.Swap()
		d.Trim()
		require.Zero(t, c.Out())
	})
}
