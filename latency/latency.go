// Package latency keeps HDR histograms of how long handlers and asks take, by type, for programs that configure a node
// with it. An embedder that does not import it pays for no histogram.
package latency

import (
	"cmp"
	"sort"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
)

// The range of a histogram; what lies outside is recorded at its end.
const (
	least  = 100 * time.Nanosecond
	most   = 2 * time.Minute
	digits = 2
)

// MaxSeries bounds the histograms of a Recorder, about 25 KiB each. What is recorded of further types is counted in
// Dropped only. A node has two series for each of its types.
const MaxSeries = 512

// Recorder takes what Config.Latency gets. Make one with New, and give its Record to the node:
//
//	times := latency.New()
//	node, err := kith.Start(ctx, kith.Config{Latency: times.Record})
//	for _, s := range times.Snapshot() { ... }
//
// Its methods are safe for concurrent use.
type Recorder struct {
	mu      sync.RWMutex // of the table
	series  map[key]*series
	dropped uint64
}

type key struct {
	typ  string
	what kith.Measure
}

type series struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

// New returns an empty Recorder.
func New() *Recorder { return &Recorder{series: map[key]*series{}} }

// Record adds one duration. It allocates only for the first one of a type and measure.
func (r *Recorder) Record(what kith.Measure, typ string, took time.Duration) {
	k := key{typ, what}
	r.mu.RLock()
	s := r.series[k]
	r.mu.RUnlock()
	if s == nil {
		if s = r.add(k); s == nil {
			return
		}
	}
	s.mu.Lock()
	_ = s.h.RecordValue(int64(min(max(took, least), most))) // cannot be out of range
	s.mu.Unlock()
}

func (r *Recorder) add(k key) *series {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[k]
	if s == nil && len(r.series) >= MaxSeries {
		r.dropped++
		return nil
	}
	if s == nil {
		s = &series{h: hdrhistogram.New(int64(least), int64(most), digits)}
		r.series[k] = s
	}
	return s
}

// Dropped returns how many durations found the bound of series reached.
func (r *Recorder) Dropped() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.dropped
}

// Series is a snapshot of one histogram.
type Series struct {
	Type    string
	Measure kith.Measure
	Count   int64 // durations recorded: samples, not messages

	Min, Mean, P50, P90, P99, P999, Max time.Duration

	hdr *hdrhistogram.Histogram
}

// Quantile returns the duration that q of 100 percent do not exceed, to two digits.
func (s *Series) Quantile(q float64) time.Duration { return time.Duration(s.hdr.ValueAtQuantile(q)) }

// Encode returns the histogram in nanoseconds in the compressed encoding, version 2, that HDR tools read.
func (s *Series) Encode() ([]byte, error) {
	return s.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// Snapshot returns a copy of all histograms, by type and measure. They go on counting.
func (r *Recorder) Snapshot() []Series { return r.snapshot(false) }

// Take is Snapshot, and starts all histograms anew: each call tells of the time since the one before.
func (r *Recorder) Take() []Series { return r.snapshot(true) }

func (r *Recorder) snapshot(reset bool) []Series {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Series, 0, len(r.series))
	for k, s := range r.series {
		s.mu.Lock()
		h := hdrhistogram.Import(s.h.Export())
		if reset {
			s.h.Reset()
		}
		s.mu.Unlock()
		if h.TotalCount() == 0 {
			continue
		}
		d := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) }
		list = append(list, Series{
			Type: k.typ, Measure: k.what, Count: h.TotalCount(), Min: time.Duration(h.Min()), Mean: time.Duration(h.Mean()),
			P50: d(50), P90: d(90), P99: d(99), P999: d(99.9), Max: time.Duration(h.Max()), hdr: h,
		})
	}
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Measure, b.Measure)) < 0
	})
	return list
}
