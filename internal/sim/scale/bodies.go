// The memory of what is on its way in a swarm: small bodies by size class, equal large ones once.

package scale

import (
	"bytes"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Of a body larger than sharedAbove all but the first sharedHead bytes is shared with equal ones: a state that a
// thousand nodes push at the same moment lies in memory once. The head holds what differs by receiver.
const (
	sharedAbove = 4096
	sharedHead  = 2048
)

// body is the memory of one letter.
type body struct {
	own  []byte
	tail *tail // nil: own is all
}

// tail is the end of some bodies on their way.
type tail struct {
	bytes []byte
	hash  uint64
	refs  int
}

// bodies keeps the memory of messages, so that a long run allocates little.
type bodies struct {
	free   [32][][]byte // by size class
	tails  map[uint64]*tail
	joined []byte // the body that is being delivered
}

func (b *bodies) copy(whole []byte) body {
	if len(whole) <= sharedAbove {
		return body{own: b.small(whole)}
	}
	end := whole[sharedHead:]
	hash := xxhash.Sum64(end)
	t := b.tails[hash]
	if t == nil || !bytes.Equal(t.bytes, end) {
		if t != nil { // two that differ under one hash: this one stays alone
			return body{own: b.small(whole)}
		}
		if b.tails == nil {
			b.tails = map[uint64]*tail{}
		}
		t = &tail{bytes: b.small(end), hash: hash}
		b.tails[hash] = t
	}
	t.refs++
	return body{own: b.small(whole[:sharedHead]), tail: t}
}

// whole returns the body; it is valid until the next call.
func (b *bodies) whole(x body) []byte {
	if x.tail == nil {
		return x.own
	}
	b.joined = append(append(b.joined[:0], x.own...), x.tail.bytes...)
	return b.joined
}

func (b *bodies) done(x body) {
	b.release(x.own)
	if x.tail == nil {
		return
	}
	if x.tail.refs--; x.tail.refs == 0 {
		delete(b.tails, x.tail.hash)
		b.release(x.tail.bytes)
	}
}

func (b *bodies) small(from []byte) []byte {
	class := bits.Len(uint(max(len(from), 32) - 1))
	list := b.free[class]
	if n := len(list); n > 0 {
		b.free[class] = list[:n-1]
		return append(list[n-1][:0], from...)
	}
	return append(make([]byte, 0, 1<<class), from...)
}

func (b *bodies) release(own []byte) {
	if own == nil {
		return
	}
	class := bits.Len(uint(cap(own) - 1))
	b.free[class] = append(b.free[class], own)
}
