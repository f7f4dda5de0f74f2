// loadgen doors: a crowd at the ports with HTTP of a node, and what probes, newcomers and asks notice of it.

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/internal/base/door"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/lab/hostile"
)

// doorsCmd is the flags of loadgen doors.
type doorsCmd struct {
	Readers  int           `default:"30" help:"Connections at each port that ask all the time, 0 to 1000."`
	Streams  int           `default:"240" help:"Requests of each of them at a time, 1 to 1000."`
	Idle     int           `default:"400" help:"Connections to the admin interface that say next to nothing, 0 to 4000."`
	Silent   int           `default:"1500" help:"Connections to the contact point that say nothing, 0 to 4000."`
	Rate     float64       `default:"2000" help:"Asks per second, 1 to 1000000."`
	Shards   uint32        `default:"16384" help:"Shards of each type, 1 to 1048576."`
	Duration time.Duration `default:"15s" help:"How long the crowd stays, 1s to 10m; asks alone get a third of it."`
	Limit    time.Duration `name:"probe-limit" default:"1s" help:"How long a probe waits for its answer, 100ms to 1m."`
	TLS      bool          `name:"tls" help:"${tls_help}"`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *doorsCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Readers >= 0 && c.Readers <= 1000, "--readers must be 0 to 1000")
	errs.Must(c.Streams >= 1 && c.Streams <= 1000, "--streams must be 1 to 1000")
	errs.Must(c.Idle >= 0 && c.Idle <= 4000, "--idle must be 0 to 4000")
	errs.Must(c.Silent >= 0 && c.Silent <= 4000, "--silent must be 0 to 4000")
	errs.Must(c.Rate >= 1 && c.Rate <= 1e6, "--rate must be 1 to 1000000")
	errs.Must(c.Shards >= 1 && c.Shards <= 1<<20, "--shards must be 1 to 1048576")
	errs.Must(c.Duration >= time.Second && c.Duration <= 10*time.Minute, "--duration must be 1s to 10m")
	errs.Must(c.Limit >= 100*time.Millisecond && c.Limit <= time.Minute, "--probe-limit must be 100ms to 1m")
	return errs.Err()
}

// doorsLine is the last line of loadgen doors.
type doorsLine struct {
	Secure       bool    `json:"tls"`
	Probes       uint64  `json:"probes"`        // of health, each on a connection of its own, and within the limit
	ProbesFailed uint64  `json:"probes_failed"` // of them, those that asked in time and were not answered with 200
	ProbesLate   uint64  `json:"probes_late"`   // of them, those that this process asked too late, and were not
	ProbeP99     float64 `json:"probe_p99_ms"`
	Joins        int     `json:"joins"`   // nodes that came by the contact point meanwhile
	JoinMax      float64 `json:"join_ms"` // the slowest of them, from its start until it was Up
	AskAlone     float64 `json:"ask_rate_alone"`
	AskBeside    float64 `json:"ask_rate_beside"`
	AskRatio     float64 `json:"ask_rate_ratio"`
	AsksFailed   uint64  `json:"asks_failed"`
	Asked        uint64  `json:"crowd_answers"`
	Refused      uint64  `json:"crowd_refused"` // of them, with 503
	HTTP2        uint64  `json:"crowd_http2"`   // over HTTP/2
	Opened       uint64  `json:"crowd_opened"`  // connections that said next to nothing
	Members      int     `json:"members"`       // that the last newcomer saw, itself among them: nobody was downed
}

// Run measures asks alone, then beside the crowd, with probes and newcomers.
func (c *doorsCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	progress := cli.NewProgress(e.Stderr, c.Progress)
	files := fleet.Files{}
	if c.TLS {
		keys, err := newCerts()
		if err != nil {
			return err
		}
		defer keys.Remove()
		files = keys.Of(certName)
	}
	crew, err := startCrew(ctx, e, crewArgs{receivers: 1, shards: c.Shards, tls: files, contact: true})
	if err != nil {
		return err
	}
	defer crew.kill()
	if err := crew.flush(ctx, "worker", benchEntities); err != nil {
		return err
	}
	m := &doors{cmd: c, tls: files, progress: progress, crew: crew, at: crew.at}
	line := doorsLine{Secure: c.TLS}
	alone, err := m.asks(ctx, max(c.Duration/3, time.Second))
	if err != nil {
		return err
	}
	progress.Printf("asks alone: %.0f/s", alone.rate())
	if err := m.beside(ctx, &line); err != nil {
		return err
	}
	line.AskAlone = alone.rate()
	line.AskRatio = line.AskBeside / max(line.AskAlone, 1)
	line.AsksFailed += alone.Failed
	return cli.Line(e.Stdout, "doors", line)
}

// doors is the node that is crowded, and the one that sends to it.
type doors struct {
	cmd      *doorsCmd
	tls      fleet.Files
	progress *cli.Progress
	crew     *crew
	at       startReply
}

// askReply is what came of asks.
type askReply struct{ loadReply }

func (r askReply) rate() float64 { return float64(r.Sent-r.Failed) / max(r.Took.Seconds(), 1e-9) }

// asks sends them at the rate.
func (m *doors) asks(ctx context.Context, d time.Duration) (r askReply, err error) {
	load := bench.Load{Mode: bench.Ask, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 4, Inflight: 64,
		Rate: m.cmd.Rate, Duration: d, Timeout: 5 * time.Second}
	err = m.crew.sender.Call(ctx, "load", loadArgs{Exec: "worker", Load: load}, &r.loadReply)
	return r, err
}

// client is the TLS of one that proves nothing but, where newcomers are meant, is one of the cluster.
func (m *doors) client() *tls.Config {
	if m.tls == (fleet.Files{}) {
		return nil
	}
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
}

