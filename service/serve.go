// Serve: an HTTP server that ends as a function of Run should.

package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/kith-io/kith"
)

// Serve runs s within the function of Run. It listens at s.Addr, calls Ready, and serves, by TLS if s.TLSConfig has
// certificates. When ctx ends, s takes no new connections, and Serve returns nil once all requests under way are
// answered: until then nothing moves away from this node, for as long as PhaseServiceRequestsDone lasts. So a rolling
// restart cuts no answer off, as it would if the function returned with the error of s.ListenAndServe, which comes at
// once. Errors: kith.ErrBadConfig when it cannot listen, and that of s if s ends before ctx does.
func Serve(ctx context.Context, s *http.Server) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("%w: %w", kith.ErrBadConfig, err)
	}
	over := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { over <- s.Shutdown(context.WithoutCancel(ctx)) })
	defer stop()
	Ready(ctx)
	if c := s.TLSConfig; c != nil && (len(c.Certificates) > 0 || c.GetCertificate != nil || c.GetConfigForClient != nil) {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return <-over
	}
	return err
}
