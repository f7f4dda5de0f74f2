// Latency: an HDR histogram of durations, with what this package needs around it.

package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of a Latency; what lies outside is recorded at its end.
const (
	minLatency = 100 * time.Nanosecond
	maxLatency = 2 * time.Minute
)

// Latency records durations, three significant digits, from 100 ns to two minutes. It is not safe for concurrent use:
// each goroutine records into its own, and they are merged.
type Latency struct{ h *hdrhistogram.Histogram }

// NewLatency returns an empty Latency. It takes about 250 KiB.
func NewLatency() *Latency {
	return &Latency{hdrhistogram.New(int64(minLatency), int64(maxLatency), 3)}
}

// TimeEvery returns one of how many asks is timed when so many are under way: every one when they are few, one of 16
// when many goroutines, each with a histogram of its own, would otherwise spend much of their time in cold histograms.
func TimeEvery(underway int) int {
	if underway <= 16 {
		return 1
	}
	return 16
}

// Record adds one duration.
func (l *Latency) Record(d time.Duration) {
	_ = l.h.RecordValue(int64(min(max(d, minLatency), maxLatency))) // cannot be out of range
}

// Merge adds what other holds.
func (l *Latency) Merge(other *Latency) { l.h.Merge(other.h) }

// Count returns how many durations were recorded.
func (l *Latency) Count() int64 { return l.h.TotalCount() }

// Quantile returns the duration that q of 100 percent do not exceed, zero when nothing was recorded.
func (l *Latency) Quantile(q float64) time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.h.ValueAtQuantile(q))
}

// Max returns the longest duration recorded.
func (l *Latency) Max() time.Duration { return time.Duration(l.h.Max()) }

// Encode returns the histogram in the compressed encoding (version 2) that HDR tools read.
func (l *Latency) Encode() ([]byte, error) {
	return l.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// DecodeLatency reads what Encode returned.
func DecodeLatency(b []byte) (*Latency, error) {
	h, err := hdrhistogram.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("latency histogram of %d bytes: %w", len(b), err)
	}
	return &Latency{h}, nil
}

// Figures stores p50 and p99 in microseconds as name_p50_us and name_p99_us, followed by suffix, when anything was
// recorded.
func (l *Latency) Figures(f Figures, name, suffix string) {
	if l.Count() == 0 {
		return
	}
	f[name+"_p50_us"+suffix] = Micros(l.Quantile(50))
	f[name+"_p99_us"+suffix] = Micros(l.Quantile(99))
}

// Micros returns d in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / 1e3 }
