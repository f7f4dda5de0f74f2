// Config: what the driver needs to know, its defaults and its faults.

package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shutdown"
	"github.com/kith-io/kith/wire"
)

// ErrBadConfig is wrapped by each fault that Validate finds.
var ErrBadConfig = errors.New("kith: bad configuration")

// unusable is a fault of what a configuration names, found when it was used: a port that is taken, a file that cannot
// be read. It matches ErrBadConfig.
type unusable struct{ error }

func (u unusable) Is(target error) bool { return target == ErrBadConfig }
func (u unusable) Unwrap() error        { return u.error }

// Defaults and bounds of a Config.
const (
	DefaultName          = "kith"
	DefaultListen        = "127.0.0.1:0"
	DefaultLeaveTimeout  = 30 * time.Second
	DefaultAskTimeout    = 30 * time.Second
	DefaultParkTime      = 30 * time.Second
	DefaultMaxPayload    = 1 << 20
	DefaultMaxMessage    = 64 << 20
	DefaultBulkBudget    = 256 << 20
	DefaultWindow        = 1 << 20
	DefaultParkBytes     = 16 << 20
	DefaultMailboxBudget = 256 << 20
	DefaultMaxAsks       = 1 << 16

	MaxName       = 64
	MinMaxPayload = 1 << 10
	MaxMaxPayload = 128 << 20
	MaxMaxMessage = wire.MaxBulkSize
	MinWindow     = 64 << 10
	MaxWindow     = 1 << 30
	MaxMaxAsks    = 1 << 20
	MaxDataLoops  = 64

	MaxDataConnections = transport.MaxDataConnections

	MaxWorkers        = 1024
	DefaultLinkBuffer = 512 << 10
	DefaultLinkBudget = 256 << 20
	// DefaultPartialBudget bounds, in bytes, what is held of frames that are not whole.
	DefaultPartialBudget = 256 << 20

	minRebalanceInterval = 10 * time.Millisecond
	maxParkBytes         = 64 << 30

	minLinkBuffer = 64 << 10
	maxLinkBuffer = 1 << 30
	localFactor   = 8 // what waits for one worker or loop from this node itself, in link buffers
)

// Config is the configuration of a Driver; the root package documents its fields.
type Config struct {
	Name, Listen, Advertise string
	Insecure                bool
	TLS                     TLS
	Seeds, Roles            []string
	AppVersion              string
	// Directory holds the record of the membership; NeverForm and FormNew are membership.JoinCommand's.
	Directory          string
	FlightRecord       FlightRecord
	NeverForm, FormNew bool
	// AwaitSeeds is membership.JoinCommand's Await.
	AwaitSeeds bool
	Logger     *slog.Logger
	Unheard    *slog.Logger // gets losses and incidents that have no hook; nil: Logger gets all of them

	Patience   cluster.Patience
	Membership membership.Config
	MinBirth   uint64
	Resolver   node.Resolver
	Lease      Lease
	Sharding   Sharding

	Phases       []shutdown.Phase // of the coordinated shutdown, beside or instead of the default ones
	JoinTimeout  time.Duration
	LeaveTimeout time.Duration
	AskTimeout   time.Duration

	MaxPayload    int
	MaxMessage    int
	BulkBudget    int
	LinkBuffer    int
	LinkBudget    int
	PartialBudget int
	Window        int
	MailboxBudget int
	DataLoops     int
	PollFor       time.Duration
	// DataConnections is how many data connections are dialled per node.
	DataConnections int
	Workers         int
	MaxAsks         int

	helloTimeout time.Duration // for tests; zero: the transport's default
	clocks       clocks        // for tests; zero: the system's
	backlog      int           // bytes that a loop keeps while the gate is closed
	patience     time.Duration // how long the end waits for handlers

	Undelivered func(Undelivered)
	Incident    func(entity.Incident)

	Latency      func(what Measure, typ string, took time.Duration)
	LatencyEvery int
}

