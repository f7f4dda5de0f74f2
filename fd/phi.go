// Phi accrual (Hayashibara et al.) of one peer, decided in integers.

package fd

import "time"

// PhiAccrual is the Factory of the phi accrual detector, the default: silence is judged by the rhythm that was learnt.
func PhiAccrual(s Settings) Detector { return newPhi(s) }

// phiAccrual holds the learnt rhythm; the deadline is computed once per heartbeat.
type phiAccrual struct {
	settings Settings
	history  Window
	last     time.Duration
	deadline time.Duration
	heard    bool
}

func newPhi(s Settings) *phiAccrual { return &phiAccrual{settings: s} }

// Heartbeat records a heartbeat. The first seeds the history with intervals of three and five quarters of the expected
// one. Later ones add their interval, unless the peer was unavailable at that moment: a silence that ended in a verdict
// is no rhythm.
func (d *phiAccrual) Heartbeat(arrived time.Duration) {
	switch {
	case !d.heard:
		d.history = NewWindow(d.settings.MaxSamples)
		d.history.Add(d.settings.Interval - d.settings.Interval/4)
		d.history.Add(d.settings.Interval + d.settings.Interval/4)
		d.heard = true
	case arrived <= d.last:
		return
	case arrived < d.deadline:
		d.history.Add(arrived - d.last)
	}
	d.last = arrived
	d.deadline = arrived + d.limit()
}

func (d *phiAccrual) deviation() time.Duration {
	return max(d.history.StdDeviation(), d.settings.MinDeviation)
}

// limit is the silence from which on the peer is unavailable: mean + pause + y(threshold) deviations.
func (d *phiAccrual) limit() time.Duration {
	return d.history.Mean() + d.settings.Pause +
		time.Duration(int64(d.deviation()/time.Microsecond)*d.settings.Deviations)*time.Nanosecond
}

// Available reports whether the peer counts as alive at now.
func (d *phiAccrual) Available(now time.Duration) bool { return !d.heard || now < d.deadline }

// Deadline returns from when on silence is a verdict.
func (d *phiAccrual) Deadline() (at time.Duration, ok bool) { return d.deadline, d.heard }
