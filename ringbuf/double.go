// Double: two byte buffers, one gathering while the other is being written out.

package ringbuf

import "github.com/kith-io/kith/internal/base/invariant"

// DoubleClass is the size in bytes with which a side of a Double starts; it doubles from there up to the limit.
const DoubleClass = 16 << 10

// Double gathers bytes for one flusher. Writers reserve spans on the write side; the flusher takes everything gathered
// with one Swap and writes it out while the other side gathers. It is not locked: its owner holds its link's lock
// around every call. At most Limit bytes are gathered, and at most twice that is held. The zero value with Limit set is
// ready; a limit of zero admits nothing. Neither Limit nor From may change while bytes are held.
type Double struct {
	// Limit is the most bytes that the write side may hold.
	Limit int
	// From is where buffers come from and go back to; nil: the collector. With a source, Limit is the size of its largest
	// buffer, and what Swap handed out is void after Trim.
	From Source

	side []byte // gathering; its capacity never exceeds Limit, so the fast path of Reserve needs no second test
	out  []byte // handed to the flusher by the last Swap
}

// Reserve appends n bytes (n not negative) to the write side and returns that span, which the caller fills before it
// gives up the lock: what it held before is arbitrary. The span is void after the next call of any method. ErrFull when
// the write side would exceed Limit, ErrMemory when From has no buffer; nothing has changed then.
func (d *Double) Reserve(n int) ([]byte, error) {
	if b := d.Quick(n); b != nil {
		return b, nil
	}
	at := len(d.side)
	if n > d.Limit-at {
		return nil, ErrFull
	}
	size := max(cap(d.side), DoubleClass)
	for size < at+n && size <= d.Limit/2 {
		size *= 2
	}
	if size < at+n || size > d.Limit {
		size = d.Limit
	}
	grown := d.get(size, at+n)
	if grown == nil {
		return nil, ErrMemory
	}
	grown = grown[:at+n]
	copy(grown, d.side)
	d.put(d.side)
	d.side = grown
	return grown[at:], nil
}

// Truncate drops what was gathered behind the first n bytes, of which there are at least so many.
func (d *Double) Truncate(n int) { d.side = d.side[:n] }

// Quick is Reserve as long as the write side need not grow, and small enough to be compiled into its callers; nil when
// it must, or n is zero.
func (d *Double) Quick(n int) []byte {
	side := d.side
	at := len(side)
	if n > cap(side)-at {
		return nil
	}
	d.side = side[:at+n]
	return d.side[at:]
}

// get returns a buffer of size bytes, or of as little as will do.
func (d *Double) get(size, least int) []byte {
	if d.From == nil {
		return make([]byte, 0, size)
	}
	b := d.From.Get(size)
	if b == nil && least < size {
		b = d.From.Get(least)
	}
	invariant.Check(cap(b) <= d.Limit, "ringbuf: the source of a Double has larger buffers than its limit")
	return b
}

func (d *Double) put(b []byte) {
	if d.From != nil && cap(b) > 0 {
		d.From.Put(b)
	}
}

// Len returns the number of bytes gathered since the last Swap.
func (d *Double) Len() int { return len(d.side) }

// Room returns how many bytes can still be reserved before ErrFull.
func (d *Double) Room() int { return max(d.Limit-len(d.side), 0) }

// Swap returns the gathered bytes, in order, and starts gathering anew in the buffer that the Swap before this one
// handed out: the flusher must be done with that one. The returned bytes stay untouched until the next Swap.
func (d *Double) Swap() []byte {
	full := d.side
	d.side, d.out = d.out[:0], full
	return full[:len(full):len(full)]
}

// Trim gives both buffers back when nothing is gathered, and otherwise does nothing. Without a source, bytes handed out
// by Swap stay valid for all that still hold them.
func (d *Double) Trim() {
	if len(d.side) == 0 {
		d.put(d.side)
		d.put(d.out)
		d.side, d.out = nil, nil
	}
}

// Gathered returns the bytes gathered since the last Swap, to be changed in place: a view that is void after the next
// call of any method.
func (d *Double) Gathered() []byte { return d.side }

// Held returns the memory of both buffers in bytes.
func (d *Double) Held() int {
	held := cap(d.side) + cap(d.out)
	invariant.Check(cap(d.side) <= d.Limit, "ringbuf: Double.Limit was lowered under its buffer")
	return held
}
