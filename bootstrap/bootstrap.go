// Package bootstrap starts a node that knows nobody and finds it a cluster: it looks contact points up, serves this
// node's own, asks the others over HTTP, and tells the node which members to join through, or to form the cluster.
// Package formation decides; docs/bootstrap.md has all of it.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/base/localname"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/base/names"
	"github.com/kith-io/kith/peer"
)

// TimeoutError is a search that found no cluster within Config.Timeout; the node was ended. It matches
// kith.ErrNoCluster.
type TimeoutError struct {
	Limit       time.Duration
	Explanation formation.Explanation // as it stood then
}

// Error says how long the search took, and what it waited for.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("bootstrap: in no cluster after %v: %s: %s", e.Limit, e.Explanation.Hold, e.Explanation.Detail)
}

// Unwrap returns kith.ErrNoCluster.
func (e *TimeoutError) Unwrap() error { return kith.ErrNoCluster }

// Bootstrap is one node's search for its cluster, and its contact point. All methods are safe for concurrent use.
type Bootstrap struct {
	cfg Config
	log *slog.Logger

	callbacks callback.Guard

	began  time.Time
	point  peer.Addr
	server *http.Server
	client *http.Client
	scheme string
	asking chan struct{} // as many as requests may be under way

	lock    sync.Mutex
	node    *kith.Node
	machine *formation.Machine
	work    []formation.Effects
	joined  bool
	anew    time.Duration // when contact points were last connected to anew
	told    []string      // seeds that an operator named; nil of a member

	wake chan struct{}
	base context.Context
	stop context.CancelFunc
	runs sync.WaitGroup

	over chan struct{} // the search is
	err  error         // written before over is closed
}

// Start validates both configurations, opens the contact point, starts the node, and begins to look for its cluster.
// node must have no Seeds. ctx bounds starting only. Close ends search and contact point; the node is the caller's to
// end, but for one that found no cluster in time.
func Start(ctx context.Context, node kith.Config, cfg Config) (*Bootstrap, error) {
	if err := cfg.Validate(node); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults(node)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: contact point: %w", err)
	}
	node.AwaitSeeds, node.NeverForm = true, node.NeverForm || cfg.NeverForm
	n, err := kith.Start(ctx, node)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	b, err := begin(n, node, cfg, l)
	if err != nil {
		return nil, errors.Join(err, n.Close(), l.Close())
	}
	return b, nil
}

// begin runs the search of a node that has started.
func begin(n *kith.Node, node kith.Config, cfg Config, l net.Listener) (*Bootstrap, error) {
	point, err := contactPoint(n, cfg, l)
	if err != nil {
		return nil, err
	}
	f := cfg.formation(node)
	f.Self, f.Point, f.Remembered = n.ID(), point, n.LastCluster()
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	b := &Bootstrap{cfg: cfg, log: cfg.Logger, node: n, began: time.Now(), point: point, scheme: "http",
		asking: make(chan struct{}, maxAsking), wake: make(chan struct{}, 1), over: make(chan struct{}),
		machine: formation.New(f, rand.New(rand.NewPCG(rand.Uint64(), f.Self.Inc)))}
	b.callbacks.Log = b.log
	b.base, b.stop = context.WithCancel(context.Background())
	server, client := n.TLSConfigs()
	if server != nil {
		b.scheme = "https"
	}
	b.client = newClient(cfg, names.New(b.base, nil), client)
	own := localname.Of(l.Addr(), server != nil, point.String(), n.Addr().String())
	b.server = &http.Server{Handler: byName(own, b.found, b.log, b.Handler()), ReadHeaderTimeout: cfg.ProbeTimeout,
		ReadTimeout: serveTime, WriteTimeout: serveTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		TLSConfig: server, ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug)}
	if !f.Majority() {
		b.log.Warn("the required number is not known to be a majority: two clusters may form at once", "required",
			f.WithDefaults().Required, "expected", f.Expected)
	}
	b.log.Info("looking for a cluster", "event", "bootstrap-started", "node", n.ID().String(), "contact_point",
		point.String(), "required", f.WithDefaults().Required, "expected", f.Expected, "never_forms", f.NeverForm)
	front := b.front(l)
	b.runs.Go(func() { b.serve(front) })
	b.runs.Go(b.run)
	b.runs.Go(b.watch)
	return b, nil
}

