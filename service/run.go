// Run: from the start of a node, by signals and its end, to an error with an exit code.

package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/base/memlimit"
	"github.com/kith-io/kith/internal/base/signals"
)

// leaveGrace is what a leave may take beyond its limit, for the removal: no longer than a supervisor waits
// (docs/operations.md).
const leaveGrace = 10 * time.Second

// leaveTime is Config.Node.LeaveTimeout where that is zero.
const leaveTime = 30 * time.Second

// Main is Run as a whole program: it ends the process with kith.ExitCode, and prints the error on stderr. A Logger that
// is nil is slog.Default. It does not return.
func Main(cfg Config, f Func) {
	if cfg.Node.Logger == nil {
		cfg.Node.Logger = slog.Default()
	}
	signals.Outlive(syscall.SIGTERM) // an orchestrator may send it once more when all is over
	err := Run(context.Background(), cfg, f)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(kith.ExitCode(err))
}

// Run validates cfg, starts the node, the search for its cluster and the admin interface, calls f, and returns when the
// process is to end, with what kith.ExitCode gives an exit code.
//
// f is called at once, on a goroutine of its own: it registers the types, and returns nil, or serves until its context
// ends. It has said that it is ready then, or when it calls Ready. When the node leaves, the probe says so, then the
// context of f ends, and the node waits for f as long as PhaseServiceRequestsDone lasts (5 s, Config.Node.Phases
// changes it); then its shards move. An error of f, or a panic, has the node leave, and is returned; why the node has
// ended is none, nor is kith.ErrStopped then, nor context.Canceled once its context has ended. f runs on when it does
// not return in time. A next node waits for the f of the last one, Config.Node.LeaveTimeout at most: then Run returns.
//
// SIGTERM, SIGINT and the end of ctx have the node leave, which takes Config.Node.LeaveTimeout and ten seconds at most
// once f is over; a further SIGTERM is logged, a SIGINT has Run return kith.ErrInterrupted at once, and nothing is
// waited for: the program is to exit. SIGHUP reads the certificates and the token anew and calls Config.Reload; SIGPIPE
// does nothing, also afterwards. SIGUSR1 is the program's.
//
// Nil: the node has left, by a signal or an order, and nothing was lost. A *kith.EndedError: the cluster has ended it.
// kith.ErrNoCluster, and the errors of Config.Validate, kith.Start and Node.Leave.
func Run(ctx context.Context, cfg Config, f Func) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	log, queue := logs.Behind(cfg.Node.Logger)
	cfg.Node.Logger = log
	defer queue.Flush(logs.FlushTime)
	if !cfg.NoMemoryLimit {
		limitMemory(os.DirFS("/"), log)
	}
	interrupted := make(chan struct{}, 1)
	told := signals.Heed(func(sig os.Signal) {
		if sig != syscall.SIGINT {
			log.Warn("told again to end: the leave goes on; SIGINT would end it", "event", "node-told-again", "signal",
				sig.String())
			return
		}
		log.Warn("ended at once: the others find out", "event", "node-interrupted", "signal", sig.String())
		select {
		case interrupted <- struct{}{}:
		default:
		}
	})
	defer told.Stop()
	p := &process{cfg: cfg, f: f, log: log, told: told, orders: make(orders)}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-interrupted:
		return kith.ErrInterrupted
	}
}

// memoryShare is how many tenths of the memory that the process may use the Go runtime gets: the rest is for what it
// does not count, and for the time that a collection takes.
const memoryShare = 9

// limitMemory has the Go runtime heed the limit of the control groups, unless it has one already. root holds their
// files.
func limitMemory(root fs.FS, log *slog.Logger) {
	allowed, ok := memlimit.Of(root)
	if _, given := os.LookupEnv("GOMEMLIMIT"); !ok || given || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	limit := allowed / 10 * memoryShare
	debug.SetMemoryLimit(limit)
	log.Info("memory is limited as the control groups of this process say", "event", "memory-limited", "allowed",
		allowed, "limit", limit)
}

