// The longest silence that the detector bears: by then who is cut off has noticed (FD-1).

package membership

import (
	"time"

	"github.com/kith-io/kith/fd"
)

// regularBeats is how many heartbeats of a regular rhythm SilenceBound looks at.
const regularBeats = 16

// detectors are the settings of the detectors of one node; c has its defaults.
func (c Config) detectors() fd.Settings {
	return fd.Settings{Interval: c.HeartbeatInterval, Pause: c.AcceptablePause, MinDeviation: c.MinStdDeviation,
		MaxSamples: c.MaxSamples, Deviations: fd.DeviationsFor(c.Threshold)}
}

// SilenceBound returns how long after the last sign of life of a peer an accusation against it is written at the
// latest, when its heartbeats came in their regular rhythm, the first one included: a detector that has just begun is
// the most patient. Accusations wait for no reaper, and a second probe puts none off. It asks the configured Detector
// itself.
func (c Config) SilenceBound() time.Duration {
	c = c.WithDefaults()
	d := c.Detector(c.detectors())
	var most, at time.Duration
	for range regularBeats {
		at += c.HeartbeatInterval
		d.Heartbeat(at)
		if deadline, ok := d.Deadline(); ok {
			most = max(most, deadline-at)
		}
	}
	return most + verdictBatch
}