// beside measures all of it while the crowd is there.
func (m *doors) beside(ctx context.Context, line *doorsLine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	crowd := &hostile.Crowd{Admin: m.at.Admin, Contact: m.at.Contact, TLS: m.client(), Readers: m.cmd.Readers,
		Streams: m.cmd.Streams, Idle: m.cmd.Idle, Silent: m.cmd.Silent, ContactPath: "/bootstrap/v1/contact",
		Paths: []string{"/v1/types/sink-inline", "/v1/types/sink-worker", "/metrics", "/v1/snapshot", "/v1/stats",
			"/v1/types/sink-inline?shards=true", "/health/ready", "/nothing"}}
	var came hostile.Figures
	gone := make(chan struct{})
	go func() { defer close(gone); crowd.Run(ctx, &came) }()
	probed, trips := make(chan struct{}), bench.NewLatency()
	quit := make(chan struct{})
	go func() { defer close(probed); m.probe(quit, line, trips) }()
	joined := make(chan error, 1)
	go func() { joined <- m.joins(ctx, quit, line) }()
	r, err := m.asks(ctx, m.cmd.Duration)
	close(quit)
	err = errors.Join(err, <-joined)
	<-probed
	cancel()
	<-gone
	line.AskBeside, line.AsksFailed = r.rate(), r.Failed
	line.ProbeP99 = float64(trips.Quantile(0.99)) / float64(time.Millisecond)
	line.Asked, line.Refused, line.HTTP2, line.Opened = came.Asked.Load(), came.Refused.Load(), came.HTTP2.Load(),
		came.Opened.Load()
	return err
}

// probePause is shorter than that of an orchestrator's probes; joinPause lies between two newcomers.
const (
	probePause = 50 * time.Millisecond
	joinPause  = time.Second
)

// probe asks for the node's health again and again, as an orchestrator does, from the address of the crowd.
func (m *doors) probe(quit <-chan struct{}, line *doorsLine, trips *bench.Latency) {
	scheme := "http://"
	if m.tls != (fleet.Files{}) {
		scheme = "https://"
	}
	client := &http.Client{Timeout: m.cmd.Limit, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: m.client()}}
	for n := 0; ; n++ {
		select {
		case <-quit:
			return
		case <-time.After(probePause):
		}
		began, p := time.Now(), &pace{}
		err := p.get(client, scheme+m.at.Admin+[]string{"/health/ready", "/health/alive", "/health/started"}[n%3])
		took := time.Since(began)
		trips.Record(took)
		switch line.Probes++; {
		case err == nil:
		case p.late(time.Now()):
			line.ProbesLate++
			m.progress.Printf("a probe asked late, and failed after %.0f ms: %v", 1e3*took.Seconds(), err)
		default:
			line.ProbesFailed++
			m.progress.Printf("a probe failed after %.0f ms: %v", 1e3*took.Seconds(), err)
		}
	}
}

// pace is when a probe was connected, and when it wrote something, as far as it came. A machine that is busy may let
// this process stand still in between: then the node sees a connection that says nothing, and may put it out.
type pace struct {
	mu                              sync.Mutex // the transport writes in a goroutine of its own
	connected, spoke, agreed, asked time.Time
}

// get asks once, on a connection of its own. The error is that of the way, or says which status came.
func (p *pace) get(client *http.Client, url string) error {
	at := func(t *time.Time) { p.mu.Lock(); defer p.mu.Unlock(); *t = time.Now() }
	trace := &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				at(&p.connected)
			}
		},
		TLSHandshakeStart: func() { at(&p.spoke) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { at(&p.agreed) },
		WroteRequest:      func(httptrace.WroteRequestInfo) { at(&p.asked) },
	}
	q, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if says, _ := io.ReadAll(io.LimitReader(a.Body, 4096)); a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, a.Status, says)
	}
	return nil
}

// late reports whether the probe said nothing for as long as a node waits for the first bytes of a connection, by its
// own fault: before its first bytes, or between the handshake and its request. now stands for what has not come.
func (p *pace) late(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	or := func(t, u time.Time) time.Time {
		if t.IsZero() {
			return u
		}
		return t
	}
	asked := or(p.asked, now)
	silent := !p.connected.IsZero() && or(p.spoke, asked).Sub(p.connected) >= door.NewTime
	return silent || !p.agreed.IsZero() && asked.Sub(p.agreed) >= door.NewTime
}

// joins makes nodes join by the contact point, one after the other, and leave.
func (m *doors) joins(ctx context.Context, quit <-chan struct{}, line *doorsLine) error {
	at, err := discovery.Static(m.at.Contact)
	for err == nil {
		began := time.Now()
		b, err := bootstrap.Start(ctx, kith.Config{Name: clusterName, TLS: m.tls.TLS()}, bootstrap.Config{
			Listen: "127.0.0.1:0", NeverForm: true, Expected: 2, Discovery: at})
		if err != nil {
			return err
		}
		ready, cancel := context.WithTimeout(ctx, fleet.FormLimit)
		err = b.Node().Ready(ready)
		cancel()
		took := time.Since(began)
		line.Members = b.Node().View().CountUp()
		bye, cancel := context.WithTimeout(ctx, leaveLimit)
		err = errors.Join(err, b.Node().Leave(bye), b.Close(bye))
		cancel()
		if err != nil {
			return fmt.Errorf("a newcomer: %w", err)
		}
		line.Joins++
		line.JoinMax = max(line.JoinMax, float64(took)/float64(time.Millisecond))
		select {
		case <-quit:
			return nil
		case <-time.After(joinPause):
		}
	}
	return err
}
