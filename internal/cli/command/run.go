// kith run: one node, until a signal or until its cluster ends it.

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/settings"
	"github.com/kith-io/kith/metrics"
)

// runCmd is the flags of kith run.
type runCmd struct {
	settings.File

	Name      string   `default:"kith" help:"Name of the cluster; nodes of another name are refused."`
	Listen    string   `default:"127.0.0.1:7355" help:"${listen_help}"`
	Advertise string   `help:"Address under which others reach this node, if not the one it listens on."`
	Insecure  bool     `help:"Allow a listen address that is not loopback without TLS: every process that reaches it may join."`
	Seeds     []string `help:"${seeds_help}"`
	Roles     []string `help:"${roles_help}"`
	DataDir   string   `help:"${datadir_help}"`
	flightFlags
	formFlags

	findFlags

	tlsFlags
	shardingFlags

	JoinTimeout  time.Duration `default:"0s" help:"${join_help}"`
	LeaveTimeout time.Duration `default:"30s" help:"${leave_help}"`

	resolverFlags
	paceFlags

	LogFormat string `enum:"text,json" default:"text" help:"Format of the log on stderr: text or json."`
	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"Least level logged: debug, info, warn or error."`

	PollFor time.Duration `default:"0s" help:"${poll_help}"`

	watchFlags

	Demo       bool   `help:"${demo_help}"`
	DemoShards uint32 `default:"100" help:"${demoshards_help}"`

	now inForce
}

// formFlags say when the node forms a cluster, and when it comes back to one.
type formFlags struct {
	Rejoin    bool `help:"${rejoin_help}"`
	NeverForm bool `help:"Join a cluster only, never form one."`
	FormNew   bool `help:"${formnew_help}"`
}

// inForce is what SIGHUP may change.
type inForce struct {
	level slog.LevelVar      // of the log
	given []settings.Setting // since the start, or the last SIGHUP
}

// resolverFlags say which side of a broken cluster lives.
type resolverFlags struct {
	Resolver     string        `enum:"${strategies}" default:"keep-majority" help:"${resolver_help}"`
	ResolverRole string        `help:"Only members with this role count for the resolver."`
	Quorum       int           `help:"${quorum_help}"`
	KeepAlone    bool          `help:"keep-oldest: the oldest lives even when it is alone."`
	StableAfter  time.Duration `default:"0s" help:"${stable_help}"`
}

// paceFlags say how soon a lost member is given up.
type paceFlags struct {
	Patience            kith.Patience `default:"normal" help:"${patience_help}"`
	HeartbeatInterval   time.Duration `default:"0s" help:"How often members are probed; 0: by --patience."`
	AcceptablePause     time.Duration `default:"0s" help:"${pause_help}"`
	PhiThreshold        float64       `default:"0" help:"Suspicion at which a silent member is held unreachable, 1 to 16; 0: 8."`
	TakeoverTime        time.Duration `default:"0s" help:"${takeover_help}"`
	ProcessDeathIsProof bool          `help:"${deathproof_help}"`
}

// flightFlags say what is kept for a replay.
type flightFlags struct {
	FlightBytes int    `default:"4194304" help:"Memory for the flight record, 65536 and more; -1: none."`
	FlightDir   string `help:"Where flight records are left; empty: in --data-dir."`
}

// tlsFlags are the files of a node's identity.
type tlsFlags struct {
	TLSCert       string `name:"tls-cert" help:"${tlscert_help}"`
	TLSKey        string `name:"tls-key" help:"Its private key, PEM."`
	TLSCA         string `name:"tls-ca" help:"Certificates of believed authorities, PEM; during a rotation both."`
	TLSCRL        string `name:"tls-crl" help:"Revocation lists of those authorities, PEM or DER (kith cert revoke)."`
	TLSVerifyHost bool   `name:"tls-verify-host" help:"A node's certificate must name the host that it is dialled by."`
}

// shardingFlags say when shards move.
type shardingFlags struct {
	RebalanceInterval time.Duration `default:"10s" help:"${balance_help}"`
	MaxMoves          int           `default:"64" help:"Shards of one type that move at once, 1 to 16384."`
	NoLockProof       bool          `help:"No lock proves the last process at this address dead (docs/sharding.md)."`
}

// config returns the node's configuration.
func (c *runCmd) config(log *slog.Logger) kith.Config {
	r := kith.Resolver{Role: c.ResolverRole, QuorumSize: c.Quorum, KeepAlone: c.KeepAlone, StableAfter: c.StableAfter}
	if c.Resolver != "" {
		_ = r.Strategy.UnmarshalText([]byte(c.Resolver)) // the parser checked it
	}
	protect := kith.TLS{CertFile: c.TLSCert, KeyFile: c.TLSKey, CAFile: c.TLSCA, CRLFile: c.TLSCRL,
		VerifyHost: c.TLSVerifyHost}
	return kith.Config{Resolver: r, TLS: protect, Name: c.Name, Listen: c.Listen, Advertise: c.Advertise,
		Insecure: c.Insecure, Seeds: c.Seeds, Roles: c.Roles, Logger: log,
		FlightRecord: kith.FlightRecord{Bytes: c.FlightBytes, Directory: c.FlightDir},
		Directory:    c.DataDir, NeverForm: c.NeverForm, FormNew: c.FormNew,
		JoinTimeout: c.JoinTimeout, LeaveTimeout: c.LeaveTimeout, PollFor: c.PollFor,
		Patience: c.Patience, Membership: kith.MembershipConfig{HeartbeatInterval: c.HeartbeatInterval,
			AcceptablePause: c.AcceptablePause, Threshold: c.PhiThreshold},
		Sharding: kith.Sharding{RebalanceInterval: c.RebalanceInterval, MaxMoves: c.MaxMoves,
			NoLockProof: c.NoLockProof, TakeoverTime: c.TakeoverTime, ProcessDeathIsProof: c.ProcessDeathIsProof}}
}

// Validate is called by the parser: all faults at once, before anything starts.
func (c *runCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.JoinTimeout >= 0, "--join-timeout is negative")
	errs.Must(c.LeaveTimeout > 0, "--leave-timeout must be more than zero")
	errs = append(errs, c.Faults()...)
	errs.Must(c.DemoShards >= 1 && c.DemoShards <= 1<<20, "--demo-shards must be 1 to 1048576")
	errs.Must(c.Quorum >= 0, "--quorum is negative")
	node := cli.About(c.findFaults(c.config(nil)), kith.ErrBadConfig, "FlightRecord.Bytes", "--flight-bytes",
		"FlightRecord.Directory", "--flight-dir", "QuorumSize", "--quorum",
		"Threshold", "--phi-threshold")
	errs = append(errs, c.adminFaults(c.adminCert()), node)
	return c.Explain(errors.Join(errs...))
}

func (c *runCmd) adminCert() adminCert { return adminCert{c.TLSCert, c.TLSKey, c.Insecure} }

// logger logs to stderr, which nobody waits for.
func (c *runCmd) logger(e *env.Env) *slog.Logger {
	_ = c.now.level.UnmarshalText([]byte(c.LogLevel)) // the parser checked it
	o := &slog.HandlerOptions{Level: &c.now.level}
	var handler slog.Handler = slog.NewTextHandler(cli.Clean(e.Stderr), o)
	if c.LogFormat == "json" {
		handler = slog.NewJSONHandler(cli.Clean(e.Stderr), o)
	}
	e.Out = logs.New(handler)
	return e.Out.Logger()
}

// leaveGrace is what a leave may take beyond its limit, for the removal: no longer than a supervisor waits
// (docs/operations.md).
const leaveGrace = 10 * time.Second

// ended is the exit of a node whose membership ended by itself: its shutdown is waited for, and each reason has its
// code.
func ended(node *kith.Node) error {
	err := fmt.Errorf("the cluster ended this node: %w", node.Err())
	<-node.ShutdownDone()
	code := env.ExitEnded
	switch node.ShutdownReason() {
	case kith.ReasonJoinUnsuccessful:
		code = env.ExitNotAdmitted
	case kith.ReasonIncompatible:
		code = env.ExitRefused
	case kith.ReasonSignal, kith.ReasonLeft:
		code = env.ExitFailed
	}
	return &env.Exit{Code: code, Err: err}
}

// heed takes the process's signals. An orchestrator may send SIGTERM twice, which changes nothing; somebody who sends
// SIGINT while the node leaves wants an end.
func (c *runCmd) heed(e *env.Env, log *slog.Logger) *cli.Signals {
	return cli.Heed(func(sig os.Signal) {
		if sig != syscall.SIGINT {
			log.Warn("told again to end: the leave goes on; SIGINT would end it", "event", "node-told-again", "signal",
				sig.String())
			return
		}
		log.Warn("ended at once: the others find out", "event", "node-interrupted", "signal", sig.String())
		e.Flush()
		os.Exit(env.ExitInterrupted)
	})
}

// warnOfKeys warns of an authority's key that lies beside its certificate: whoever has it makes members. The library
// warns of the node's own key.
func (c *runCmd) warnOfKeys(log *slog.Logger) {
	key, ok := strings.CutSuffix(c.TLSCA, pki.CertSuffix)
	if !ok {
		return
	}
	key += pki.KeySuffix
	if _, err := os.Stat(key); err != nil {
		return
	}
	log.Warn("the authority's private key lies where a node runs", "file", key)
	if mode, exposed := pki.Exposed(key); exposed {
		log.Warn("others can read the authority's private key", "file", key, "mode", mode.String())
	}
}

// Run starts the node and waits for a signal or its end.
func (c *runCmd) Run(e *env.Env) error {
	c.now.given = c.InForce()
	log := c.logger(e)
	told := c.heed(e, log)
	report := cli.NewReporter(e.Out.Writer(e.Stderr))
	cfg := c.config(log)
	report.Times(&cfg, c.LatencyEvery)
	measured := c.measure(&cfg)
	c.warnOfKeys(log)
	for _, text := range c.Strays() {
		log.Warn("check the environment", "variable", text)
	}
	node, search, err := c.start(told.Told(), cfg)
	if err != nil {
		return err
	}
	defer closeSearch(search)
	for overTo := make(orders); ; {
		next, err := c.live(told.Told(), node, lifetime{e, told, measured, report, log, overTo, search})
		if next == nil {
			return err
		}
		node = next
		if search != nil {
			search.Follow(next)
		}
	}
}

// lifetime is what the nodes of a process have in common: there is a next one when one goes over to another cluster.
type lifetime struct {
	e        *env.Env
	told     *cli.Signals
	measured *metrics.Metrics
	report   *cli.Reporter
	log      *slog.Logger
	orders   orders
	search   *bootstrap.Bootstrap // nil where seeds were given
}

// reloaded are the settings that SIGHUP changes in a node that runs. The files of its certificates and of the
// admin interface's token are read anew, too.
var reloaded = []string{"log-level", "stats-every"}

// reload reads the configuration anew, as the same command line would, takes up what can change while a node runs, and
// says what cannot. A configuration that is wrong changes nothing.
func (c *runCmd) reload(node *kith.Node, l lifetime) {
	if c.TLSCert != "" {
		if err := node.ReloadTLS(); err != nil {
			l.log.Error("tls credentials not reloaded", "event", "node-reload-failed", "error", err)
		}
	}
	if c.AdminTokenFile != "" {
		c.reloadToken(l.log)
	}
	again, err := l.e.Again()
	if err != nil {
		l.log.Error("the configuration is wrong: all stays as it is", "event", "node-reload-failed", "error", err)
		return
	}
	fresh := again.(*runCmd) // it is the same command line
	var changed, waits []string
	for i, now := range fresh.InForce() {
		switch {
		case reflect.DeepEqual(c.now.given[i].Value, now.Value):
		case slices.Contains(reloaded, now.Name):
			c.now.given[i] = now
			changed = append(changed, now.Name)
		default:
			waits = append(waits, now.Name)
		}
	}
	c.LogLevel, c.StatsEvery = fresh.LogLevel, fresh.StatsEvery
	_ = c.now.level.UnmarshalText([]byte(c.LogLevel))
	l.report.Pace(c.StatsEvery)
	l.log.Info("reloaded", "event", "node-reloaded", "changed", changed, "certificates", c.TLSCert != "",
		"token", c.AdminTokenFile != "")
	if len(waits) > 0 {
		l.log.Warn("settings have changed that the next start will use", "event", "node-reloaded", "settings", waits)
	}
}

// live runs a node until its end, and returns the one that follows it, or none and how it has ended.
func (c *runCmd) live(ctx context.Context, node *kith.Node, l lifetime) (*kith.Node, error) {
	defer node.Close()
	end, err := c.serve(node, l.measured, c.adminCert(), l.log, l.orders)
	if err != nil {
		return nil, err
	}
	defer end()
	told, over := context.WithCancel(ctx)
	var reporter sync.WaitGroup
	defer reporter.Wait()
	defer over()
	reporter.Go(func() { l.report.Run(told, node, c.StatsEvery) })
	if c.Demo {
		if _, err := node.Register(demo(newLedger(), c.DemoShards)); err != nil {
			return nil, err
		}
	}
	l.log.Info("node started", "event", "node-started", "node", node.ID().String(), "cluster", cmp.Or(c.Name, "kith"))
	for {
		select {
		case <-node.Done():
			if err := notFound(l.search); err != nil {
				return nil, err
			}
			if next := goesBack(ctx, node, l.log); next != nil {
				return next, nil
			}
			if next := c.comesBack(ctx, node); next != nil {
				return next, nil
			}
			if e := (*kith.EndedError)(nil); errors.As(node.Err(), &e) && e.Kind == kith.EndLeft { // it was told to
				return nil, left(node, l.log, node.Shutdown(context.Background(), kith.ReasonLeft))
			}
			return nil, ended(node)
		case o := <-l.orders:
			next, err := goesOver(ctx, node, o)
			if next == node {
				l.log.Info("joins by order", "event", "node-told", "node", node.ID().String(), "seeds", fmt.Sprint(o.seeds))
				continue
			}
			if next != nil {
				l.log.Info("goes over", "event", "node-goes-over", "node", node.ID().String(), "next", next.ID().String())
				return next, nil
			}
			l.log.Warn("does not go over to another cluster", "event", "node-stays", "error", err)
		case <-l.told.Reload():
			c.reload(node, l)
		case <-ctx.Done():
			return nil, c.leave(node, l.log)
		}
	}
}

// goesOver carries out an order; nil: the node stays, or has ended.
func goesOver(ctx context.Context, node *kith.Node, o order) (*kith.Node, error) {
	if o.leave {
		o.done <- nil
		return node.LeaveAndJoin(ctx, o.seeds)
	}
	next, err := node.JoinCluster(ctx, o.seeds)
	o.done <- err
	return next, err
}

// goesBack starts the next node of one that has ended as the younger of two clusters: it joins the older one. Nil: it
// has ended otherwise, or there is none.
func goesBack(ctx context.Context, node *kith.Node, log *slog.Logger) *kith.Node {
	e := (*kith.EndedError)(nil)
	if !errors.As(node.Err(), &e) || e.Kind != kith.EndTwin || len(e.Seeds) == 0 {
		return nil
	}
	<-node.ShutdownDone()
	next, err := node.JoinCluster(ctx, e.Seeds)
	if err != nil {
		log.Warn("does not go over to the older cluster", "event", "node-stays", "error", err)
		return nil
	}
	log.Warn("goes over to the older cluster of this name", "event", "node-goes-over", "node", node.ID().String(), "next",
		next.ID().String(), "seeds", fmt.Sprint(e.Seeds), "why", e.Reason)
	return next
}

// comesBack starts the node that follows one which the cluster has ended, with --rejoin; nil: none is to follow. A
// signal ends that, and the process.
func (c *runCmd) comesBack(ctx context.Context, node *kith.Node) *kith.Node {
	for c.Rejoin && ctx.Err() == nil {
		next, err := kith.Rejoin(ctx, node)
		if err == nil {
			return next
		}
		if errors.Is(err, kith.ErrNoRejoin) {
			break
		}
	}
	return nil
}

// leave has a node leave. Its shards have the limit; what comes behind that, its removal, has leaveGrace more.
func (c *runCmd) leave(node *kith.Node, log *slog.Logger) error {
	log.Info("leaving", "event", "node-leaving", "node", node.ID().String(), "limit", c.LeaveTimeout.String())
	bye, cancel := context.WithTimeout(context.Background(), c.LeaveTimeout+leaveGrace)
	defer cancel()
	err := node.Shutdown(bye, kith.ReasonSignal)
	if bye.Err() != nil && err != nil {
		err = errors.Join(err, node.Close())
	}
	return left(node, log, err)
}

// left is the exit of a node that was told to leave, by what its shutdown returned.
func left(node *kith.Node, log *slog.Logger, err error) error {
	e := (*kith.EndedError)(nil)
	switch as := errors.As(node.Err(), &e); {
	case as && e.Kind != kith.EndLeft && e.Kind != kith.EndClosed:
		return ended(node)
	case errors.Is(err, kith.ErrStatesLost):
		return &env.Exit{Code: env.ExitStatesLost, Err: fmt.Errorf("leave: %w", err)}
	case err != nil:
		return fmt.Errorf("leave: %w", err)
	}
	log.Info("left", "event", "node-left", "node", node.ID().String())
	return nil
}
