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
}

// waits reports whether a run that finds n bytes at a time should wait for more frames first.
func (d *density) waits(now time.Duration, n int) bool {
	switch {
	case n == 0 || n > denseSize:
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

// waits decides whether the link is written now or waits for more frames.
func (l *Link) waits(on *loop.Loop) bool {
	if !on.MayRest() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := l.lingers || l.urgent || l.conn == nil
	l.lingers, l.urgent = false, false
	if ready || !l.density.waits(l.t.cfg.Now(), l.queue.Pending()) {
		return false
	}
	l.lingers = true
	on.Await(l)
	return true
}
