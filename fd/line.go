// Line: one direction between this node and a peer, with a detector and with what puts its verdict off.

package fd

import "time"

// line is one direction. The detector sees heartbeats only; shift is what it does not know: other signs of life, and
// time in which this node itself did not run. The zero value has heard nothing.
type line struct {
	detector Detector
	beat     time.Duration // stamp of the newest heartbeat
	shift    time.Duration // the verdict comes that much later than the detector's deadline; never negative
	last     time.Duration // stamp of the newest sign of life; nothing is ever forgiven here
	told     bool          // the present silence is a verdict already
}

func (l *line) heard() bool { return l.detector != nil }

// heartbeat records a heartbeat. The life that is known of never gets shorter by it: stamps of heartbeats that waited
// while this node stood still are older than what it was forgiven.
func (l *line) heartbeat(f Factory, s Settings, arrived time.Duration) {
	known := l.beat + l.shift
	switch {
	case l.detector == nil:
		l.detector, known = f(s), arrived
	case arrived <= l.beat:
		return
	}
	l.detector.Heartbeat(arrived)
	l.beat, l.shift, l.told = arrived, max(known-arrived, 0), false
	l.last = max(l.last, arrived)
}

// sign records a sign of life that is no heartbeat: the silence begins anew, the rhythm learns nothing.
func (l *line) sign(arrived time.Duration) {
	if l.heard() && arrived > l.beat+l.shift {
		l.shift, l.told, l.last = arrived-l.beat, false, arrived
	}
}

// forgive takes a time in which this node did not run out of the silence.
func (l *line) forgive(now, pause time.Duration) {
	if l.heard() {
		l.shift, l.told = max(min(l.shift+pause, now-l.beat), l.shift), false
	}
}

func (l *line) deadline() (at time.Duration, ok bool) {
	if l.detector == nil {
		return 0, false
	}
	at, ok = l.detector.Deadline()
	return at + l.shift, ok
}

// silence is the time since the last sign of life, without what this node was forgiven.
func (l *line) silence(now time.Duration) time.Duration { return now - l.beat - l.shift }

// late reports a silence of two intervals that is no verdict yet.
func (l *line) late(now, interval time.Duration) bool {
	return l.heard() && !l.told && l.silence(now) >= 2*interval
}

func (l *line) available(now time.Duration) bool {
	at, ok := l.deadline()
	return !ok || now < at
}

func (l *line) phi(now time.Duration) float64 {
	if l.detector == nil {
		return 0
	}
	return l.detector.Phi(now - l.shift)
}