// Sharding is the part of a Config that is about homes of shards; the root package documents its fields.
type Sharding struct {
	TakeoverTime        time.Duration
	ProcessDeathIsProof bool
	Session             Session
	Tenure              Tenure
	NoLockProof         bool
	ParkBytes           int
	ParkTime            time.Duration
	RebalanceInterval   time.Duration
	MaxMoves            int
	MarkTime            time.Duration
	DrainTime           time.Duration
	MaxHandOver         int
}

// machine is the configuration of the sharding machine, as far as it is a matter of settings.
func (s Sharding) machine() shard.Config {
	return shard.Config{TakeoverTime: s.TakeoverTime, RebalanceInterval: s.RebalanceInterval, MaxMoves: s.MaxMoves,
		MarkTime: s.MarkTime, DrainTime: s.DrainTime, MaxHandOver: s.MaxHandOver}
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// WithDefaults returns c with zero fields replaced by their defaults.
func (c Config) WithDefaults() Config {
	paced := node.Config{Patience: c.Patience, Membership: c.Membership, Resolver: c.Resolver}.Paced()
	c.Membership, c.Resolver = paced.Membership, paced.Resolver
	orDefault(&c.Name, DefaultName)
	orDefault(&c.Listen, DefaultListen)
	orDefault(&c.Logger, slog.New(slog.DiscardHandler))
	orDefault(&c.LeaveTimeout, DefaultLeaveTimeout)
	orDefault(&c.AskTimeout, DefaultAskTimeout)
	orDefault(&c.MaxPayload, DefaultMaxPayload)
	orDefault(&c.MaxMessage, max(DefaultMaxMessage, c.MaxPayload))
	orDefault(&c.BulkBudget, max(DefaultBulkBudget, c.MaxMessage))
	orDefault(&c.LinkBuffer, DefaultLinkBuffer)
	orDefault(&c.DataConnections, 1)
	orDefault(&c.PartialBudget, max(DefaultPartialBudget, 4*c.DataConnections*c.largestFrame()))
	orDefault(&c.LinkBudget, max(DefaultLinkBudget, c.leastBudget()))
	orDefault(&c.Window, DefaultWindow)
	c.Sharding.Tenure = c.Sharding.Tenure.withDefaults()
	orDefault(&c.Sharding.ParkBytes, DefaultParkBytes)
	orDefault(&c.Sharding.RebalanceInterval, shard.DefaultRebalanceInterval)
	orDefault(&c.Sharding.MaxMoves, shard.DefaultMaxMoves)
	orDefault(&c.Sharding.MarkTime, shard.DefaultMarkTime)
	orDefault(&c.Sharding.DrainTime, shard.DefaultDrainTime)
	orDefault(&c.Sharding.MaxHandOver, shard.DefaultMaxHandOver)
	orDefault(&c.MailboxBudget, DefaultMailboxBudget)
	orDefault(&c.DataLoops, max(1, runtime.GOMAXPROCS(0)/2))
	orDefault(&c.Workers, runtime.GOMAXPROCS(0))
	orDefault(&c.MaxAsks, DefaultMaxAsks)
	orDefault(&c.LatencyEvery, DefaultLatencyEvery)
	c.FlightRecord = c.FlightRecord.withDefaults(c.Directory)
	orDefault(&c.backlog, plane.KeepMost)
	orDefault(&c.patience, handlerPatience)
	return c
}

// maxFrame is the longest data frame that MaxPayload needs.
func (c Config) maxFrame() int {
	return max(c.MaxPayload+wire.EnvelopeSize+wire.MaxIDSize+wire.MaxMore, wire.MinFrameLimit)
}

// largestFrame is the longest frame of any connection.
func (c Config) largestFrame() int { return max(c.maxFrame(), wire.MaxControlFrame) }

// leastBudget is the budget of links below which one of them could use it up.
func (c Config) leastBudget() int {
	return 4 * flow.Bounds{Buffer: c.LinkBuffer, Frame: c.maxFrame()}.Most()
}

// bulkStall is how long a large message may make no progress.
func (c Config) bulkStall() time.Duration {
	if c.Sharding.ParkTime == 0 {
		return DefaultParkTime
	}
	return c.Sharding.ParkTime
}

// localBuffer bounds what this node itself has sent to one worker or loop and what waits there, in bytes.
func (c Config) localBuffer() int { return localFactor * c.LinkBuffer }

// node is what the takeover time follows from, and what others must agree on.
func (c Config) node() node.Config {
	return node.Config{Patience: c.Patience, Membership: c.Membership, Resolver: c.Resolver, Shard: c.Sharding.machine(),
		ProcessDeathIsProof: c.Sharding.ProcessDeathIsProof, Session: c.Sharding.Session.config(),
		Tenure: c.Sharding.Tenure.config()}
}

// validateSharding judges the settings of sharding.
func (c Config) validateSharding(fault func(ok bool, format string, args ...any)) {
	s := &c.Sharding
	c.validateTakeover(fault)
	c.validateSession(fault)
	c.validateTenure(fault)
	least := c.maxFrame()
	fault(s.ParkBytes >= least && s.ParkBytes <= maxParkBytes, "ParkBytes is %d, must be %d to %d", s.ParkBytes, least,
		maxParkBytes)
	fault(s.ParkTime >= 0, "ParkTime is %v, must be positive, or zero for the derived one", s.ParkTime)
	fault(s.RebalanceInterval < 0 || s.RebalanceInterval >= minRebalanceInterval,
		"RebalanceInterval is %v, must be at least %v, or negative for never", s.RebalanceInterval, minRebalanceInterval)
	fault(s.MaxMoves >= 1 && s.MaxMoves <= shard.MaxMaxMoves, "MaxMoves is %d, must be 1 to %d", s.MaxMoves,
		shard.MaxMaxMoves)
	fault(s.MarkTime > 0, "MarkTime is %v, must be positive", s.MarkTime)
	fault(s.DrainTime > 0, "DrainTime is %v, must be positive", s.DrainTime)
	fault(s.MaxHandOver >= 1 && s.MaxHandOver <= shard.MaxMaxHandOver, "MaxHandOver is %d, must be 1 to %d", s.MaxHandOver,
		shard.MaxMaxHandOver)
}

// validateTakeover demands of a fixed takeover time that it is long enough at least for five members.
func (c Config) validateTakeover(fault func(ok bool, format string, args ...any)) {
	fixed := c.Sharding.TakeoverTime
	fault(fixed >= 0, "TakeoverTime is %v, must be positive, or zero for the derived one", fixed)
	if fixed <= 0 || c.Resolver.Strategy == node.ResolverOff {
		return
	}
	least := c.node().DerivedTakeover(1)
	fault(fixed >= least,
		"TakeoverTime is %v, but with these settings a node that is cut off may go on for %v, in large clusters longer",
		fixed, least)
}

// validateExit demands that a leaver that is cut off ends before its shards live elsewhere.
func (c Config) validateExit(fault func(ok bool, format string, args ...any)) {
	exit, most := c.Membership.ExitTimeout, c.node().ExitLimit()
	fault(exit <= 0 || exit <= most || c.Resolver.Strategy == node.ResolverOff,
		"ExitTimeout is %v, must be at most %v, well below the takeover time", exit, most)
}

// members is the configuration of the membership machine.
func (c Config) members() membership.Config {
	m := c.Membership
	m.Settings = slices.Concat(c.terms().Joins(), m.Settings)
	if m.ExitTimeout == 0 && c.Resolver.Strategy != node.ResolverOff {
		m.ExitTimeout = max(time.Second, min(membership.DefaultExitTimeout, c.node().ExitLimit()))
	}
	m.Roles, m.AppVersion, m.MinBirth, m.JoinTimeout = c.Roles, c.AppVersion, c.MinBirth, c.JoinTimeout
	m.Records, m.NoLockProof = c.Directory != "", c.Sharding.NoLockProof
	return m.WithDefaults()
}

// Validate returns all faults of c joined, each wrapping ErrBadConfig, or nil. It judges c as given, so apply
// WithDefaults first.
func (c Config) Validate() error {
	var errs []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrBadConfig}, args...)...))
		}
	}
	fault(c.Patience.Valid(), "Patience is %v, which is no preset", c.Patience)
	fault(c.Name != "" && len(c.Name) <= MaxName, "Name has %d bytes, must have 1 to %d", len(c.Name), MaxName)
	c.validateAddresses(fault)
	fault(!c.AwaitSeeds || len(c.Seeds) == 0, "Seeds and AwaitSeeds")
	fault(!c.NeverForm || len(c.Seeds) > 0 || c.AwaitSeeds, "NeverForm without Seeds: there is nobody to join")
	fault(!c.NeverForm || !c.FormNew, "NeverForm and FormNew")
	errTLS := c.TLS.Validate()
	fault(errTLS == nil, "%w", errTLS)
	err := c.members().Validate()
	fault(err == nil, "%w", err)
	err = c.Resolver.Validate()
	fault(err == nil, "%w", err)
	fault(c.Lease != nil || c.Resolver.Strategy != node.ResolverLeaseMajority, "lease-majority needs a Lease")
	within := func(name string, v, least, most int) {
		fault(v >= least && v <= most, "%s is %d, must be %d to %d", name, v, least, most)
	}
	within("MaxPayload", c.MaxPayload, MinMaxPayload, MaxMaxPayload)
	within("MaxMessage", c.MaxMessage, c.MaxPayload, MaxMaxMessage)
	within("BulkBudget", c.BulkBudget, c.MaxMessage, 1<<40)
	within("LinkBuffer", c.LinkBuffer, minLinkBuffer, maxLinkBuffer)
	within("PartialBudget", c.PartialBudget, 4*c.largestFrame(), 1<<40)
	within("LinkBudget", c.LinkBudget, c.leastBudget(), 1<<40)
	within("Window", c.Window, MinWindow, MaxWindow)
	within("MailboxBudget", c.MailboxBudget, c.maxFrame(), 1<<40)
	within("DataLoops", c.DataLoops, 1, MaxDataLoops)
	within("DataConnections", c.DataConnections, 1, MaxDataConnections)
	fault(c.PollFor >= 0 && c.PollFor <= transport.MaxPollFor, "PollFor is %v, must be 0 to %v", c.PollFor,
		transport.MaxPollFor)
	within("Workers", c.Workers, 1, MaxWorkers)
	within("MaxAsks", c.MaxAsks, 1, MaxMaxAsks)
	within("LatencyEvery", c.LatencyEvery, 1, MaxLatencyEvery)
	positive := func(name string, d time.Duration) { fault(d > 0, "%s is %v, must be positive", name, d) }
	c.validateSharding(fault)
	c.FlightRecord.validate(fault)
	c.validateExit(fault)
	positive("LeaveTimeout", c.LeaveTimeout)
	positive("AskTimeout", c.AskTimeout)
	_, err = orderPhases(defaultPhases(c.LeaveTimeout), c.Phases)
	fault(err == nil, "Phases: %w", err)
	return errors.Join(errs...)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// everywhere reports whether an address says where to listen, not where somebody is: 0.0.0.0 and ::.
