// The admin interface of a service: what it is given of the node, and its token.

package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/latency"
	"github.com/kith-io/kith/metrics"
)

// closeTime is what the ends of the admin interface and of a search may take.
const closeTime = time.Second

// watched is how a process shows its nodes, one after the other; the zero value shows nothing.
type watched struct {
	cfg     admin.Config
	metrics *metrics.Metrics // nil: nothing is shown
	log     *slog.Logger
	shown   *admin.Server // the one that is served last; nil: none
}

// watch measures the node that cfg.Node is for, once for all that show it.
func watch(cfg *Config, o orders, log *slog.Logger) (*watched, error) {
	if cfg.Admin == nil {
		return &watched{}, nil
	}
	w := &watched{log: log}
	var err error
	if w.cfg, err = cfg.admin(); err != nil {
		return nil, err
	}
	if w.metrics, err = metrics.New(cfg.Metrics); err != nil {
		return nil, err
	}
	if w.cfg.Metrics == nil {
		w.cfg.Metrics = w.metrics.Handler()
	}
	if w.cfg.Times == nil {
		w.cfg.Times = latency.New()
	}
	if w.cfg.Logger == nil {
		w.cfg.Logger = log
	}
	if cfg.GoOver && w.cfg.Join == nil {
		w.cfg.Join = o.join
	}
	if cfg.GoOver && w.cfg.LeaveAndJoin == nil {
		w.cfg.LeaveAndJoin = o.leave
	}
	if told, all := cfg.Node.Latency, w.cfg.Times; !cfg.NoLatency {
		cfg.Node.Latency = func(what kith.Measure, typ string, took time.Duration) {
			if told != nil {
				told(what, typ, took)
			}
			w.metrics.Observe(what, typ, took)
			all.Record(what, typ, took)
		}
	}
	return w, nil
}

// serve shows n; what it returns ends that. Served again, for the next node, it has the same address.
func (w *watched) serve(n *kith.Node, fit *fitness) (end func(), err error) {
	if w.metrics == nil {
		return func() {}, nil
	}
	w.metrics.Watch(n)
	cfg := w.cfg
	cfg.NotReady = func() string {
		if why := fit.why(); why != "" || w.cfg.NotReady == nil {
			return why
		}
		return w.cfg.NotReady()
	}
	s, err := admin.Start(n, cfg)
	if err != nil {
		return nil, err
	}
	w.cfg.Listen, w.shown = s.Addr().String(), s
	w.log.Info("admin interface", "event", "admin-started", "address", s.Addr().String(), "tls", cfg.TLS != nil)
	return func() {
		bounded, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = s.Close(bounded)
	}, nil
}

// retoken makes the admin interface ask for what the file of its token holds now. With a file that is no good it goes
// on to ask for the token that it has.
func (w *watched) retoken(cfg *Config) {
	token, err := cfg.token()
	if err == nil {
		err = w.shown.SetToken(token)
	}
	if err != nil {
		w.log.Warn("admin token not reloaded: the one that is in force stays", "event", "node-reload-failed",
			"file", cfg.AdminToken, "error", err)
		return
	}
	w.cfg.Token = token
}
