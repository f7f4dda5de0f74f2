// Classes: buffers by size class, under one budget for all that take from it.

package ringbuf

import "github.com/kith-io/kith/internal/base/invariant"

// Source is where a Double takes its memory from. Get returns an empty buffer for at least n bytes, nil when there is
// none to be had; Put takes it back, and its holder is done with it.
type Source interface {
	Get(n int) []byte
	Put(b []byte)
}

const (
	maxClasses = 20 // 16 KiB doubled so often is far above any bound of a link
	// firstShare is the part of the budget, one in so many bytes, that only buffers of the first class may use: whatever
	// few slow consumers hold, everybody else still gets a small buffer.
	firstShare = 4
)

// Classes hands out buffers of sizes that double from DoubleClass up to Most, and keeps some that came back for the
// next taker. What is out at one time is bounded by Limit; what is kept, by Keep. The last quarter of Limit is for
// buffers of the first class only. It is not locked. Make one with NewClasses.
type Classes struct {
	limit, keep int
	sizes       []int
	free        [][][]byte // by class
	least       []int      // fewest that were free since the last Trim, by class
	out, kept   int        // bytes
	refused     uint64
}

// NewClasses returns a source of buffers up to most bytes, of which limit bytes may be out at once and keep bytes are
// kept when they come back. A limit below the first class, or a most below one byte, hands out nothing.
func NewClasses(limit, most, keep int) *Classes {
	c := &Classes{limit: limit, keep: keep}
	for size := DoubleClass; size < most && len(c.sizes) < maxClasses; size *= 2 {
		c.sizes = append(c.sizes, size)
	}
	c.sizes = append(c.sizes, most)
	c.free, c.least = make([][][]byte, len(c.sizes)), make([]int, len(c.sizes))
	return c
}

// class returns the smallest class with room for n bytes, or -1.
func (c *Classes) class(n int) int {
	for i, size := range c.sizes {
		if n <= size {
			return i
		}
	}
	return -1
}

// Get returns an empty buffer of the smallest class with room for n bytes; nil, and the refusal is counted, when n is
// above all classes or the budget does not allow it.
func (c *Classes) Get(n int) []byte {
	k := c.class(n)
	if k < 0 || !c.allows(k) {
		c.refused++
		return nil
	}
	c.out += c.sizes[k]
	list := c.free[k]
	if len(list) == 0 {
		return make([]byte, 0, c.sizes[k])
	}
	b := list[len(list)-1]
	list[len(list)-1] = nil
	c.free[k] = list[:len(list)-1]
	c.least[k] = min(c.least[k], len(list)-1)
	c.kept -= c.sizes[k]
	return b
}

func (c *Classes) allows(k int) bool {
	limit := c.limit
	if k > 0 {
		limit -= c.limit / firstShare
	}
	return c.sizes[k] <= limit-c.out
}

// Put takes back a buffer that Get returned; one without capacity is nothing.
func (c *Classes) Put(b []byte) {
	size := cap(b)
	if size == 0 {
		return
	}
	k := c.class(size)
	invariant.Check(k >= 0 && c.sizes[k] == size, "ringbuf: a buffer comes back that is of no class")
	c.out -= size
	invariant.Check(c.out >= 0, "ringbuf: a buffer comes back twice")
	if size > c.keep-c.kept {
		return
	}
	c.kept += size
	c.free[k] = append(c.free[k], b[:0])
}

// Trim gives to the collector what was kept and not asked for since the Trim before.
func (c *Classes) Trim() {
	for k, list := range c.free {
		n := min(c.least[k], len(list))
		left := copy(list, list[n:])
		clear(list[left:])
		c.free[k] = list[:left]
		c.kept -= n * c.sizes[k]
		c.least[k] = left
	}
}

// Out returns the bytes that are out, Kept those that wait for the next taker.
func (c *Classes) Out() int { return c.out }

// Kept returns the bytes of buffers that came back and are kept.
func (c *Classes) Kept() int { return c.kept }

// Limit returns the most bytes that may be out at once.
func (c *Classes) Limit() int { return c.limit }

// Refused returns how often Get returned nil.
func (c *Classes) Refused() uint64 { return c.refused }

// Tight reports whether half of the budget is out: a holder that can do without a buffer should give it back.
func (c *Classes) Tight() bool { return c.out > c.limit/2 }
