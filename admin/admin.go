// Package admin serves what a node knows over HTTP, for people, probes and scripts: members, shards, moves, events,
// health, statistics; and, to whoever has the token, leave and down. What it serves is described by an OpenAPI document
// (GET /openapi.json).
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/kith-io/kith"
)

// Server serves one node.
type Server struct {
	http   *http.Server
	addr   net.Addr
	over   context.CancelFunc
	served sync.WaitGroup
}

// Start validates cfg, binds the listener and serves. It does not wait for the node to be Up: what it says of one that
// is not is what somebody wants to know. Close ends it; it does not end with the node, so that a probe has its answer.
func Start(node *kith.Node, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	base, over := context.WithCancel(context.Background())
	s := &Server{addr: l.Addr(), over: over, http: &http.Server{
		Handler: Handler(node, cfg), ReadHeaderTimeout: headerTime, ReadTimeout: readTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, TLSConfig: cfg.TLS, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}}
	s.served.Go(func() {
		var err error
		if cfg.TLS != nil {
			err = s.http.ServeTLS(l, "", "")
		} else {
			err = s.http.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the admin interface has ended", "error", err)
		}
	})
	return s, nil
}

// Addr returns the address that it listens on.
func (s *Server) Addr() net.Addr { return s.addr }

// Close ends all streams, waits for the other requests until ctx ends, and closes what is left.
func (s *Server) Close(ctx context.Context) error {
	s.over()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
		err = fmt.Errorf("admin: close: %w", err)
	}
	s.served.Wait()
	return err
}
