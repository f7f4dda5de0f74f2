// Behind: the credit of what comes behind frames that a closed gate keeps (MEM-10, SHD-4).

package plane

// Behind is the credit of frames that were consumed at once though they came behind kept ones on the same connection,
// C: answers, refusals, what makes no sense. It waits until what is kept has been worked off. Credit is a total of
// bytes, by which a sender takes what it sent first for consumed: it would forget tells that are kept, and nobody would
// report them if the node ended. What waits is bounded by the windows of the connections. The zero value is empty, and
// one that was used before allocates nothing.
type Behind[C comparable] struct{ list []waitingCredit[C] }

// waitingCredit is how many bytes of a connection, of which frames are kept, wait.
type waitingCredit[C comparable] struct {
	of    C
	bytes int
}

// Keep notes that a frame of a connection is kept.
func (b *Behind[C]) Keep(c C) {
	if b.of(c) == nil {
		b.list = append(b.list, waitingCredit[C]{of: c})
	}
}

// Consumed takes n bytes of a connection that were consumed, and returns of how many the credit is given back now: of
// none while frames of the connection are kept.
func (b *Behind[C]) Consumed(c C, n int) (now int) {
	if w := b.of(c); w != nil {
		w.bytes += n
		return 0
	}
	return n
}

// Release gives back what waits, in the order in which the connections had their first frame kept, unless something is
// kept: so many bytes, also of other connections. When the gate has ended nothing is given back any more, for what was
// kept was left.
func (b *Behind[C]) Release(g Gate, kept int, give func(c C, n int)) {
	if kept > 0 {
		return
	}
	for i := range b.list {
		if w := &b.list[i]; w.bytes > 0 && g&GateEnded == 0 {
			give(w.of, w.bytes)
		}
	}
	clear(b.list)
	b.list = b.list[:0]
}

// of returns what is known of a connection, nil when no frame of it is kept.
func (b *Behind[C]) of(c C) *waitingCredit[C] {
	for i := range b.list {
		if b.list[i].of == c {
			return &b.list[i]
		}
	}
	return nil
}
