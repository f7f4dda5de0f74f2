// kith run: one node, until a signal or until its cluster ends it.

package command

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/signals"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/settings"
	"github.com/kith-io/kith/service"
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
	leaseFlags
	tenureFlags
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

// tenureFlags say which members vouch for owners.
type tenureFlags struct {
	Tenure       bool          `help:"${tenure_help}"`
	TenureVoters int           `default:"3" help:"Seats of --tenure, 3, 5 or 7, the same on all nodes."`
	TenureGrant  time.Duration `default:"2.5s" help:"${grant_help}"`
	TenureRole   string        `help:"Only members with this role hold seats of --tenure; the same on all nodes."`
	// TenureRefound is how it is known that lost holders have ended.
	TenureRefound string `default:"operator" enum:"operator,takeover" help:"${refound_help}"`
}

// tenure returns what they say.
func (f *tenureFlags) tenure() (t kith.Tenure) {
	if f.Tenure {
		t = kith.Tenure{Voters: f.TenureVoters, Grant: f.TenureGrant, Role: f.TenureRole}
		if f.TenureRefound == kith.RefoundByTakeover.String() {
			t.Refound = kith.RefoundByTakeover
		}
	}
	return t
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
	var held kith.Lease
	if c.lease != nil {
		held = c.lease
	}
	return kith.Config{Resolver: r, Lease: held, TLS: protect, Name: c.Name, Listen: c.Listen, Advertise: c.Advertise,
		Insecure: c.Insecure, Seeds: c.Seeds, Roles: c.Roles, Logger: log,
		FlightRecord: kith.FlightRecord{Bytes: c.FlightBytes, Directory: c.FlightDir},
		Directory:    c.DataDir, NeverForm: c.NeverForm, FormNew: c.FormNew,
		JoinTimeout: c.JoinTimeout, LeaveTimeout: c.LeaveTimeout, PollFor: c.PollFor,
		Patience: c.Patience, Membership: kith.MembershipConfig{HeartbeatInterval: c.HeartbeatInterval,
			AcceptablePause: c.AcceptablePause, Threshold: c.PhiThreshold},
		Sharding: kith.Sharding{RebalanceInterval: c.RebalanceInterval, MaxMoves: c.MaxMoves,
			NoLockProof: c.NoLockProof, Session: c.session, Tenure: c.tenure(), TakeoverTime: c.TakeoverTime,
			ProcessDeathIsProof: c.ProcessDeathIsProof}}
}

// Validate is called by the parser: all faults at once, before anything starts.
func (c *runCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Name != "", "--name is empty")
	errs.Must(c.JoinTimeout >= 0, "--join-timeout is negative")
	errs.Must(c.LeaveTimeout > 0, "--leave-timeout must be more than zero")
	errs = append(errs, c.Faults()...)
	errs.Must(c.DemoShards >= 1 && c.DemoShards <= 1<<20, "--demo-shards must be 1 to 1048576")
	errs.Must(c.Quorum >= 0, "--quorum is negative")
	errs.Must(!c.Tenure || !c.Session, "--tenure and --session: nodes have one of them")
	errs.Must(!c.Tenure || c.TenureVoters != 0, "--tenure-voters is 0, must be 3, 5 or 7")
	if err := c.openLease(c.Resolver); err != nil {
		return c.Explain(errors.Join(append(errs, err, c.adminFaults(c.Insecure, c.TLSCert != ""))...))
	}
	node := cli.About(c.findFaults(c.config(nil)), kith.ErrBadConfig, "FlightRecord.Bytes", "--flight-bytes",
		"FlightRecord.Directory", "--flight-dir", "QuorumSize", "--quorum",
		"Threshold", "--phi-threshold")
	errs = append(errs, c.adminFaults(c.Insecure, c.TLSCert != ""), node)
	return c.Explain(errors.Join(errs...))
}

// logger logs to stderr, which nobody waits for.
func (c *runCmd) logger(e *env.Env) *slog.Logger {
	_ = c.now.level.UnmarshalText([]byte(c.LogLevel)) // the parser checked it
	o := &slog.HandlerOptions{Level: &c.now.level, ReplaceAttr: wordsForTimes}
	var handler slog.Handler = slog.NewTextHandler(cli.Clean(e.Stderr), o)
	if c.LogFormat == "json" {
		handler = slog.NewJSONHandler(cli.Clean(e.Stderr), o)
	}
	e.Out = logs.New(handler)
	return e.Out.Logger()
}

// wordsForTimes makes JSON say durations as text does: "1.5s", and not a number of nanoseconds.
func wordsForTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// warnOfKeys warns of an authority's key that lies beside its certificate: a process that has it makes members. The
// library warns of the node's own key.
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
	defer func() { _ = c.closeLease() }() // nothing waits for it
	c.now.given = c.InForce()
	log := c.logger(e)
	signals.Outlive(syscall.SIGTERM, syscall.SIGPIPE) // also behind the end of the node
	report := cli.NewReporter(e.Out.Writer(e.Stderr))
	cfg, err := c.service(log)
	if err != nil {
		return err
	}
	report.Times(&cfg.Node, c.LatencyEvery)
	cfg.Reload = func(*kith.Node) ([]string, error) { return c.reload(e, report, log) }
	c.warnOfKeys(log)
	for _, text := range c.Strays() {
		log.Warn("check the environment", "variable", text)
	}
	err = service.Run(context.Background(), cfg, func(ctx context.Context, node *kith.Node) error {
		if c.Demo {
			if _, err := node.Register(demo(newLedger(), c.DemoShards)); err != nil {
				return err
			}
		}
		log.Info("node started", "event", "node-started", "node", node.ID().String(), "cluster", cmp.Or(c.Name, "kith"))
		service.Ready(ctx)
		report.Run(ctx, node, c.StatsEvery)
		return nil
	})
	if err != nil {
		return &env.Exit{Code: kith.ExitCode(err), Err: err}
	}
	return nil
}

// service returns what is run.
func (c *runCmd) service(log *slog.Logger) (service.Config, error) {
	cfg := service.Config{Node: c.config(log), Rejoin: c.Rejoin, GoOver: true, NoLatency: c.LatencyEvery == 0}
	if c.Discovery != "" {
		find, err := c.bootstrap(log)
		if err != nil {
			return cfg, err
		}
		cfg.Bootstrap = &find
	}
	if c.Admin != "" {
		shown := c.admin(c.Insecure)
		cfg.Admin, cfg.AdminToken = &shown, c.AdminTokenFile
	}
	return cfg, nil
}

// reloaded are the settings that SIGHUP changes in a node that runs. The files of its certificates and of the
// admin interface's token are read anew, too.
var reloaded = []string{"log-level", "stats-every"}

// reload reads the configuration anew, as the same command line would, takes up what can change while a node runs, and
// says what cannot. A configuration that is wrong changes nothing.
func (c *runCmd) reload(e *env.Env, report *cli.Reporter, log *slog.Logger) (changed []string, err error) {
	again, err := e.Again()
	if err != nil {
		return nil, err
	}
	fresh := again.(*runCmd) // it is the same command line
	_ = fresh.closeLease()   // nothing waits for it
	var waits []string
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
	report.Pace(c.StatsEvery)
	if len(waits) > 0 {
		log.Warn("settings have changed that the next start will use", "event", "node-reloaded", "settings", waits)
	}
	return changed, nil
}
