// Server: a listener, what is served on it, and its end.

package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// Server serves one node, or a dashboard of several.
type Server struct {
	http   *http.Server
	addr   net.Addr
	over   context.CancelFunc
	served sync.WaitGroup
}

// listen binds the listener of cfg and serves what handler makes then.
func listen(cfg Config, handler func() http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	base, over := context.WithCancel(context.Background())
	s := &Server{addr: l.Addr(), over: over, http: &http.Server{
		Handler: handler(), ReadHeaderTimeout: headerTime, ReadTimeout: readTime, IdleTimeout: idleTime,
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
