// Deadline detector: a fixed patience, for detection times that no history moves.

package fd

import "time"

// Deadline is the Factory of the deadline detector: a peer is available while less than interval plus pause has passed
// since its last heartbeat.
func Deadline(s Settings) Detector { return &deadline{patience: max(s.Interval+s.Pause, 1)} }

type deadline struct {
	patience time.Duration
	last     time.Duration
	heard    bool
}

// Heartbeat records a heartbeat.
func (d *deadline) Heartbeat(arrived time.Duration) {
	if !d.heard || arrived > d.last {
		d.heard, d.last = true, arrived
	}
}

// Available reports whether the peer counts as alive at now.
func (d *deadline) Available(now time.Duration) bool { return !d.heard || now < d.last+d.patience }

// Deadline returns from when on silence is a verdict.
func (d *deadline) Deadline() (at time.Duration, ok bool) { return d.last + d.patience, d.heard }

// Phi returns the silence as a share of the patience: 1 at the verdict.
func (d *deadline) Phi(now time.Duration) float64 {
	if !d.heard || now <= d.last {
		return 0
	}
	return float64(now-d.last) / float64(d.patience)
}