func everywhere(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || ip != nil && ip.IsUnspecified())
}

func (c Config) validateAddresses(fault func(ok bool, format string, args ...any)) {
	host, port, err := net.SplitHostPort(c.Listen)
	fault(err == nil, "Listen %q is not host:port: %v", c.Listen, err)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
		fault(err == nil, "Listen %q: %v", c.Listen, err)
		fault(isLoopback(host) || c.Insecure || c.TLS.On(),
			"Listen %q is not loopback: it needs TLS, or Insecure for connections that nothing protects", c.Listen)
	}
	if c.Advertise != "" {
		_, err := peer.ParseAddr(c.Advertise)
		fault(err == nil, "Advertise: %v", err)
		fault(!everywhere(c.Advertise), "Advertise %q is no address that others can dial", c.Advertise)
	}
	seen := map[peer.Addr]bool{}
	for _, s := range c.Seeds {
		a, err := peer.ParseAddr(s)
		fault(err == nil, "Seeds: %v", err)
		fault(!everywhere(s), "Seeds: %q is no address that can be dialled: it would lead each node to itself", s)
		fault(err != nil || !seen[a], "Seeds: %s is listed twice", a)
		seen[a] = true
	}
}

// SessionService keeps sessions, or their ends.
type SessionService interface {
	Acquire(ctx context.Context, name, owner string) (bool, error)
	TTL() time.Duration
}

