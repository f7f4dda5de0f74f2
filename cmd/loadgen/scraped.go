// loadgen bench, scraped nodes: what is left of the rate when both nodes are watched as nodes in production are.

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/latency"
	"github.com/kith-io/kith/metrics"
)

const (
	scrapePeriod = time.Second
	scrapedTurns = 9 // pairs of plain and watched, each the other way round than the one before
)

// observed is what shows a node to its observers.
type observed struct {
	metrics *metrics.Metrics
	times   *latency.Recorder
}

// observe sets cfg so that its node is measured as kith run does.
func observe(cfg *kith.Config) (*observed, error) {
	m, err := metrics.New(metrics.Config{})
	if err != nil {
		return nil, err
	}
	o := &observed{m, latency.New()}
	cfg.Latency = func(what kith.Measure, typ string, took time.Duration) {
		m.Observe(what, typ, took)
		o.times.Record(what, typ, took)
	}
	return o, nil
}

// serve serves the admin interface of the node on a free loopback port.
func (o *observed) serve(node *kith.Node, secure fleet.Files) (addr string, err error) {
	o.metrics.Watch(node)
	cfg := admin.Config{Listen: "127.0.0.1:0", Metrics: o.metrics.Handler(), Times: o.times}
	if secure != (fleet.Files{}) {
		pair, err := tls.LoadX509KeyPair(secure.Cert, secure.Key)
		if err != nil {
			return "", err
		}
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	}
	s, err := admin.Start(node, cfg)
	if err != nil {
		return "", err
	}
	return s.Addr().String(), nil // it ends with the process
}

// scraped measures a pair without an admin interface, and in turn one with nodes that have theirs, are scraped each
// second, and have a reader of events each.
func (r *rounds) scraped(ctx context.Context, e *env.Env, f bench.Figures) error {
	var pairs [2]*crew
	for i, name := range []string{"plain-", "watched-"} {
		c, err := startCrew(ctx, e, crewArgs{name: name, receivers: 1, shards: benchShards, observed: i == 1})
		if err != nil {
			return err
		}
		defer c.kill()
		if err := c.know(ctx); err != nil {
			return err
		}
		pairs[i] = c
	}
	watch := newScraping(pairs[1].admins)
	defer watch.end()
	for _, exec := range []string{"inline", "worker"} {
		var turns, ratios []bench.Figures
		for turn := range scrapedTurns {
			var rate [2]float64
			for k := range 2 {
				var err error
				if i := (turn + k) % 2; i == 1 {
					rate[i], err = watch.during(ctx, func() (float64, error) { return r.plainTell(ctx, pairs[i], exec) })
				} else {
					rate[i], err = r.plainTell(ctx, pairs[i], exec)
				}
				if err != nil {
					return err
				}
			}
			turns = append(turns, bench.Figures{"alone": rate[0], "beside": rate[1]})
			if rate[0] > 0 {
				ratios = append(ratios, bench.Figures{"ratio": rate[1] / rate[0]})
			}
		}
		rates := bench.Medians(turns)
		f.Set("scraped_rate_"+exec+"_alone", rates["alone"])
		f.Set("scraped_rate_"+exec+"_beside", rates["beside"])
		f.Set("scraped_rate_"+exec+"_ratio", bench.Medians(ratios)["ratio"])
	}
	if err := watch.figures(f); err != nil {
		return err
	}
	r.progress.Printf("scraped")
	return nil
}

// plainTell is one turn of one-way messages to the entities of a mode, as fast as they go.
func (r *rounds) plainTell(ctx context.Context, c *crew, exec string) (rate float64, err error) {
	load := bench.Load{Mode: bench.Tell, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 1}
	rate, _, _, err = r.steady(ctx, c, "usage", execArgs{exec}, func(ctx context.Context, d time.Duration) error {
		load.Duration = d
		return c.sender.Call(ctx, "load", loadArgs{Exec: exec, Load: load}, nil)
	})
	return rate, err
}

// scraping asks nodes for their metrics once in a period, and reads their events.
type scraping struct {
	nodes  []string
	client *http.Client

	mu     sync.Mutex
	count  int
	bytes  int64
	took   *bench.Latency
	failed error
}

func newScraping(nodes []string) *scraping {
	return &scraping{nodes: nodes, client: &http.Client{Transport: &http.Transport{}}, took: bench.NewLatency()}
}

func (s *scraping) end() { s.client.CloseIdleConnections() }

// during watches the nodes while measure runs, and returns the rate of that.
func (s *scraping) during(ctx context.Context, measure func() (float64, error)) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, n := range s.nodes {
		wg.Go(func() { s.events(ctx, n) })
		wg.Go(func() { s.scrapes(ctx, n) })
	}
	rate, err := measure()
	cancel()
	wg.Wait()
	return rate, err
}

func (s *scraping) events(ctx context.Context, node string) {
	if _, err := s.get(ctx, node, "/v1/events"); err != nil && ctx.Err() == nil {
		s.fault(err)
	}
}

func (s *scraping) scrapes(ctx context.Context, node string) {
	for ; ctx.Err() == nil; cli.Pause(ctx, scrapePeriod) {
		begin := time.Now()
		n, err := s.get(ctx, node, "/metrics")
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fault(err)
			return
		}
		s.mu.Lock()
		s.count, s.bytes = s.count+1, s.bytes+n
		s.took.Record(time.Since(begin))
		s.mu.Unlock()
	}
}

func (s *scraping) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// get reads all that a node answers.
func (s *scraping) get(ctx context.Context, node, path string) (bytes int64, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+node+path, nil)
	if err != nil {
		return 0, err
	}
	a, err := s.client.Do(q)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answers %s", path, a.Status)
	}
	return io.Copy(io.Discard, a.Body)
}

// figures tells what was scraped; a node that did not answer is an error, for nothing was measured then.
func (s *scraping) figures(f bench.Figures) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return fmt.Errorf("scrape: %w", s.failed)
	}
	f.Set("scraped_scrapes", float64(s.count))
	f.Set("scraped_kilobytes", float64(s.bytes)/float64(max(s.count, 1))/1e3)
	s.took.Figures(f, "scraped_took", "")
	return nil
}
