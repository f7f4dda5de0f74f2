// Detector: what any failure detector of one peer must do, and the settings from which one is made.

package fd

import "time"

// Detector judges one peer by the stamps of its heartbeats. One that has heard nothing takes the peer for alive. It is
// stepped: no clock of its own, no allocation per heartbeat once its history is full. Package fdtest holds what every
// detector has to keep, as a suite to run against it.
type Detector interface {
	// Heartbeat records a heartbeat that arrived at the given stamp. A stamp that is not newer than the last is no
	// news and changes nothing.
	Heartbeat(arrived time.Duration)
	// Available reports whether the peer counts as alive at now: always before the first heartbeat, then until
	// Deadline, exclusively.
	Available(now time.Duration) bool
	// Deadline returns from when on silence makes the peer unavailable; ok is false when nothing was heard yet.
	Deadline() (at time.Duration, ok bool)
	// Phi returns the suspicion level at now, for people, on the detector's own scale; 0 when nothing was heard. No
	// decision reads it.
	Phi(now time.Duration) float64
}

// Settings of the detectors of one node.
type Settings struct {
	Interval     time.Duration // expected heartbeat interval; seeds the history
	Pause        time.Duration // silence tolerated beyond the learnt rhythm
	MinDeviation time.Duration // least deviation assumed
	MaxSamples   int           // intervals remembered, 2 to 4096
	Deviations   int64         // y(threshold) in thousandths, from DeviationsFor
}

// Factory makes the detector of one direction of one peer. It is called from the node's control loop, and the detectors
// that it returns share nothing that changes.
type Factory func(s Settings) Detector
