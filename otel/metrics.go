// Metrics: those that package metrics has of a node, for a reader of OpenTelemetry.

package otelkith

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kith-io/kith/metrics"
)

// Metrics returns a producer of the metrics of a node, under the names of docs/metrics.md, for a reader such as
// metric.NewPeriodicReader(exporter, metric.WithProducer(p)). They are read when the reader collects, and never else.
func Metrics(m *metrics.Metrics) (metric.Producer, error) {
	r := prometheus.NewRegistry()
	if err := r.Register(m); err != nil {
		return nil, fmt.Errorf("otelkith: %w", err)
	}
	return bridge.NewMetricProducer(bridge.WithGatherer(r)), nil
}
