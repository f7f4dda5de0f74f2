// Link: the sender's side of one data connection: what waits to be written, and how much of it the receiver allows.

package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/kith-io/kith/internal/invariant"
	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Defaults and bounds of a Link.
const (
	DefaultWindow     = 1 << 20   // bytes sent and not yet consumed
	DefaultLinkBuffer = 1 << 20   // bytes gathered and not yet sent
	MarkerRoom        = 64 << 10  // bytes beyond the buffer's bound that only markers may use
	MarkerSize        = 8 + 16    // bytes of a marker frame
	maxBuffer         = 1<<31 - 1 // largest buffer, so that sums of bounds stay in an int everywhere
)

// ErrBadCredit is returned for credit that no honest receiver sends: more than was sent, or of a connection that was
// never made.
var ErrBadCredit = errors.New("flow: impossible credit")

// LinkFullError says that a link's buffer is full. errors.Is matches route.ErrLinkFull.
type LinkFullError struct {
	Limit int // the bound in bytes
}

// Error names the bound.
func (e *LinkFullError) Error() string {
	return fmt.Sprintf("%v: %d bytes wait to be sent", route.ErrLinkFull, e.Limit)
}

// Unwrap returns route.ErrLinkFull.
func (e *LinkFullError) Unwrap() error { return route.ErrLinkFull }

// Link gathers whole frames for one data connection and hands them out as far as credit goes. Credit is the window less
// what was sent on this connection and not consumed yet; sending may begin while it is positive, so at most the window
// and one frame are ever outstanding. The order of Reserve is the order on the wire, also over a reconnect: frames that
// were not taken stay and go first. A Link is not safe for concurrent use. Make one with NewLink.
type Link struct {
	q     ringbuf.Double
	rest  []byte // what the last swap brought and Take has not handed out yet; goes before what q gathers
	limit int
	full  error // made once, so that refusing costs no allocation

	window         int64
	sent, consumed int64 // running totals of this connection
	generation     uint32
	up             bool
	refused        bool // a Reserve was refused and Roomy has not told yet
	stats          LinkStats
}

// LinkStats counts what a link did over all its connections.
type LinkStats struct {
	Sent    uint64 // bytes handed out by Take
	Takes   uint64 // batches they came in
	Lost    uint64 // bytes outstanding when a connection broke: delivered or not, nobody knows
	Refused uint64 // reservations that found the buffer full
	Dropped uint64 // frames failed by FailAll

	// Sizes counts the batches by their size: class i holds those of at most 64<<i bytes, the last one all larger.
	Sizes [SizeClasses]uint64
}

// SizeClasses is the number of classes in LinkStats.Sizes: 64 bytes to a MiB, and what is larger.
const SizeClasses = 16

// sizeClass returns the class of a batch of n bytes, n at least one.
func sizeClass(n int) int { return min(bits.Len(uint(n-1)>>6), SizeClasses-1) }

// NewLink returns a link without a connection: it gathers at most buffer bytes and allows window bytes outstanding.
// Numbers that are not positive mean the defaults.
func NewLink(buffer, window int) *Link {
	if buffer <= 0 {
		buffer = DefaultLinkBuffer
	}
	if window <= 0 {
		window = DefaultWindow
	}
	buffer = min(buffer, maxBuffer-MarkerRoom)
	return &Link{
		q: ringbuf.Double{Limit: buffer + MarkerRoom}, limit: buffer, full: &LinkFullError{buffer}, window: int64(window),
	}
}

// Reserve appends a frame of n bytes and returns the room for it, which the caller fills with one whole frame before it
// gives up the link's lock; the room is void after the next call of any method. A *LinkFullError, and no change, when
// more than the buffer's bound would wait. A frame larger than the bound never fits: who configures both keeps the
// buffer above the largest frame.
func (l *Link) Reserve(n int) ([]byte, error) {
	if n > l.limit-len(l.rest)-l.q.Len() {
		return nil, l.refuse()
	}
	return l.q.Reserve(n)
}

func (l *Link) refuse() error {
	l.refused = true
	l.stats.Refused++
	return l.full
}

// AppendMarker appends the marker of a move. It may use MarkerRoom beyond the bound, so that a full link does not hold
// up a hand-off; a *LinkFullError when that is used up too.
func (l *Link) AppendMarker(m wire.Marker) error {
	if MarkerSize > l.limit+MarkerRoom-l.Pending() {
		return l.refuse()
	}
	room, err := l.q.Reserve(MarkerSize)
	if err != nil {
		return l.refuse()
	}
	frame, at := wire.BeginFrame(room[:0], wire.KindMarker, 0, 0)
	wire.EndFrame(wire.AppendMarker(frame, m), at)
	return nil
}

// Pending returns the bytes that wait to be taken.
func (l *Link) Pending() int { return len(l.rest) + l.q.Len() }

// Credit returns how many bytes may still be outstanding; it is zero or below when the receiver must consume first.
func (l *Link) Credit() int { return int(l.window - l.Outstanding()) }

