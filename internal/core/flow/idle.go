// Idle: the memory of a link when it needs little of it.

package flow

import "github.com/kith-io/kith/ringbuf"

// Held returns the memory of the buffers in bytes, at most twice Bounds.Most.
func (l *Link) Held() int { return l.q.Held() }

// Trim gives the buffers back when nothing waits: an idle link holds no memory. Without a source of memory of their
// own, bytes that Take handed out stay valid; with one, the caller is done with them.
func (l *Link) Trim() {
	if l.Pending() == 0 {
		l.rest, l.peak = nil, 0
		l.q.Trim()
	}
}

// Fit is Trim for a link that is in use: it gives the buffers back if nothing waits and they are four times as large as
// what the link has needed since it was asked last.
func (l *Link) Fit() {
	if l.q.Held() > 8*max(l.peak, ringbuf.DoubleClass/2) {
		l.Trim()
	}
	l.peak = 0
}
