// Phi for people: the suspicion level as a number. No decision reads it.

package fd

import (
	"math"
	"time"

	"github.com/kith-io/kith/peer"
)

// Phi returns the suspicion level of the peer at now; 0 when it was never heard. For display only.
func (d *phiAccrual) Phi(now time.Duration) float64 {
	if !d.heard {
		return 0
	}
	return phiOf(ms(now-d.last), ms(d.history.Mean()+d.settings.Pause), ms(d.deviation()))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func phiOf(elapsed, mean, deviation float64) float64 {
	y := (elapsed - mean) / deviation
	e := math.Exp(-y * (linearTerm + cubicTerm*y*y))
	if elapsed > mean {
		return -math.Log10(e / (1 + e))
	}
	return -math.Log10(1 - 1/(1+e))
}

// MaxPhi is the most that Suspicion.Phi says: a long silence has a level beyond what a float holds.
const MaxPhi = 1000

// Suspicion says how a node judges the silence of one peer that it watches, for people. Of the two directions, its
// answers and its probes, it is the one that comes to a verdict first.
type Suspicion struct {
	Peer peer.ID
	// Phi is the level on the detector's own scale, 0 to MaxPhi: of phi accrual the verdict is at the threshold that is
	// set (8 by default), of the deadline detector at 1.
	Phi float64
	// Silence is how long ago a sign of life came, without what this node was forgiven; zero before the first.
	Silence time.Duration
	// Left is how long the silence may yet last before the peer is unavailable; zero when it is, or was never heard.
	Left      time.Duration
	Available bool // it counts as alive
}

// Suspicions appends how the silence of each peer that is watched is judged at now, sorted, to into. One that was never
// heard has neither Silence nor Left, and is available.
func (m *Monitor) Suspicions(now time.Duration, into []Suspicion) []Suspicion {
	for i := range m.watched {
		w := &m.watched[i]
		if !w.target && !w.probes.heard() {
			continue // what is owed to it is a leave notice
		}
		s := Suspicion{Peer: w.id, Available: !w.broken.acted, Phi: max(w.answers.phi(now), w.probes.phi(now))}
		if !(s.Phi < MaxPhi) { // nor is what is no number
			s.Phi = MaxPhi
		}
		first := time.Duration(-1)
		for _, l := range []*line{&w.answers, &w.probes} {
			at, ok := l.deadline()
			if !ok {
				continue
			}
			s.Available = s.Available && now < at
			if left := max(at-now, 0); first < 0 || left < first {
				first, s.Silence, s.Left = left, max(l.silence(now), 0), left
			}
		}
		into = append(into, s)
	}
	return into
}
