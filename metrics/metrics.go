// Package metrics shows the figures of a node to Prometheus: a collector that reads Node.Stats when it is scraped, and
// histograms of handler and ask times. The hot path pays nothing for the collector; the histograms are fed by
// Config.Latency, of one message in Config.LatencyEvery or rarer. docs/metrics.md lists what there is.
package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kith-io/kith"
)

// Bounds of labels: what is beyond is summed under Other.
const (
	DefaultTypes = 100
	DefaultPeers = 100
	Other        = "other"

	maxAuthorities = 32
)

// ErrBadConfig is wrapped by the errors of Config.Validate.
var ErrBadConfig = errors.New("metrics: bad configuration")

// Config says what is shown. The zero value shows everything, with the default bounds.
type Config struct {
	Types int // how many types have a label of their own, in the order of registration; zero means DefaultTypes
	Peers int // how many peers have one, in the order of their addresses; zero means DefaultPeers
}

// Validate returns all faults of c joined, each wrapping ErrBadConfig, or nil.
func (c Config) Validate() error {
	var errs []error
	for name, n := range map[string]int{"Types": c.Types, "Peers": c.Peers} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%w: %s is negative: %d", ErrBadConfig, name, n))
		}
	}
	return errors.Join(errs...)
}

// Metrics are those of one node. It is a prometheus.Collector.
type Metrics struct {
	cfg     Config
	node    atomic.Pointer[kith.Node]
	handler *prometheus.HistogramVec
	ask     *prometheus.HistogramVec
	types   typeNames
}

// New returns the metrics of a node that is to be started: give Observe to its Config.Latency, then the node to Watch.
// Errors: those of Config.Validate.
func New(cfg Config) (*Metrics, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Types == 0 {
		cfg.Types = DefaultTypes
	}
	if cfg.Peers == 0 {
		cfg.Peers = DefaultPeers
	}
	m := &Metrics{cfg: cfg, types: typeNames{most: cfg.Types}}
	m.handler = histogram("kith_handler_seconds", "How long one message was worked off where its entity lives, sampled.")
	m.ask = histogram("kith_ask_seconds", "How long an ask of this node took to its answer, sampled.")
	return m, nil
}

// histogram makes one that has native buckets, and classic ones for servers that do not take these.
func histogram(name, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
		Buckets:                     prometheus.ExponentialBuckets(1e-6, 4, 12), // 1 us to 4.2 s
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, []string{"type"})
}

// Observe takes a duration as Config.Latency gets it. It is safe for concurrent use and does not block.
func (m *Metrics) Observe(what kith.Measure, typ string, took time.Duration) {
	h := m.handler
	if what == kith.AskTime {
		h = m.ask
	}
	h.WithLabelValues(m.types.label(typ)).Observe(took.Seconds())
}

// Watch makes the metrics those of a node. Before it there are none but the histograms.
func (m *Metrics) Watch(n *kith.Node) { m.node.Store(n) }

// Handler serves the metrics of the node, of the Go runtime and of the process, and nothing else. Scrapes are gathered
// one after the other; a reader that takes its time with an answer holds up no other.
func (m *Metrics) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gather, turn := promhttp.HandlerFor(r, promhttp.HandlerOpts{}), make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case turn <- struct{}{}:
		case <-q.Context().Done():
			return
		}
		p := &page{header: w.Header(), status: http.StatusOK}
		func() {
			defer func() { <-turn }()
			gather.ServeHTTP(p, q)
		}()
		w.WriteHeader(p.status)
		_, _ = w.Write(p.text.Bytes())
	})
}

// page is an answer that is written when it is whole.
type page struct {
	header http.Header
	status int
	text   bytes.Buffer
}

// Header returns the header of the answer.
func (p *page) Header() http.Header { return p.header }

// WriteHeader takes the status.
func (p *page) WriteHeader(status int) { p.status = status }

// Write takes the text.
func (p *page) Write(b []byte) (int, error) { return p.text.Write(b) }

// typeNames gives the first types that come a label of their own.
type typeNames struct {
	most  int
	known sync.Map // name to label
	mu    sync.Mutex
	n     int
}

func (t *typeNames) label(typ string) string {
	if l, is := t.known.Load(typ); is {
		return l.(string)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, is := t.known.Load(typ); is {
		return l.(string)
	}
	l := Other
	if t.n < t.most {
		t.n++
		l = typ
	}
	t.known.Store(typ, l) // no more than a node has types
	return l
}