// Session is where session leases are kept: nothing, or both.
type Session struct {
	Service SessionService
	Ends    SessionService // the same store, with leases that last longer
}

// config is what the node needs to know of it.
func (s Session) config() (c node.SessionConfig) {
	c.TTL, _ = lasts(s.Service)
	c.Ends, _ = lasts(s.Ends)
	return c
}

// lasts is the TTL of a service; zero without one, and with an error when it panics.
func lasts(s SessionService) (ttl time.Duration, err error) {
	if s == nil {
		return 0, nil
	}
	err = (*callback.Guard)(nil).Call("TTL", func() { ttl = s.TTL() })
	return ttl, err
}

// validateSession judges the settings of sessions.
func (c Config) validateSession(fault func(ok bool, format string, args ...any)) {
	s := c.Sharding.Session
	if s == (Session{}) {
		return
	}
	_, held := lasts(s.Service)
	_, ended := lasts(s.Ends)
	fault(held == nil, "Session.Service: %w", held)
	fault(ended == nil, "Session.Ends: %w", ended)
	both := s.Service != nil && s.Ends != nil
	fault(both, "Session needs both, Service and Ends")
	if both && held == nil && ended == nil {
		last := s.config()
		fault(last != (node.SessionConfig{}), "Session: the TTL of Service and of Ends is 0")
		err := last.Validate()
		fault(err == nil, "Session: %w", err)
	}
	// The session of a member that holds none has run out at any time, and it would be ended while that one handles.
	fault(!c.Membership.LenientSettings, "Session is the same on all nodes: LenientSettings must be off")
}

