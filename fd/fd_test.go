// Tests of the detector: scenarios 21 and 22 of the reference, and the integer decision against the formula (FD-1).

package fd

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const millis = time.Millisecond

func settings() Settings {
	return Settings{Interval: time.Second, Pause: 3 * time.Second, MinDeviation: 100 * millis, MaxSamples: 1000,
		Deviations: DeviationsFor(8)}
}

// Scenario 21, the function: phi of given means and deviations.
func TestScenario21Phi(t *testing.T) {
	for elapsed, want := range map[float64]float64{0: 0, 500: 0, 1000: 0.301030, 1200: 1.642828, 1400: 4.736695,
		1600: 10.782601, 1700: 15.368526} {
		require.InDelta(t, want, phiOf(elapsed, 1000, 100), 1e-5, elapsed)
	}
	require.InDelta(t, 37.5847, phiOf(10, 0, 1), 1e-3)
	require.InDelta(t, 0, phiOf(-25, 0, 1), 1e-9)
	for elapsed, want := range map[float64]float64{0: 0.5, 6: 0.7257, 15: 0.9332, 20: 0.97725, 25: 0.99379,
		35: 0.99977, 40: 0.99997} {
		require.InDelta(t, want, 1-math.Pow(10, -phiOf(elapsed, 0, 10)), 1e-3, elapsed)
	}
	require.InDelta(t, 0.7475, 1-math.Pow(10, -phiOf(22, 20, 3)), 1e-3)
	for e := 1.0; e <= 40; e++ {
		require.Greater(t, phiOf(e, 0, 10), phiOf(e-1, 0, 10))
	}
}

// Scenario 21, the history: means in ms, variances in ms squared (ours are in square microseconds, rounded down).
func TestScenario21History(t *testing.T) {
	w := NewWindow(20)
	for _, v := range []time.Duration{100, 200, 125, 340, 130} {
		w.Add(v * millis)
	}
	require.Equal(t, 179*millis, w.Mean())
	require.Equal(t, uint64(7584e6), w.Variance())
	w = NewWindow(3)
	for i, v := range []time.Duration{100, 110, 90, 140, 80} {
		w.Add(v * millis)
		switch i {
		case 2:
			require.Equal(t, 100*millis, w.Mean())
			require.InDelta(t, 66.6667e6, float64(w.Variance()), 100)
		case 3:
			require.InDelta(t, 113.3333, ms(w.Mean()), 1e-3)
			require.InDelta(t, 422.2222e6, float64(w.Variance()), 100)
		case 4:
			require.InDelta(t, 103.3333, ms(w.Mean()), 1e-3)
			require.InDelta(t, 688.8889e6, float64(w.Variance()), 100)
		}
	}
	require.Equal(t, 3, w.Len())
}

func TestWindowBounds(t *testing.T) {
	w := NewWindow(1 << 20)
	for range 5000 {
		w.Add(time.Hour)
	}
	require.Equal(t, 4096, w.Len())
	require.Equal(t, time.Minute, w.Mean())
	require.Zero(t, w.Variance())
	w.Add(-time.Second)
	require.Equal(t, time.Minute, w.Mean().Round(time.Second), "a negative interval counts as zero")
	var empty Window
	require.Zero(t, empty.Mean()+empty.StdDeviation())
	for _, v := range []uint64{1, 2, 3, 4, 8, 9, 15, 16, 1<<32 - 1, 1 << 62, math.MaxUint64} {
		r := isqrt(v)
		require.LessOrEqual(t, r*r, v)
		require.True(t, r == 1<<32-1 || (r+1)*(r+1) > v, v)
	}
}

// The thresholds of the reference in deviations, and the bisection against the formula.
func TestDeviationsFor(t *testing.T) {
	require.Equal(t, int64(5226), DeviationsFor(8))
	require.Equal(t, int64(5799), DeviationsFor(10))
	require.Equal(t, int64(6292), DeviationsFor(12))
	for th := 1.0; th <= 16; th += 0.25 {
		y := float64(DeviationsFor(th)) / 1000
		require.Less(t, phiOf(y-0.001, 0, 1), th)
		require.Greater(t, phiOf(y+0.001, 0, 1), th)
	}
	require.Equal(t, DeviationsFor(1), DeviationsFor(-5))
	require.Equal(t, DeviationsFor(16), DeviationsFor(99))
}

// The figures that the reference derives: 5.31 s of silence after the first answer, 4.52 s in a steady rhythm.
func TestDetectionTimes(t *testing.T) {
	d := newPhi(settings())
	d.Heartbeat(0)
	require.Equal(t, 5306500*time.Microsecond, d.limit())
	require.True(t, d.Available(5306*millis))
	require.False(t, d.Available(5307*millis))
	for i := 1; i <= 1100; i++ {
		d.Heartbeat(time.Duration(i) * time.Second)
	}
	require.Equal(t, 4522600*time.Microsecond, d.limit())
	at, ok := d.Deadline()
	require.True(t, ok)
	require.Equal(t, 1100*time.Second+d.limit(), at)
}

// Scenario 22: what the detector answers over its life.
func TestScenario22Detector(t *testing.T) {
	s := settings()
	s.Pause = 0
	d := newPhi(s)
	require.True(t, d.Available(time.Hour), "never heard: available")
	require.Zero(t, d.Phi(time.Hour))
	d.Heartbeat(0)
	d.Heartbeat(1000 * millis)
	d.Heartbeat(1100 * millis)
	require.True(t, d.Available(1200*millis))
	require.False(t, d.Available(1200*millis+7*time.Second), "silence")
	require.Greater(t, d.Phi(8200*millis), 8.0)

	before := d.history
	d.Heartbeat(8200 * millis)
	require.True(t, d.Available(8300*millis), "heard again: available again")
	require.Equal(t, before.Len(), d.history.Len(), "the silence is not recorded as a rhythm")
	d.Heartbeat(8900 * millis)
	require.Equal(t, before.Len()+1, d.history.Len())

	d.Heartbeat(8000 * millis)
	require.Equal(t, 8900*millis, d.last, "a stamp that went back is no news")
	require.Equal(t, before.Len()+1, d.history.Len())

	// The tolerated pause shifts the limit one to one.
	limit := d.limit()
	d.settings.Pause = 3 * time.Second
	require.Equal(t, limit+3*time.Second, d.limit())

	// The window forgets: four samples of 1 s after a rhythm of 100 ms.
	s.MaxSamples, s.Pause = 4, 0
	d = newPhi(s)
	now := time.Duration(0)
	for range 10 {
		now += 100 * millis
		d.Heartbeat(now)
	}
	require.Equal(t, 100*millis, d.history.Mean())
	for range 8 {
		now += 500 * millis
		d.Heartbeat(now)
	}
	require.Equal(t, 500*millis, d.history.Mean())
}

// The integer decision agrees with phi below the threshold, away from the rounding of y to thousandths.
func TestDecisionAgreesWithPhi(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	d := newPhi(settings())
	now := time.Duration(0)
	for range 2000 {
		now += time.Duration(rng.IntN(3_000_000)) * time.Microsecond
		d.Heartbeat(now)
		at := now + time.Duration(rng.IntN(12_000_000))*time.Microsecond
		slack := d.deviation() / 1000
		if gap := at - now - d.limit(); gap > slack || gap < -slack {
			require.Equal(t, d.Phi(at) < 8, d.Available(at), "at %v", at-now)
		}
	}
}
