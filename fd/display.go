// Phi for people: the suspicion level as a number. No decision reads it.

package fd

import (
	"math"
	"time"
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