// Tenure is the electorate of tenures: nothing, or some seats.
type Tenure struct {
	Voters  int
	Grant   time.Duration
	Role    string
	Refound cluster.Refound
}

// DefaultGrant is for how long the grant of a seat counts.
const DefaultGrant = 2500 * time.Millisecond

// withDefaults returns t with the default grant where there are seats.
func (t Tenure) withDefaults() Tenure {
	if t.Voters != 0 {
		orDefault(&t.Grant, DefaultGrant)
	}
	return t
}

// config is t as nodes take it.
func (t Tenure) config() node.TenureConfig {
	return node.TenureConfig{Voters: t.Voters, Grant: t.Grant, Role: t.Role, Refound: t.Refound}
}

// validateTenure judges the settings of tenures.
func (c Config) validateTenure(fault func(ok bool, format string, args ...any)) {
	t := c.Sharding.Tenure
	if t == (Tenure{}) {
		return
	}
	err := t.config().Validate()
	fault(err == nil, "Tenure: %w", err)
	fault(len(t.Role) <= membership.MaxRoleSize, "Tenure: role %q, must have at most %d bytes", t.Role,
		membership.MaxRoleSize)
	fault(c.Sharding.Session == (Session{}), "Tenure and Session: a node has one of them")
	// It is their settings that keep those out which have no tenure, or cannot read a list of seats.
	fault(!c.Membership.LenientSettings, "Tenure is the same on all nodes: LenientSettings must be off")
}
