// Write coalescing: a link with senders that ring for every frame waits a moment for more frames before it is written.

package transport

import (
	"time"

	"github.com/kith-io/kith/internal/runtime/loop"
)

// A sender that finds a link idle rings its loop. Where both run on one core, the kernel lets the loop go first: it
// writes that one frame and sleeps, the sender appends the next one and rings again. Each message then costs two
// changes of threads and a system call more at both ends, many times what it costs in a batch, and only chance ends
// that. So a link that was written denseRuns times in a row with next to nothing, each time within denseGap after the
// time before, makes its loop wait for more frames before it is written again, and what comes meanwhile rings no
// wake-up. A link with longer pauses between its frames never waits, nor do asks and answers. What is to be read wakes
// the loop.
const (
	denseRuns = 8
	denseGap  = 12 * time.Microsecond // what loop and sender need to take turns on one core, and a little more
	denseSize = 1 << 10               // bytes
)

// density watches how close upon each other the runs of a link come, on its loop.
type density struct {
	runs  int           // in a row that were short and came at once
	ended time.Duration // the last one
	bulk  time.Duration // the last write of streamSize or more, 0 for none
}

// streams reports whether a write of n bytes is a small one of a stream.
func (d *density) streams(now time.Duration, n int) bool {
	if n >= streamSize {
		d.bulk = now
		return false
	}
	if now-d.bulk >= streamGap {
		d.bulk = 0
	}
	return d.bulk != 0
}

// waits reports whether a run that finds n bytes at a time should wait for more frames first.
func (d *density) waits(now time.Duration, n int) bool {
	switch {
	case n == 0:
		return false
	case d.streams(now, n):
		return true
	case n > denseSize:
		return false
	case now-d.ended > denseGap:
		d.runs = 0
		return false
	case d.runs < denseRuns:
		d.runs++
		return false
	}
	return true
}

// A loop that writes a link on another core than its senders' takes what has come every few microseconds: each time it
// takes the lines of memory that the senders write to, and a system call moves little. So in a stream, that is within
// streamGap of a write of streamSize or more, it waits for more frames behind each smaller write.
const (
	streamSize = 64 << 10
	streamGap  = time.Millisecond
)

// waits decides whether the link waits for more frames: as a run begins (wrote is 0), or behind a write of wrote bytes.
func (l *Link) waits(on *loop.Loop, wrote int) bool {
	begins := wrote == 0
	if !on.MayRest() || !begins && wrote < streamSize && l.density.bulk == 0 {
		return false // and most links need no look at the clock for it
	}
	now := l.t.cfg.Now()
	if !begins && !l.density.streams(now, wrote) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := l.urgent || l.conn == nil || l.renewing && !begins
	if begins {
		ready = ready || l.lingers
		l.lingers, l.urgent = false, false
	}
	if n := l.queue.Pending(); ready || n == 0 || begins && !l.density.waits(now, n) {
		return false
	}
	l.lingers = true
	on.Await(l)
	return true
}
