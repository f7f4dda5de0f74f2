// Config: how a node is administered.

package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/localname"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/latency"
)

// Defaults and bounds.
const (
	DefaultListen  = "127.0.0.1:7626" // the port by which other systems of this kind are administered
	DefaultStreams = 64               // of events, at one time
	MaxStreams     = 4096
	MinToken       = 16 // bytes
	headerTime     = 5 * time.Second
	readTime       = 10 * time.Second
	writeTime      = 10 * time.Second // of one answer, or of one event to a slow reader
	firstByteTime  = 2 * time.Second
	firstBytes     = 16<<10 + maxHeader + 4<<10 // of a handshake, the first request, and what seals it
	idleTime       = 2 * time.Minute
	spareConns     = 256 // beside one for each stream
	maxHosts       = 64
	maxHeader      = 16 << 10
	maxBody        = 4 << 10
	reportTime     = 5 * time.Second // for all members to answer
	askTime        = 5 * time.Second // for an entity to answer; as long at most as askMost
	askMost        = 8 * time.Second
	maxReply       = 1 << 20

	// What all readers together get, beside those of health. Answers are made one at a time, in a quarter of the time of
	// one processor.
	readsPerSecond  = 500
	mostReads       = 64 // under way at a time, of one address half of them
	readsRest       = 3
	probesPerSecond = 1000
)

// ErrBadConfig is wrapped by the errors of Config.Validate.
var ErrBadConfig = errors.New("admin: bad configuration")

// Config says how a node is administered. The zero value serves reading requests on DefaultListen.
type Config struct {
	// Listen is the address to listen on, host:port; port 0 takes a free one. Empty means DefaultListen, or where another
	// process of the machine has that, a free port of loopback: Server.Addr says which. Beyond loopback TLS or Insecure
	// is needed.
	Listen string
	// Token lets a client that sends it ("Authorization: Bearer TOKEN") change something: at least MinToken bytes. Empty:
	// nobody can.
	Token string
	// TLS is the server's certificate and the authorities that it believes; nil: plain HTTP.
	TLS *tls.Config
	// Insecure allows a listen address that is not loopback without TLS: tokens and answers can be read on the way.
	Insecure bool
	// Hosts are further names by which a listener on loopback without TLS may be asked, at most 64; it answers to IP
	// addresses and to localhost anyway, and to no other name (421), so that no page that a browser was shown under a
	// name which leads here now can read what is served. Elsewhere any name will do.
	Hosts []string
	// Profiling serves net/http/pprof below /debug/pprof/, to clients with the token when there is one.
	Profiling bool
	// Metrics is served as GET /metrics, such as that of package metrics; nil: nothing is.
	Metrics http.Handler
	// Times is what Config.Latency of the node gets, for GET /v1/rates and the dashboard, which empty it: nobody else is
	// to read it. Nil: they show no latencies.
	Times *latency.Recorder
	// Streams is how many streams of events are served at one time, 1 to MaxStreams; zero means DefaultStreams.
	Streams int
	// Join makes the program go over from its node, which is alone, to the cluster of the seeds (Node.JoinCluster). It
	// returns when that has begun, or why it cannot be. It may be called by several goroutines at once. Nil: no request
	// can.
	Join func(ctx context.Context, seeds []string) error
	// LeaveAndJoin is the same for a node in company, which leaves first (Node.LeaveAndJoin). It returns when the order is
	// taken. Nil: no request can.
	LeaveAndJoin func(ctx context.Context, seeds []string) error
	// NotReady says why the program may not be sent work, in words of 256 bytes at most, or nothing when it may: GET
	// /health/ready is 503 with them while the node itself is ready. It is called for each such request, by several
	// goroutines at once, and must not block. Nil: the node alone decides.
	NotReady func() string
	// Logger gets a line for each change, with the address that asked for it, and for each failure; nil is silent.
	// Nobody waits for it, as for kith.Config.Logger.
	Logger *slog.Logger
}

// Validate returns all faults of c joined, each wrapping ErrBadConfig, or nil.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrBadConfig}, args...)...))
	}
	c = c.withDefaults()
	host, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	switch {
	case err != nil:
		fault("Listen: %v", err)
	case !localname.Loopback(host) && c.TLS == nil && !c.Insecure:
		fault("Listen %q is not loopback: TLS or Insecure is needed", c.Listen)
	}
	if c.Token != "" && len(c.Token) < MinToken {
		errs = append(errs, shortToken(c.Token))
	}
	if c.Streams < 1 || c.Streams > MaxStreams {
		fault("Streams is %d, must be from 1 to %d", c.Streams, MaxStreams)
	}
	if len(c.Hosts) > maxHosts {
		fault("Hosts has %d names, at most %d", len(c.Hosts), maxHosts)
	}
	for _, h := range c.Hosts {
		if h == "" || len(h) > 253 || strings.ContainsAny(h, ":/@ []") {
			fault("Hosts: %.60q is no host name", h)
		}
	}
	return errors.Join(errs...)
}

// shortToken is the error of a token that could be guessed.
func shortToken(token string) error {
	return fmt.Errorf("%w: Token has %d bytes, at least %d are needed", ErrBadConfig, len(token), MinToken)
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Streams == 0 {
		c.Streams = DefaultStreams
	}
	c.Logger, _ = logs.Behind(c.Logger)
	return c
}
