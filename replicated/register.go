// Registers: one that keeps the last write by the clock, and one that keeps all writes that knew nothing of each other.

package replicated

import (
	"bytes"
	"cmp"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// LWWRegister holds one value: that of the write with the latest time, whatever other writes were made meanwhile. Its
// content is written as elements of a GSet are.
type LWWRegister[T any] struct {
	at int64 // nanoseconds since 1970; zero: nothing was written
	by peer.ID
	v  T
}

// Set returns the register with v, written at now: later than the write that it replaces in any case. Of two writes at
// one time that of the higher identity stands.
func (l LWWRegister[T]) Set(me peer.ID, now time.Time, v T) LWWRegister[T] {
	return LWWRegister[T]{max(now.UnixNano(), l.at+1, 1), me, v}
}

// Get returns what was written last, false when nothing was.
func (l LWWRegister[T]) Get() (v T, ok bool) { return l.v, l.at != 0 }

// At returns when it was written; the zero time when nothing was.
func (l LWWRegister[T]) At() time.Time {
	if l.at == 0 {
		return time.Time{}
	}
	return time.Unix(0, l.at)
}

// Kind is "last-write register of" what the content is written as.
func (LWWRegister[T]) Kind() string { return "last-write register of " + formOf[T]() }

// Merge returns the later write.
func (l LWWRegister[T]) Merge(other LWWRegister[T]) LWWRegister[T] {
	if l.compare(other) < 0 {
		return other
	}
	return l
}

func (l LWWRegister[T]) compare(o LWWRegister[T]) int {
	if c := cmp.Compare(l.at, o.at); c != 0 {
		return c
	}
	if c := l.by.Compare(o.by); c != 0 || l.at == 0 {
		return c
	}
	mine, _ := appendOne(nil, l.v) // it was written once
	theirs, _ := appendOne(nil, o.v)
	return bytes.Compare(mine, theirs)
}

// Since returns the register when it was written since old, else an empty one.
func (l LWWRegister[T]) Since(old LWWRegister[T]) (d LWWRegister[T]) {
	if l.compare(old) > 0 {
		d = l
	}
	return d
}

// Append appends the time, the writer, and the content.
func (l LWWRegister[T]) Append(b []byte) ([]byte, error) {
	b = wire.AppendU64(b, uint64(l.at))
	if l.at == 0 {
		return b, nil
	}
	return appendPart(peer.AppendID(b, l.by), l.v)
}

// Parse reads what Append appended.
func (LWWRegister[T]) Parse(b []byte) (LWWRegister[T], error) {
	r := wire.NewReader(0, b)
	var l LWWRegister[T]
	if l.at = int64(r.U64()); l.at < 0 {
		r.Fail(wire.ErrBadValue)
	}
	if l.at != 0 {
		l.by, l.v = peer.ReadID(&r), readPart[T](&r)
	}
	return done(l, &r)
}

// Fold returns the register: it has one write, of whatever node.
func (l LWWRegister[T]) Fold(peer.ID) LWWRegister[T] { return l }

// MVRegister holds the value of the last write, or several when they were written without knowledge of each other: the
// program decides which stands, and writes that. Its content is written as elements of a GSet are.
type MVRegister[T any] struct{ k kernel[bool, T] }

// Set returns the register with v in place of all that is there.
func (m MVRegister[T]) Set(me peer.ID, v T) MVRegister[T] { return MVRegister[T]{m.k.put(me, v, true)} }

// Get returns what stands: nothing, one value, or several, in the order of their writers. The slice is the caller's.
func (m MVRegister[T]) Get() []T {
	var list []T
	for _, d := range m.k.live[true] {
		list = append(list, d.p)
	}
	return list
}

// Kind is "multi-value register of" what the content is written as.
func (MVRegister[T]) Kind() string { return "multi-value register of " + formOf[T]() }

// Merge keeps each write that the other has, or has not seen.
func (m MVRegister[T]) Merge(other MVRegister[T]) MVRegister[T] {
	return MVRegister[T]{m.k.merge(other.k)}
}

// Since returns the writes since old.
func (m MVRegister[T]) Since(old MVRegister[T]) MVRegister[T] { return MVRegister[T]{m.k.since(old.k)} }

// Append appends the writes that stand, behind their writers.
func (m MVRegister[T]) Append(b []byte) ([]byte, error) { return m.k.append(b, appendPart[T]) }

// Parse reads what Append appended.
func (m MVRegister[T]) Parse(b []byte) (MVRegister[T], error) {
	r := wire.NewReader(0, b)
	return done(MVRegister[T]{m.k.read(&r, readPart[T])}, &r)
}

// Fold gives the writes of gone to the zero identity.
func (m MVRegister[T]) Fold(gone peer.ID) MVRegister[T] { return MVRegister[T]{m.k.fold(gone)} }
