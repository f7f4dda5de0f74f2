// Config: how a node looks for its cluster, its defaults and faults.

package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/internal/base/localname"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/peer"
)

// Defaults and bounds.
const (
	DefaultListen        = "127.0.0.1:7627"
	DefaultTimeout       = time.Minute
	DefaultLookupTimeout = 3 * time.Second
	DefaultProbeTimeout  = 3 * time.Second

	maxBody   = 16 << 10 // of a request or an answer
	maxHeader = 8 << 10
	maxConns  = 512  // to the contact point
	maxAsks   = 64   // of them, those being answered, of one address half of them
	maxRate   = 2000 // requests a second that are answered
	maxAsking = 64   // requests of this node that are under way
	serveTime = 5 * time.Second
	firstByte = 2 * time.Second // of a connection

	// firstBytes are those of a handshake, with certificates of 16 KiB, and of the first request.
	firstBytes = 16<<10 + maxHeader + 4<<10
	idleTime   = 30 * time.Second
	anewTime   = 5 * time.Second  // of a connection to a contact point that shows no cluster
	endTime    = 10 * time.Second // of a node that found no cluster
	minWait    = time.Millisecond
	maxWait    = time.Second
	tellAgain  = 30 * time.Second // that nothing has changed
)

// Errors of a search; match with errors.Is.
var (
	// ErrBadConfig is wrapped by the errors of Config.Validate.
	ErrBadConfig = errors.New("bootstrap: bad configuration")
	// ErrClosed is why a search ended that was closed.
	ErrClosed = errors.New("bootstrap: closed")
)

// Config says how a node looks for its cluster. Discovery is needed, and Expected should be given.
type Config struct {
	// Discovery finds contact points.
	Discovery discovery.Discovery
	// Listen is the address of this node's contact point, host:port; port 0 takes a free one. Beyond loopback the node
	// must have TLS, which the contact point then has too, or be Insecure. Empty means DefaultListen, a fixed port where
	// those of Config and admin.Config may be any: others look for the contact point before they know the node. So give
	// each of several nodes on one machine an address.
	Listen string
	// Advertise is the address under which others reach the contact point; empty: the host of the node's own address and
	// the port of Listen. Targets of Discovery without a port are asked at this port.
	Advertise string

	// Expected is how many nodes the cluster begins with, Required how many of them must be there before it is formed;
	// zero: a majority of Expected, or 2 when that is not given (formation.Config).
	Expected, Required int
	// Margin is how long look-ups must show the same contact points before a cluster is formed; zero means 5 s.
	Margin time.Duration
	// NeverForm makes this node join only.
	NeverForm bool
	// SomeMayBeSilent forms a cluster though contact points that were found do not answer, as long as Required do.
	SomeMayBeSilent bool
	// Decider decides in place of formation.LowestAddress. It is called by one goroutine at a time and must not block.
	Decider formation.Decider

	// Timeout is how long the node may be in no cluster before it is ended (*TimeoutError), so that its orchestrator
	// starts it again. Zero means DefaultTimeout; negative: never.
	Timeout time.Duration
	// LookupTimeout and ProbeTimeout bound one look-up and one request to a contact point; zero: the defaults above.
	LookupTimeout, ProbeTimeout time.Duration
	// Logger gets each decision; nil: the node's. Nobody waits for it, as for kith.Config.Logger.
	Logger *slog.Logger
}

func (c Config) withDefaults(node kith.Config) Config {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.LookupTimeout = cmp.Or(c.LookupTimeout, DefaultLookupTimeout)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, DefaultProbeTimeout)
	if c.Logger == nil {
		c.Logger = node.Logger
	}
	c.Logger, _ = logs.Behind(c.Logger)
	return c
}

// formation is the part that decides, without the identity of this node.
func (c Config) formation(node kith.Config) formation.Config {
	f := formation.Config{Cluster: cmp.Or(node.Name, kith.DefaultName), Expected: c.Expected, Required: c.Required,
		Margin: c.Margin, NeverForm: c.NeverForm || node.NeverForm, SomeMayBeSilent: c.SomeMayBeSilent}
	if c.Decider != nil {
		f.Decider = guarded{c.Decider}
	}
	return f
}

// guarded keeps a decider of somebody's own from ending the process.
type guarded struct{ formation.Decider }

// Decide is the decider's decision; one that panics waits.
func (g guarded) Decide(info formation.Info) (d formation.Decision) {
	defer func() {
		if why := recover(); why != nil {
			d = formation.Decision{Hold: formation.HoldDecider, Detail: fmt.Sprintf("the decider panicked: %v", why)}
		}
	}()
	return g.Decider.Decide(info)
}

// Validate returns all faults of c for a node of that configuration, joined, each wrapping ErrBadConfig, or nil, and
// those that the node's own Validate finds.
func (c Config) Validate(node kith.Config) error {
	var errs []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrBadConfig}, args...)...))
		}
	}
	protected := node.TLS.On()
	c = c.withDefaults(node)
	fault(c.Discovery != nil, "Discovery is nil")
	fault(len(node.Seeds) == 0, "Seeds beside Discovery: contact points come from one of them")
	fault(!node.FormNew, "FormNew: start one node with its own address as its only seed instead")
	host, _, err := net.SplitHostPort(c.Listen)
	fault(err == nil, "Listen %q is not host:port", c.Listen)
	fault(err != nil || localname.Loopback(host) || protected || node.Insecure,
		"Listen %q is not loopback: the node needs TLS, or Insecure", c.Listen)
	if c.Advertise != "" {
		_, err := peer.ParseAddr(c.Advertise)
		fault(err == nil, "Advertise: %v", err)
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"LookupTimeout", c.LookupTimeout}, {"ProbeTimeout", c.ProbeTimeout}} {
		fault(d.v >= time.Millisecond && d.v <= time.Minute, "%s is %v, must be 1ms to 1m", d.name, d.v)
	}
	f := c.formation(node)
	f.Self = peer.ID{Addr: peer.MustAddr("127.0.0.1:1"), Inc: 1} // the identity of this node shows when it starts
	f.Point = f.Self.Addr
	if err := f.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrBadConfig, err))
	}
	node.AwaitSeeds = true
	if err := node.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
