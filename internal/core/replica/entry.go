// Entry: one key: its value, which updates of it are held, and the latest deltas.

package replica

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Kind is how the machine deals with values that it knows nothing of. All functions are pure.
type Kind struct {
	Name   string // on the wire; at most 64 bytes
	Zero   any
	Merge  func(a, b any) any
	Since  func(v, old any) any
	Append func(b []byte, v any) ([]byte, error)
	Parse  func(b []byte) (any, error)
}

// Bounds of the deltas that are kept for others; a member that lacks more gets the whole state.
const (
	keptDeltas = 64
	keptBytes  = 16 << 10
	keptAll    = 8 << 20 // of all keys
)

// entry is one key.
type entry struct {
	name    string
	kind    *Kind
	value   any
	size    int // bytes; at least those of the encoded value
	weighed int // what they were when it was last written
	held    held
	log     []delta // the latest, in the order of their coming
	kept    int     // bytes of log
	sum     uint64  // of what is held; zero: nothing
	bucket  int
	hot     int    // rumours that are still to be sent
	zero    []byte // how the empty value is written
	waits   []*wait
}

// digest sums up what is held of a key.
func (e *entry) digest() uint64 {
	if len(e.held) == 0 {
		return 0
	}
	return xxhash.Sum64(appendKeyHeld(nil, keyHeld{e.name, e.held}))
}

// kept counts the bytes of deltas that are kept.
type kept int

// add keeps a delta for others.
func (k *kept) add(e *entry, d delta) {
	if len(d.body) > keptBytes || *k > keptAll {
		*k -= kept(e.kept)
		e.log, e.kept = nil, 0
	}
	if len(d.body) > keptBytes {
		return
	}
	e.log = append(e.log, d)
	was, drop := e.kept, 0
	e.kept += len(d.body)
	for ; len(e.log)-drop > keptDeltas || e.kept > keptBytes; drop++ {
		e.kept -= len(e.log[drop].body)
	}
	*k += kept(e.kept - was)
	e.log = slices.Delete(e.log, 0, drop)
}

// lacking returns the deltas that a member lacks if it holds theirs, false when the whole state has to be sent.
func (e *entry) lacking(theirs held) (list []delta, size int, ok bool) {
	for _, mine := range e.held {
		at := theirs.of(mine.id)
		for _, d := range e.log {
			if d.by == mine.id && d.upTo > at && d.after <= at {
				list = append(list, d)
				size += len(d.body) + minMark + 32
				at = d.upTo
			}
		}
		if at < mine.n || size > maxBody {
			return nil, 0, false
		}
	}
	return list, size, true
}