// contactPoint returns under which address others ask this node.
func contactPoint(n *kith.Node, cfg Config, l net.Listener) (peer.Addr, error) {
	at := cfg.Advertise
	if at == "" {
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return peer.Addr{}, fmt.Errorf("bootstrap: contact point: %w", err)
		}
		host, _, err := net.SplitHostPort(n.Addr().String())
		if err != nil {
			return peer.Addr{}, fmt.Errorf("bootstrap: contact point: %w", err)
		}
		at = net.JoinHostPort(host, port)
	}
	a, err := peer.ParseAddr(at)
	if err != nil {
		return a, fmt.Errorf("bootstrap: contact point: %w", err)
	}
	return a, nil
}

// Node returns the node, after Follow the next one. It may be used at once; it handles nothing before it is in a
// cluster.
func (b *Bootstrap) Node() *kith.Node {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.node
}

// Follow makes the contact point serve the node that JoinCluster of this one has returned: until that is a member it is
// no seed (503), and then newcomers find its cluster there. The search is over, or ends when it is a member.
func (b *Bootstrap) Follow(next *kith.Node) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.node == next {
		return
	}
	b.node, b.joined, b.told = next, false, nil
	b.machine.GoesOn(b.now(), next.ID())
	b.member()
}

// ContactPoint returns the address under which others ask this node, host:port.
func (b *Bootstrap) ContactPoint() string { return b.point.String() }

// Done is closed when the search is over: the node is a member of a cluster, the time limit has passed, the node has
// ended, or Close was called. Err says which.
func (b *Bootstrap) Done() <-chan struct{} { return b.over }

// Err returns nil while the search goes on and after the node has joined, and else why it ended: a *TimeoutError, the
// *kith.EndedError of the node, or ErrClosed.
func (b *Bootstrap) Err() error {
	select {
	case <-b.over:
		return b.err
	default:
		return nil
	}
}

// Explain says why this node has not joined a cluster yet.
func (b *Bootstrap) Explain() formation.Explanation {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.machine.Explain(b.now())
}

// found reports whether look-ups show a contact point at a host.
func (b *Bootstrap) found(host string) bool {
	for _, p := range b.Explain().Points {
		if p.Listed && localname.Same(p.Point.String(), host) {
			return true
		}
	}
	return false
}

// Close ends the search and the contact point, and waits for both until ctx ends. The node goes on.
func (b *Bootstrap) Close(ctx context.Context) error {
	b.stop()
	err := b.server.Shutdown(ctx)
	if err != nil {
		_ = b.server.Close()
		err = fmt.Errorf("bootstrap: close: %w", err)
	}
	b.client.CloseIdleConnections()
	b.runs.Wait()
	_, logged := logs.Behind(b.log)
	logged.Flush(logs.FlushTime)
	return err
}

func (b *Bootstrap) now() time.Duration { return time.Since(b.began) }

// step does something with the machine, and has the search carry out what comes of it.
func (b *Bootstrap) step(do func(now time.Duration)) {
	b.lock.Lock()
	do(b.now())
	var out formation.Effects
	b.machine.Drain(&out)
	out.Probes, out.Asks = append([]peer.Addr(nil), out.Probes...), append([]formation.AskTo(nil), out.Asks...)
	b.work = append(b.work, out)
	b.lock.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be done, and when there is more.
func (b *Bootstrap) take() (work []formation.Effects, e formation.Explanation, wait time.Duration) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.member()
	now := b.now()
	b.machine.Tick(now)
	var out formation.Effects
	b.machine.Drain(&out)
	out.Probes, out.Asks = append([]peer.Addr(nil), out.Probes...), append([]formation.AskTo(nil), out.Asks...)
	work, b.work = append(b.work, out), nil
	wait = maxWait
	if next, ok := b.machine.Next(); ok {
		wait = min(max(next-now, minWait), maxWait)
	}
	return work, b.machine.Explain(now), wait
}

// hostPort joins a host and a port.
func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
