// How a node that runs is watched: its statistics, and its admin interface.

package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/latency"
	"github.com/kith-io/kith/metrics"
)

// watchFlags are flags of kith run.
type watchFlags struct {
	Admin          string   `help:"${serve_help}"`
	AdminHosts     []string `help:"${adminhosts_help}"`
	AdminTokenFile string   `type:"existingfile" placeholder:"FILE" help:"${admintoken_help}"`
	Profiling      bool     `help:"Serve pprof on the admin interface; with a token, only to clients that send it."`

	cli.StatsFlags

	times *latency.Recorder // of the admin interface, once it is measured for
	shown *admin.Server     // the admin interface that is served last; nil: none
}

// maxToken bounds the file of a token, in bytes.
const maxToken = 4 << 10

// adminCert is what the admin interface has of the node's TLS: its certificate, or the word to do without.
type adminCert struct {
	cert, key string
	insecure  bool
}

// adminFaults returns what is wrong with the admin interface, or nil.
func (f *watchFlags) adminFaults(c adminCert) error {
	if f.Admin != "" {
		_, err := f.admin(c, nil)
		return cli.About(err, admin.ErrBadConfig, "Listen", "--admin", "Token", "--admin-token-file", "Hosts",
			"--admin-hosts")
	}
	if f.AdminTokenFile != "" || f.Profiling || len(f.AdminHosts) > 0 {
		return errors.New("--admin-token-file, --admin-hosts and --profiling need --admin")
	}
	return nil
}

// admin returns the configuration of the admin interface. Its certificate is the node's, read when somebody connects.
func (f *watchFlags) admin(c adminCert, log *slog.Logger) (admin.Config, error) {
	cfg := admin.Config{Listen: f.Admin, Insecure: c.insecure, Hosts: f.AdminHosts, Profiling: f.Profiling,
		Logger: log}
	if f.AdminTokenFile != "" {
		var err error
		if cfg.Token, err = f.token(); err != nil {
			return cfg, err
		}
	}
	if c.cert != "" {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: (&shownCert{cert: c.cert, key: c.key}).get}
	}
	return cfg, cfg.Validate()
}

// token returns what --admin-token-file holds.
func (f *watchFlags) token() (string, error) {
	content, err := files.Read(f.AdminTokenFile, maxToken)
	if err != nil {
		return "", fmt.Errorf("--admin-token-file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", errors.New("--admin-token-file is empty")
	}
	return token, nil
}

// reloadToken has the admin interface ask for what the file of its token holds now. With a file that is no good it goes
// on to ask for the token that it has.
func (f *watchFlags) reloadToken(log *slog.Logger) {
	token, err := f.token()
	if err == nil {
		err = cli.About(f.shown.SetToken(token), admin.ErrBadConfig, "Token", "--admin-token-file")
	}
	if err != nil {
		log.Warn("admin token not reloaded: the one that is in force stays", "event", "node-reload-failed", "error", err)
	}
}

// shownCert is the certificate that an admin interface shows, from files that are read once a second at most: strangers
// open connections as often as they want.
type shownCert struct {
	cert, key string

	mu   sync.Mutex
	at   time.Time
	pair *tls.Certificate
	err  error
}

// get returns what the files hold.
func (s *shownCert) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < time.Second {
		return s.pair, s.err
	}
	var pair tls.Certificate
	chain, err := files.Read(s.cert, pki.MaxFile)
	if err == nil {
		var key []byte
		if key, err = files.Read(s.key, pki.MaxFile); err == nil {
			pair, err = tls.X509KeyPair(chain, key)
		}
	}
	s.at, s.pair, s.err = time.Now(), &pair, err
	return s.pair, s.err
}

// measure has the node that cfg is for measured, when there is to be somewhere to show it; nil else.
func (f *watchFlags) measure(cfg *kith.Config) *metrics.Metrics {
	if f.Admin == "" {
		return nil
	}
	m, _ := metrics.New(metrics.Config{}) // which has no faults
	f.times = latency.New()
	if told := cfg.Latency; told != nil {
		cfg.Latency = func(what kith.Measure, typ string, took time.Duration) {
			told(what, typ, took)
			m.Observe(what, typ, took)
			f.times.Record(what, typ, took)
		}
	}
	return m
}

// order has the node of a process go over to the cluster of the seeds.
type order struct {
	seeds []string
	leave bool       // one in company too, which leaves first
	done  chan error // gets what came of it; with leave, that the order is taken
}

// orders is where they come in.
type orders chan order

// join orders a node that is alone to go over, and waits for what comes of it.
func (o orders) join(ctx context.Context, seeds []string) error { return o.give(ctx, seeds, false) }

// leave orders a node to leave and go over.
func (o orders) leave(ctx context.Context, seeds []string) error { return o.give(ctx, seeds, true) }

func (o orders) give(ctx context.Context, seeds []string, leave bool) error {
	over := order{seeds, leave, make(chan error, 1)}
	select {
	case o <- over:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-over.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve serves the admin interface with these metrics, if there is to be one. What it returns ends it. Served again,
// for the next node of the process, it has the same address.
func (f *watchFlags) serve(n *kith.Node, m *metrics.Metrics, c adminCert, log *slog.Logger, o orders) (end func(),
	err error) {
	if m == nil {
		return func() {}, nil
	}
	m.Watch(n)
	cfg, err := f.admin(c, log)
	if err != nil {
		return nil, err
	}
	cfg.Metrics, cfg.Times, cfg.Join = m.Handler(), f.times, o.join
	cfg.LeaveAndJoin = o.leave
	s, err := admin.Start(n, cfg)
	if err != nil {
		return nil, err
	}
	f.Admin, f.shown = s.Addr().String(), s
	log.Info("admin interface", "event", "admin-started", "address", s.Addr().String(), "tls", cfg.TLS != nil)
	return func() {
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(bounded)
	}, nil
}
