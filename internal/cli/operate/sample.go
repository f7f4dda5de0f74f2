// Samples: what a node shows to Prometheus at one moment, and what has happened between two moments.

package operate

import (
	"context"
	"fmt"
	"io"
	"math"
	"sort"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is the metrics of one node at one moment.
type sample struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

// sampled asks a node for its metrics.
func (f *Asked) sampled(ctx context.Context) (*sample, error) {
	a, err := f.open(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the metrics are none: %w", err)
	}
	if families["kith_state"] == nil { // which every node shows
		return nil, fmt.Errorf("%w: metrics, and none of a node", errForeign)
	}
	return &sample{time.Now(), families}, nil
}

// sum adds the values of a gauge or a counter over all its labels.
func (s *sample) sum(name string) float64 {
	total := 0.0
	for _, m := range s.families[name].GetMetric() {
		total += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
	return total
}

// state is the state that the node is in.
func (s *sample) state() string {
	for _, m := range s.families["kith_state"].GetMetric() {
		if m.GetGauge().GetValue() == 1 && len(m.GetLabel()) == 1 {
			return m.GetLabel()[0].GetValue()
		}
	}
	return ""
}

// rate is what a counter has grown by per second since before; below zero never: a node that began again has no rate.
func (s *sample) rate(before *sample, name string) float64 {
	grown := s.sum(name) - before.sum(name)
	if over := s.at.Sub(before.at).Seconds(); over > 0 && grown > 0 {
		return grown / over
	}
	return 0
}

// buckets adds the classic buckets of a histogram over all its labels: how many were at most so many seconds.
func (s *sample) buckets(name string) map[float64]float64 {
	all := map[float64]float64{}
	for _, m := range s.families[name].GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			all[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return all
}

// quantile returns the upper bound of the bucket in which the q-th part of what came since before lies, and whether
// anything came.
func (s *sample) quantile(before *sample, name string, q float64) (time.Duration, bool) {
	now, then := s.buckets(name), before.buckets(name)
	bounds := make([]float64, 0, len(now))
	total := 0.0
	for b, n := range now {
		bounds = append(bounds, b)
		total = math.Max(total, n-then[b])
	}
	if total <= 0 {
		return 0, false
	}
	sort.Float64s(bounds)
	last := 0.0
	for _, b := range bounds {
		if !math.IsInf(b, 1) {
			last = b
		}
		if now[b]-then[b] >= q*total {
			break
		}
	}
	return time.Duration(last * float64(time.Second)), true
}