// Outstanding returns the bytes taken on this connection and not consumed yet.
func (l *Link) Outstanding() int64 { return l.sent - l.consumed }

// Connected reports whether there is a connection to take bytes for.
func (l *Link) Connected() bool { return l.up }

// Generation returns the number of the newest connection, zero before the first.
func (l *Link) Generation() uint32 { return l.generation }

// Stats returns the counters.
func (l *Link) Stats() LinkStats { return l.stats }

// Take returns bytes to be written now, whole frames in order, or nil when nothing waits, credit is used up or there is
// no connection. They count as sent from here on. The view is valid until the next Take that returns bytes, which the
// caller makes when it is done with these; it is the gathering buffer itself, not a copy. Call it until it returns nil.
func (l *Link) Take() []byte {
	credit := l.window - (l.sent - l.consumed)
	if credit <= 0 || !l.up {
		return nil
	}
	if len(l.rest) == 0 {
		if l.q.Len() == 0 {
			return nil
		}
		l.rest = l.q.Swap()
	}
	n := len(l.rest)
	if int64(n) > credit {
		n = cut(l.rest, int(credit))
	}
	out := l.rest[:n:n]
	l.rest = l.rest[n:]
	l.sent += int64(n)
	l.stats.Sent += uint64(n)
	l.stats.Takes++
	l.stats.Sizes[sizeClass(n)]++
	return out
}

// cut returns the end of the first frame of b that ends at or behind credit, so that the last one overshoots.
func cut(b []byte, credit int) int {
	n := 0
	for n < credit {
		n += frameSize(b[n:])
	}
	return n
}

// frameSize returns the size of the frame that b begins with. Frames come from Reserve, so a bad size is our own fault.
func frameSize(b []byte) int {
	invariant.Check(len(b) >= wire.HeaderSize, "flow: a link holds part of a frame")
	n := int(binary.LittleEndian.Uint32(b))
	invariant.Check(n >= wire.HeaderSize && n <= len(b), "flow: a link holds a frame whose size is not its room")
	return n
}

// Granted takes the receiver's running total of consumed bytes for the connection of that generation, and reports
// whether a link that had to wait may go on. A total of an older connection, or one that is behind what was heard
// already, is a late copy and changes nothing. ErrBadCredit for a total beyond what was sent or a connection not made
// yet; nothing has changed then.
func (l *Link) Granted(generation uint32, consumed uint64) (wake bool, err error) {
	switch {
	case generation > l.generation:
		return false, fmt.Errorf("%w: for connection %d, the newest is %d", ErrBadCredit, generation, l.generation)
	case generation < l.generation:
		return false, nil
	case consumed > uint64(l.sent):
		return false, fmt.Errorf("%w: %d bytes consumed, %d sent", ErrBadCredit, consumed, l.sent)
	case int64(consumed) <= l.consumed:
		return false, nil
	}
	waited := l.Credit() <= 0
	l.consumed = int64(consumed)
	return waited && l.up && l.Credit() > 0 && l.Pending() > 0, nil
}

// Broken says that the connection is gone and returns the bytes that were outstanding on it: in flight and lost, or
// consumed without our hearing of it. What waits stays. Saying it twice loses nothing twice.
func (l *Link) Broken() (lost int64) {
	lost = l.Outstanding()
	l.consumed = l.sent
	l.stats.Lost += uint64(lost)
	l.up = false
	return lost
}

// Reconnected starts a connection with a generation above all before it. What waits goes first on it. It returns what
// Broken would, for the connection before, unless Broken was called already.
func (l *Link) Reconnected(generation uint32) (lost int64) {
	invariant.Check(generation > l.generation, "flow: a link's generation does not grow")
	lost = l.Broken()
	l.sent, l.consumed = 0, 0
	l.generation, l.up = generation, true
	return lost
}

// Roomy reports, once after a reservation was refused, that half of the buffer is free again.
func (l *Link) Roomy() bool {
	if !l.refused || l.Pending() > l.limit/2 {
		return false
	}
	l.refused = false
	return true
}

// FailAll drops every frame that waits, oldest first, and returns how many: the peer is gone for good. fail, if not
// nil, gets each whole frame, valid during the call. As with Take, the caller is done with bytes taken before.
func (l *Link) FailAll(fail func(frame []byte)) int {
	frames := 0
	for l.Pending() > 0 {
		if len(l.rest) == 0 {
			l.rest = l.q.Swap()
		}
		for len(l.rest) > 0 {
			n := frameSize(l.rest)
			if fail != nil {
				fail(l.rest[:n:n])
			}
			l.rest = l.rest[n:]
			frames++
		}
	}
	l.stats.Dropped += uint64(frames)
	return frames
}

// Held returns the memory of the buffers in bytes, at most twice the bound and the room of markers.
func (l *Link) Held() int { return l.q.Held() }

// Trim gives the buffers back when nothing waits: an idle link holds no memory. Bytes that Take handed out stay valid.
func (l *Link) Trim() {
	if l.Pending() == 0 {
		l.rest = nil
		l.q.Trim()
	}
}