// process is what the nodes of a process have in common: there is a next one when one goes over to another cluster, or
// comes back.
type process struct {
	cfg     Config
	f       Func
	log     *slog.Logger
	told    *signals.Signals
	orders  orders
	watched *watched
	search  *bootstrap.Bootstrap // nil: there are seeds, or none
}

// run runs one node after the other.
func (p *process) run(parent context.Context) (err error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	defer context.AfterFunc(p.told.Told(), cancel)()
	if p.watched, err = watch(&p.cfg, p.orders, p.log); err != nil {
		return err
	}
	node, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer p.closeSearch()
	for {
		next, err := p.live(ctx, node)
		if next == nil {
			return err
		}
		node = next
		if p.search != nil {
			p.search.Follow(next)
		}
	}
}

// start starts the first node, and has it look for its cluster where that is wanted.
func (p *process) start(ctx context.Context) (*kith.Node, error) {
	if p.cfg.Bootstrap == nil {
		return kith.Start(ctx, p.cfg.Node)
	}
	find := *p.cfg.Bootstrap
	if find.Logger == nil {
		find.Logger = p.log
	}
	b, err := bootstrap.Start(ctx, p.cfg.Node, find)
	if err != nil {
		return nil, err
	}
	p.search = b
	return b.Node(), nil
}

// closeSearch ends the search and the contact point.
func (p *process) closeSearch() {
	if p.search != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = p.search.Close(ctx)
	}
}

// notFound returns that the node, which has ended, found no cluster in time; nil: it has ended otherwise.
func (p *process) notFound() error {
	limit := (*bootstrap.TimeoutError)(nil)
	if p.search == nil {
		return nil
	}
	<-p.search.Done() // with the node
	if errors.As(p.search.Err(), &limit) {
		return limit
	}
	return nil
}

// live runs a node until its end, and returns the one that follows it, or none and how it has ended.
func (p *process) live(ctx context.Context, node *kith.Node) (*kith.Node, error) {
	defer node.Close()
	l := begin(ctx, node, p.f, p.log)
	defer l.stop(errLeaves)
	end, err := p.watched.serve(node, l.fit)
	if err != nil {
		return nil, errors.Join(err, p.leave(node, l), l.failed())
	}
	defer end()
	returned := l.over
	for {
		select {
		case <-returned:
			returned = nil
			if l.err != nil {
				p.log.Error("the program has failed: the node leaves", "event", "service-failed", "error", l.err)
				return nil, errors.Join(l.err, p.leave(node, l))
			}
		case <-node.Done():
			next, err := p.after(ctx, node)
			return p.handOver(ctx, node, l, next, err)
		case o := <-p.orders:
			if next := p.obey(ctx, node, o); next != nil {
				return p.handOver(ctx, node, l, next, nil)
			}
		case <-p.told.Reload():
			p.reload(node)
		case <-ctx.Done():
			return nil, errors.Join(p.leave(node, l), l.failed())
		}
	}
}

// handOver waits for the function, and returns the next node, if there is one and the function has not failed. Where
// the process ends it is not waited for beyond the shutdown, which has done that; where it goes on as long as a leave
// may take, for the next node is served by nobody before.
func (p *process) handOver(ctx context.Context, node *kith.Node, l *life, next *kith.Node, err error) (*kith.Node,
	error) {
	most := cmp.Or(p.cfg.Node.LeaveTimeout, leaveTime)
	select {
	case <-node.ShutdownDone():
		if next == nil {
			most = 0
		}
	default:
	}
	late, own := l.end(ctx, most)
	if late && next != nil {
		own = fmt.Errorf("%w: no next node: %w", errServes, node.Err())
	}
	if own != nil && next != nil {
		_ = next.Close()
		next = nil
	}
	return next, errors.Join(own, err)
}

