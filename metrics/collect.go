// Collect: one scrape.

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Describe implements prometheus.Collector. Nothing is described before: labels come with types and peers.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector: it reads the node once.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.handler.Collect(ch)
	m.ask.Collect(ch)
	n := m.node.Load()
	if n == nil {
		return
	}
	s := &snapshot{stats: n.Stats(), view: n.View(), health: n.Health(), id: n.ID()}
	out := func(name, help string, kind prometheus.ValueType, labels []string, v float64, values ...string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, labels, nil), kind, v, values...)
	}
	for _, f := range slices.Concat(ofNode, ofTransport) {
		f.read(s, func(v float64, values ...string) { out(f.name, f.help, f.kind, f.labels, v, values...) })
	}
	m.perType(s, out)
	m.perPeer(s, out)
}
