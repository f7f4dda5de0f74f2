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
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/door"
	"github.com/kith-io/kith/internal/base/localname"
	"github.com/kith-io/kith/internal/base/logs"
)

// limits are the times and numbers of a server.
type limits struct {
	header, read, write, idle time.Duration
	spare                     int // connections beside one for each stream
}

// usual are those of every server that is not a test's.
var usual = limits{headerTime, readTime, writeTime, idleTime, spareConns}

// Server serves one node, or a dashboard of several.
type Server struct {
	http   *http.Server
	addr   net.Addr
	over   context.CancelFunc
	served sync.WaitGroup
	keeper *keeper
	logged *logs.Queue
}

// bind opens the listener at an address, or where that is taken and orFree is set, at a free port of loopback.
func bind(at string, orFree bool) (net.Listener, error) {
	l, err := net.Listen("tcp", at)
	if orFree && errors.Is(err, syscall.EADDRINUSE) {
		l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("admin: %w", unusable{err})
	}
	return l, nil
}

// unusable is a fault of an address that cannot be listened at. It matches ErrBadConfig, and that of kith.
type unusable struct{ error }

func (u unusable) Is(target error) bool { return target == ErrBadConfig || target == kith.ErrBadConfig }
func (u unusable) Unwrap() error        { return u.error }

// serve serves what handler makes at a listener.
func serve(l net.Listener, cfg Config, most limits, k *keeper, handler func() http.Handler) *Server {
	c := k.counts
	_, logged := logs.Behind(cfg.Logger)
	base, over := context.WithCancel(context.Background())
	names := localname.Of(l.Addr(), cfg.TLS != nil, cfg.Hosts...)
	c.door = door.New(l, door.Config{Most: cfg.Streams + most.spare, FirstByte: min(firstByteTime, most.header),
		FirstBytes: firstBytes,
		Full:       map[bool]string{true: full}[cfg.TLS == nil], Crowded: func(n door.Stats) {
			cfg.Logger.Warn("connections were closed for later ones, or found no place", "event", "admin-crowded",
				"open", n.Open, "put_out", n.PutOut, "refused", n.Refused)
		}})
	s := &Server{addr: l.Addr(), over: over, keeper: k, logged: logged, http: &http.Server{
		Handler: byName(names, cfg, c, handler()), ReadHeaderTimeout: most.header, ReadTimeout: most.read,
		WriteTimeout: most.write, IdleTimeout: most.idle, MaxHeaderBytes: maxHeader, TLSConfig: cfg.TLS,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}}
	c.door.Attach(s.http)
	s.served.Go(func() {
		var err error
		if cfg.TLS != nil {
			err = s.http.ServeTLS(c.door, "", "")
		} else {
			err = s.http.Serve(c.door)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the admin interface has ended", "error", err)
		}
	})
	return s
}

// Addr returns the address that it listens on.
func (s *Server) Addr() net.Addr { return s.addr }

// Stats returns the counters of this interface.
func (s *Server) Stats() Stats { return s.keeper.counts.read() }

// SetToken makes the interface ask for this token from now on, in place of Config.Token: requests with the old one are
// refused, those under way go on. One of fewer than MinToken bytes, none too, is an error that wraps ErrBadConfig, and
// changes nothing. A dashboard asks for none. It may be called by several goroutines at once.
func (s *Server) SetToken(token string) error {
	if len(token) < MinToken {
		return shortToken(token)
	}
	s.keeper.want(token)
	return nil
}

// Close ends all streams, waits for the other requests until ctx ends, and closes what is left.
func (s *Server) Close(ctx context.Context) error {
	defer s.logged.Flush(logs.FlushTime)
	s.over()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
		err = fmt.Errorf("admin: close: %w", err)
	}
	s.served.Wait()
	return err
}

// full is the answer to one connection too many, where it can get one.
const full = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n" +
	"Connection: close\r\n\r\n{\"error\":\"too many connections are open\"}\n"
