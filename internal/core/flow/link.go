// Link: the sender's side of one data connection: what waits to be written, and how much of it the receiver allows.

package flow

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Defaults and bounds of a Link.
const (
	DefaultWindow     = 1 << 20   // bytes sent and not yet consumed
	DefaultLinkBuffer = 512 << 10 // bytes gathered and not yet sent
	OrdinaryFrame     = 16 << 10  // largest frame in bytes that never goes beyond the buffer's bound
	MarkerRoom        = 64 << 10  // bytes beyond the buffer's bound that only markers may use
	MarkerSize        = 8 + 16    // bytes of a marker frame
	maxBuffer         = 1<<30 - 1 // largest bound, so that sums of bounds stay in an int everywhere
	expressBeyond     = 16 << 10  // how far beyond the window markers go: a receiver bears a window and a frame
	markEvery         = 16 << 10  // bytes between frames that are remembered by their begin
)

// Bounds are the bounds of a Link in bytes. Numbers that are not positive mean the defaults.
type Bounds struct {
	Buffer int            // gathered and not yet sent; default DefaultLinkBuffer
	Window int            // sent and not yet consumed; default DefaultWindow
	Frame  int            // largest frame; default wire.DefaultMaxFrame
	Memory ringbuf.Source // its largest buffer is of Most bytes; nil: the collector
}

// Most is the most bytes that a link with these bounds gathers: the buffer, one large frame beyond it, and markers.
func (b Bounds) Most() int {
	b = b.withDefaults()
	return b.Buffer + b.Frame + MarkerRoom
}

func (b Bounds) withDefaults() Bounds {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&b.Buffer, DefaultLinkBuffer)
	def(&b.Window, DefaultWindow)
	def(&b.Frame, wire.DefaultMaxFrame)
	b.Buffer, b.Frame = min(b.Buffer, maxBuffer-MarkerRoom), min(b.Frame, maxBuffer)
	return b
}

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

	// Where frames begin, about every markEvery bytes: cut starts there, for at the front bytes may be cold.
	marks, restMarks []int // offsets into what q gathers, and into what the last swap brought
	nextMark         int   // offset from which on the next frame is remembered
	taken            int   // bytes of the last swap that Take has handed out
	peak             int   // most bytes of one swap since the last Trim or Fit

	window           int64
	sent, consumed   int64 // running totals of this connection
	generation       uint32
	up               bool
	refused          bool // a Reserve was refused and Roomy has not reported yet
	timed, restTimed bool // Ready has something to do with what q gathers, with the rest
	stats            LinkStats
	tally            tally
	express          express

	// Ready is given what Take is about to hand out, whole frames, when Timed was said of one that was gathered with
	// them. It may change them in place and returns what is left of them; it is set before the first Take.
	Ready func(frames []byte) []byte
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

// NewLink returns NewLinkWithin of a buffer and a window in bytes, with memory from the collector.
func NewLink(buffer, window int) *Link { return NewLinkWithin(Bounds{Buffer: buffer, Window: window}) }

// NewLinkWithin returns a link without a connection.
func NewLinkWithin(b Bounds) *Link {
	b = b.withDefaults()
	return &Link{
		q: ringbuf.Double{Limit: b.Most(), From: b.Memory}, limit: b.Buffer, full: &LinkFullError{b.Buffer},
		window: int64(b.Window),
	}
}

// Reserve appends a frame of n bytes and returns the room for it, which the caller fills with one whole frame before it
// gives up the link's lock; the room is void after the next call of any method. A *LinkFullError when more than the
// buffer's bound would wait; a frame above OrdinaryFrame may go beyond it while less than the bound waits, so that the
// bound need not follow the largest frame. An error that matches ringbuf.ErrMemory when the buffer would have to grow
// and there is no memory for it. Nothing has changed then.
func (l *Link) Reserve(n int) ([]byte, error) {
	at := l.q.Len()
	if left := l.limit - len(l.rest) - at; n > left && (n <= OrdinaryFrame || left <= 0) {
		return nil, l.refuse()
	}
	if at >= l.nextMark {
		l.mark(at)
	}
	if room := l.q.Quick(n); room != nil {
		return room, nil
	}
	room, err := l.q.Reserve(n)
	if err != nil {
		l.refused = true
	}
	return room, err
}

// Put writes an envelope into the room that was reserved last.
func (l *Link) Put(room []byte, e *wire.Envelope, id string) {
	wire.PutEnvelope(room, e, id)
	if e.Flags&(wire.FlagAsk|wire.FlagBulk) == 0 {
		l.tally.gathered++
	}
}

// Count says that the room that was reserved last holds this frame: Put says so itself, and what is no tell need not be
// said.
func (l *Link) Count(frame []byte) {
	if wire.IsTell(frame) {
		l.tally.gathered++
	}
}

// Flown returns how many tells were sent on this connection, and of how many of these its credit does not show that
// they were consumed: some more than those of the bytes outstanding, for it is known at some frames only.
func (l *Link) Flown() (sent, unknown uint64) { return l.tally.sent, l.tally.sent - l.tally.known }

// Timed says that the frame which was reserved last has something that Ready is to change: a limit, or headers.
func (l *Link) Timed() { l.timed = true }