// after returns the node that follows one which has ended, or none and why that has.
func (p *process) after(ctx context.Context, node *kith.Node) (*kith.Node, error) {
	if err := p.notFound(); err != nil {
		return nil, err
	}
	if p.cfg.GoOver {
		if next := goesBack(ctx, node, p.log); next != nil {
			return next, nil
		}
	}
	if p.cfg.Rejoin {
		if next := comesBack(ctx, node); next != nil {
			return next, nil
		}
	}
	if e := (*kith.EndedError)(nil); errors.As(node.Err(), &e) && e.Kind == kith.EndLeft { // it was ordered to
		return nil, p.left(node, node.Shutdown(context.Background(), kith.ReasonLeft))
	}
	return nil, ended(node)
}

// obey carries out an order, and returns the node that follows; nil: this one goes on.
func (p *process) obey(ctx context.Context, node *kith.Node, o order) *kith.Node {
	next, err := goesOver(ctx, node, o)
	switch {
	case next == node:
		p.log.Info("joins by order", "event", "node-told", "node", node.ID().String(), "seeds", fmt.Sprint(o.seeds))
		return nil
	case next != nil:
		p.log.Info("goes over", "event", "node-goes-over", "node", node.ID().String(), "next", next.ID().String())
	default:
		p.log.Warn("does not go over to another cluster", "event", "node-stays", "error", err)
	}
	return next
}

// reload reads anew what may change while a node runs.
func (p *process) reload(node *kith.Node) {
	secret := p.cfg.Node.TLS.CertFile != "" || p.cfg.Node.TLS.Load != nil
	if secret {
		if err := node.ReloadTLS(); err != nil {
			secret = false
			p.log.Error("tls credentials not reloaded", "event", "node-reload-failed", "error", err)
		}
	}
	if p.cfg.AdminToken != "" {
		p.watched.retoken(&p.cfg)
	}
	var changed []string
	if p.cfg.Reload != nil {
		var err error
		if changed, err = p.cfg.Reload(node); err != nil {
			p.log.Error("the configuration is wrong: its settings stay as they are", "event", "node-reload-failed", "error", err)
			return
		}
	}
	p.log.Info("reloaded", "event", "node-reloaded", "changed", changed, "certificates", secret,
		"token", p.cfg.AdminToken != "")
}

// leave makes a node leave. Its shards have the limit from when the function is over; what comes behind that, its
// removal, has leaveGrace more.
func (p *process) leave(node *kith.Node, l *life) error {
	limit := cmp.Or(p.cfg.Node.LeaveTimeout, leaveTime)
	p.log.Info("leaving", "event", "node-leaving", "node", node.ID().String(), "limit", limit.String())
	bye, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		select {
		case <-l.unbound:
		case <-bye.Done():
		}
		timer := time.NewTimer(limit + leaveGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.DeadlineExceeded)
		case <-bye.Done():
		}
	}()
	err := node.Shutdown(bye, kith.ReasonSignal)
	if bye.Err() != nil && err != nil {
		err = errors.Join(context.Cause(bye), node.Close())
	}
	return p.left(node, err)
}

// left is how a node has ended that was ordered to leave, by what its shutdown returned.
func (p *process) left(node *kith.Node, err error) error {
	e := (*kith.EndedError)(nil)
	switch as := errors.As(node.Err(), &e); {
	case as && e.Kind != kith.EndLeft && e.Kind != kith.EndClosed:
		return ended(node)
	case err != nil:
		return fmt.Errorf("leave: %w", err)
	}
	p.log.Info("left", "event", "node-left", "node", node.ID().String())
	return nil
}

// ended is the error of a node after its membership has ended by itself; its shutdown is waited for.
func ended(node *kith.Node) error {
	err := fmt.Errorf("the cluster ended this node: %w", node.Err())
	<-node.ShutdownDone()
	return err
}
