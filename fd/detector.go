// Detector: phi accrual (Hayashibara et al.) of one peer, decided in integers (FD-1).

package fd

import "time"

// Settings of the detectors of one node.
type Settings struct {
	Interval     time.Duration // expected heartbeat interval; seeds the history
	Pause        time.Duration // silence tolerated beyond the learnt rhythm
	MinDeviation time.Duration // least deviation assumed
	MaxSamples   int           // intervals remembered, 2 to 4096
	Deviations   int64         // y(threshold) in thousandths, from DeviationsFor
}

// Detector judges one peer by the stamps of its heartbeats. The zero value has heard nothing and is available.
type Detector struct {
	history Window
	last    time.Duration
	heard   bool
}

// Heard reports whether there was any heartbeat, an assumed one included.
func (d *Detector) Heard() bool { return d.heard }

// Last returns the stamp of the newest heartbeat.
func (d *Detector) Last() time.Duration { return d.last }

// Heartbeat records a sign of life that arrived at the given stamp. The first seeds the history with intervals of
// three and five quarters of the expected one. Later ones add their interval, unless the peer was unavailable at that
// moment: a silence that ended in a verdict is no rhythm. A stamp that is not newer than the last is no news.
func (d *Detector) Heartbeat(s *Settings, arrived time.Duration) {
	if !d.heard {
		d.history = NewWindow(s.MaxSamples)
		d.history.Add(s.Interval - s.Interval/4)
		d.history.Add(s.Interval + s.Interval/4)
		d.heard, d.last = true, arrived
		return
	}
	if arrived <= d.last {
		return
	}
	if d.Available(s, arrived) {
		d.history.Add(arrived - d.last)
	}
	d.last = arrived
}

// Limit returns the silence from which on the peer is unavailable: mean + pause + y(threshold) deviations.
func (d *Detector) Limit(s *Settings) time.Duration {
	deviation := max(d.history.StdDeviation(), s.MinDeviation)
	return d.history.Mean() + s.Pause + time.Duration(int64(deviation/time.Microsecond)*s.Deviations)*time.Nanosecond
}

// Available reports whether the peer counts as alive at now. One that was never heard does.
func (d *Detector) Available(s *Settings, now time.Duration) bool {
	return !d.heard || now-d.last < d.Limit(s)
}