// mark remembers that a frame begins at an offset of what is gathered.
func (l *Link) mark(at int) {
	if at > 0 {
		l.marks = append(l.marks, at)
		l.tally.mark()
	}
	l.nextMark = at + markEvery
}

func (l *Link) refuse() error {
	l.refused = true
	l.stats.Refused++
	return l.full
}

// AppendMarker appends the marker of a move. It may use MarkerRoom beyond the bound, so that a full link does not hold
// up a hand-off; a *LinkFullError when that is used up too, or ringbuf.ErrMemory.
func (l *Link) AppendMarker(m wire.Marker) error {
	if MarkerSize > l.q.Limit-l.Pending() {
		return l.refuse()
	}
	room, err := l.q.Reserve(MarkerSize)
	if err != nil {
		return err
	}
	frame, at := wire.BeginFrame(room[:0], wire.KindMarker, 0, 0)
	wire.EndFrame(wire.AppendMarker(frame, m), at)
	return nil
}

// ExpressMarker is AppendMarker for a shard of which nothing waits in the link: its marker goes before all that waits,
// and also when the window is used up.
func (l *Link) ExpressMarker(m wire.Marker) error {
	if l.express.put(m, MarkerRoom-MarkerSize) {
		return nil
	}
	return l.AppendMarker(m)
}

// Pending returns the bytes that wait to be taken.
func (l *Link) Pending() int { return len(l.express.next) + len(l.rest) + l.q.Len() }

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
	if n := int64(len(l.express.next)); n > 0 && l.up && l.Outstanding()+n <= l.window+expressBeyond {
		return l.handOut(l.express.take(), l.tally.taken)
	}
	credit := l.window - (l.sent - l.consumed)
	if credit <= 0 || !l.up {
		return nil
	}
	if len(l.rest) == 0 {
		if l.q.Len() == 0 {
			return nil
		}
		l.swap()
	}
	n, tells := len(l.rest), l.tally.rest
	if int64(n) > credit {
		n, tells = l.cut(int(credit))
	}
	out := l.rest[:n:n]
	l.rest = l.rest[n:]
	l.taken += n
	if l.restTimed && l.Ready != nil {
		out = l.Ready(out)
	}
	return l.handOut(out, tells)
}

// handOut counts what Take returns as sent, up to so many tells of the last swap.
func (l *Link) handOut(out []byte, tells int) []byte {
	n := len(out)
	l.sent += int64(n)
	l.tally.take(tells, l.sent, max(markEvery, l.window/64))
	l.stats.Sent += uint64(n)
	l.stats.Takes++
	l.stats.Sizes[sizeClass(n)]++
	return out
}

// swap makes what was gathered the rest.
func (l *Link) swap() {
	l.rest = l.q.Swap()
	l.marks, l.restMarks = l.restMarks[:0], l.marks
	l.tally.swap()
	l.nextMark, l.taken = 0, 0
	l.timed, l.restTimed = false, l.timed
	l.peak = max(l.peak, len(l.rest))
}

// cut returns the end of the first frame of the rest that ends at or behind credit, so that the last one overshoots,
// and how many tells of the last swap stand before it.
func (l *Link) cut(credit int) (n, tells int) {
	tells = l.tally.taken
	if i, _ := slices.BinarySearch(l.restMarks, l.taken+credit+1); i > 0 && l.restMarks[i-1] > l.taken {
		n, tells = l.restMarks[i-1]-l.taken, l.tally.restMarks[i-1]
	}
	for n < credit {
		size := frameSize(l.rest[n:])
		if wire.IsTell(l.rest[n:]) {
			tells++
		}
		n += size
	}
	return n, tells
}

// frameSize returns the size of the frame that b begins with. Frames come from Reserve, so a bad size is our own fault.
func frameSize(b []byte) int {
	invariant.Check(len(b) >= wire.HeaderSize, "flow: a link holds part of a frame")
	n := wire.SizeOf(b)
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
	l.tally.consume(l.consumed)
	return waited && l.up && l.Credit() > 0 && l.Pending() > 0, nil
}

// Broken says that the connection is gone and returns the bytes that were outstanding on it: in flight and lost, or
// consumed without our hearing of it. What waits stays. Saying it twice loses nothing twice.
func (l *Link) Broken() (lost int64) {
	lost = l.Outstanding()
	l.consumed = l.sent
	l.tally.consume(l.consumed)
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
	l.tally.begin()
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
	l.express.next = l.express.next[:0] // nobody's messages
	for l.Pending() > 0 {
		if len(l.rest) == 0 {
			l.swap()
		}
		for len(l.rest) > 0 {
			n := frameSize(l.rest)
			if fail != nil {
				fail(l.rest[:n:n])
			}
			l.rest = l.rest[n:]
			l.taken += n
			frames++
		}
	}
	l.stats.Dropped += uint64(frames)
	return frames
}

// Unflag takes flags off all envelopes that wait: the next connection's receiver does not know them. Nothing that Take
// handed out is being written.
func (l *Link) Unflag(flags uint8) {
	for _, b := range [...][]byte{l.rest, l.q.Gathered()} {
		for len(b) > 0 {
			n := frameSize(b)
			wire.Unflag(b[:n], flags)
			b = b[n:]
		}
	}
}
