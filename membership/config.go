// Config of the membership machine: intervals, limits and probabilities, with their defaults and checks, and the
// longest silence that follows from them (FD-1).

package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/internal/core/tenure"
)

// Config holds the settings of one membership machine. The zero value of every field means its default, so the zero
// Config is ready; Validate returns all faults at once. Durations are of the node's monotonic clock.
type Config struct {
	// Roles of this member, in any order, each of 1 to MaxRoleSize bytes; at most MaxRoles. One that begins with
	// cluster.ZonePrefix, "zone:", names the zone where it runs.
	Roles []string
	// AppVersion is the version of the application that this member runs, shown to all (CompareVersions orders
	// them); empty: none given.
	AppVersion string

	// Settings are what all members must agree on, in any order, at most MaxSettings. A join with another value of a key
	// that both sides have is refused, by the member asked as by the joiner (JOIN-1).
	Settings []Setting
	// LenientSettings lets such joins pass, with a SettingsDiffer event.
	LenientSettings bool

	// SeedTimeout is how long the first seed looks for a cluster before it forms one (5 s).
	SeedTimeout time.Duration
	// ProbeInterval is how often seeds are asked again, and how often a join that got no answer is repeated (1 s).
	ProbeInterval time.Duration
	// JoinRetryAfter is how long one contact has to answer a join before all seeds are asked again (10 s).
	JoinRetryAfter time.Duration
	// JoinTimeout ends the node with EndJoinTimeout when it was not admitted by then. Zero: never (JOIN-2).
	JoinTimeout time.Duration
	// SeedCheckInterval is how often a member asks one of its seeds that is no member which cluster it belongs to
	// (30 s); negative: never. It finds a cluster that was formed twice.
	SeedCheckInterval time.Duration
	// MinBirth is the highest birth of a cluster in which this node issued fences. A cluster that it forms gets a
	// higher one, and it refuses to join a cluster with a lower one.
	MinBirth uint64

	// MayMiss returns how many of the members of a remembered cluster that could carry it on may be missing when the
	// others form a new one: so few that they cannot live on alone. Nil: none. The composition derives it from the
	// resolver.
	MayMiss func(members int) int
	// StopsAfter returns after what time a member that is cut off has stopped in a cluster of that many: so long the
	// others wait before they form a new one without it. Nil: at once.
	StopsAfter func(members int) time.Duration

	// Records says that the caller keeps records, and reports each by a RecordedCommand: a leader then lets in only
	// members that its own record names (off). RecordRole is the role of the members that a record names.
	Records    bool
	RecordRole string

	// GossipInterval is the period of gossip rounds (1 s); three rounds each while fewer than half have seen (GOS-5).
	GossipInterval time.Duration
	// GossipTimeToLive is the age above which received gossip is dropped unread (2 s, GOS-7).
	GossipTimeToLive time.Duration
	// DifferentViewProbability is how often a round prefers a peer that has not seen this version (0.8, GOS-6).
	DifferentViewProbability float64
	// ReduceDifferentViewAbove is the cluster size above which that probability falls, to a tenth at three times
	// this size (400).
	ReduceDifferentViewAbove int
	// PushInterval is the least time between two eager pushes of this node (50 ms).
	PushInterval time.Duration
	// PushFanout is how many peers that have not seen a change get it at once (3).
	PushFanout int
	// CompressAbove is the size in bytes from which a state is gzipped (1024).
	CompressAbove int

	// Deputies is how many members after the leader in sorted order are deputies, to one of which a round goes by chance
	// when its own target was none (0: no deputies; GOS-9).
	Deputies int
	// GossipToUnreachable sends a round by chance to an unreachable member too, and hears what it answers (off; GOS-9).
	GossipToUnreachable bool
	// Overview keeps which version each member was last heard to have, for Machine.Overview (off; GOS-10).
	Overview bool

	// ClockEntries is how many entries the vector clock may have before the leader prunes those that have not changed for
	// ClockEntryAge (0: never; GOS-2). Entries of removed members go in any case.
	ClockEntries int
	// ClockEntryAge is how long an entry must have stayed the same (1 h).
	ClockEntryAge time.Duration

	// Intern, when it is set, shares states between the machines of one simulation; nil in production.
	Intern *Intern

	// WeaklyUpAfter is how long a leader without convergence waits before it lets joining members in as WeaklyUp (7 s);
	// negative: never (MEM-6).
	WeaklyUpAfter time.Duration
	// MinMembers is how many members there must be before joining ones are let in (0 and 1: no minimum). All members
	// should agree on it, for each of them may become the leader.
	MinMembers int
	// MinRoleMembers is the same for single roles; at most MaxRoles of them.
	MinRoleMembers []RoleMinimum

	// NoLockProof has this member believe no joiner that the process before it at its address is dead (JoinCommand.Dead).
	NoLockProof bool

	// Electorate is the seats of a tenure (none). It must be the same on all members.
	Electorate Electorate

	// LeaderInterval is how often leader duties are looked at besides at every change (1 s).
	LeaderInterval time.Duration
	// ReaperInterval is how often accusations are looked at for peers that are heard again (1 s). Silence is noticed at
	// its deadline.
	ReaperInterval time.Duration
	// TombstoneRetention is how long removed incarnations are remembered (24 h). A node without contact to any
	// member for half of it ends itself, and so does one that is not let in for so long after it asked first.
	TombstoneRetention time.Duration
	// ExitTimeout is how long an exiting node repeats that it is done before it ends unanswered (10 s). With a resolver it
	// must be at least two seconds below the takeover time.
	ExitTimeout time.Duration

	// Detector makes the failure detector of each peer; nil means fd.PhiAccrual. fd.Deadline has a fixed patience. One of
	// your own has to pass the suite of package fdtest.
	Detector fd.Factory
	// HeartbeatInterval is the period of probes (1 s).
	HeartbeatInterval time.Duration
	// HeartbeatExpectedAfter is when a peer that never answered counts as heard once, so that silence from the
	// start is detected (1 s).
	HeartbeatExpectedAfter time.Duration
	// AcceptablePause is the silence tolerated beyond the learnt rhythm (3 s).
	AcceptablePause time.Duration
	// Threshold is the phi at which a peer is unreachable (8; 12 is advised for clouds; from 1 to 16).
	Threshold float64
	// MinStdDeviation is the least deviation assumed of heartbeat intervals (100 ms).
	MinStdDeviation time.Duration
	// MaxSamples is how many heartbeat intervals are remembered per peer (1000).
	MaxSamples int
	// MonitoredBy is how many neighbours on the ring watch each node (5, FD-2).
	MonitoredBy int
}

// Electorate is so many seats, 3, 5 or 7, which the leader gives to Up members with Role; to any when it is empty. The
// zero value is: no seats.
type Electorate struct {
	Voters int
	Role   string
}

// DefaultExitTimeout is the default of Config.ExitTimeout.
const DefaultExitTimeout = 10 * time.Second

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// WithDefaults returns c with every zero field set to its default and the roles sorted and without repetitions.
func (c Config) WithDefaults() Config {
	c.Roles = slices.Clone(c.Roles)
	slices.Sort(c.Roles)
	c.Roles = slices.Compact(c.Roles)
	c.Settings = sortSettings(c.Settings)
	def(&c.SeedCheckInterval, 30*time.Second)
	def(&c.SeedTimeout, 5*time.Second)
	def(&c.ProbeInterval, time.Second)
	def(&c.JoinRetryAfter, 10*time.Second)
	def(&c.GossipInterval, time.Second)
	def(&c.GossipTimeToLive, 2*time.Second)
	def(&c.DifferentViewProbability, 0.8)
	def(&c.ReduceDifferentViewAbove, 400)
	def(&c.PushInterval, 50*time.Millisecond)
	def(&c.PushFanout, 3)
	def(&c.CompressAbove, 1024)
	def(&c.ClockEntryAge, time.Hour)
	def(&c.WeaklyUpAfter, defaultWeaklyUpAfter)
	def(&c.LeaderInterval, time.Second)
	def(&c.ReaperInterval, time.Second)
	def(&c.TombstoneRetention, 24*time.Hour)
	def(&c.ExitTimeout, DefaultExitTimeout)
	if c.Detector == nil {
		c.Detector = fd.PhiAccrual
	}
	def(&c.HeartbeatInterval, time.Second)
	def(&c.HeartbeatExpectedAfter, time.Second)
	def(&c.AcceptablePause, 3*time.Second)
	def(&c.Threshold, 8)
	def(&c.MinStdDeviation, 100*time.Millisecond)
	def(&c.MaxSamples, 1000)
	def(&c.MonitoredBy, 5)
	return c
}

// Validate returns all faults of c, defaults applied, joined into one error, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var faults []error
	fault := func(format string, a ...any) {
		faults = append(faults, fmt.Errorf("membership config: "+format, a...))
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"SeedTimeout", c.SeedTimeout}, {"ProbeInterval", c.ProbeInterval}, {"JoinRetryAfter", c.JoinRetryAfter},
		{"GossipInterval", c.GossipInterval}, {"GossipTimeToLive", c.GossipTimeToLive},
		{"PushInterval", c.PushInterval}, {"LeaderInterval", c.LeaderInterval},
		{"ReaperInterval", c.ReaperInterval}, {"ClockEntryAge", c.ClockEntryAge},
		{"TombstoneRetention", c.TombstoneRetention}, {"ExitTimeout", c.ExitTimeout},
		{"HeartbeatInterval", c.HeartbeatInterval},
		{"HeartbeatExpectedAfter", c.HeartbeatExpectedAfter}, {"AcceptablePause", c.AcceptablePause},
		{"MinStdDeviation", c.MinStdDeviation},
	} {
		if d.v < time.Millisecond {
			fault("%s is %v, must be at least 1ms", d.name, d.v)
		}
	}
	if c.JoinTimeout < 0 {
		fault("JoinTimeout is %v, must not be negative", c.JoinTimeout)
	}
	c.validateMember(fault)
	c.validateSettings(fault)
	if p := c.DifferentViewProbability; !(p > 0 && p <= 1) {
		fault("DifferentViewProbability is %v, must be above 0 and at most 1", p)
	}
	if !(c.Threshold >= 1 && c.Threshold <= 16) {
		fault("Threshold is %v, must be from 1 to 16", c.Threshold)
	}
	for _, n := range []struct {
		name          string
		v, low, limit int
	}{
		{"ReduceDifferentViewAbove", c.ReduceDifferentViewAbove, 1, 1 << 20}, {"PushFanout", c.PushFanout, 1, 64},
		{"CompressAbove", c.CompressAbove, 1, 1 << 30}, {"MaxSamples", c.MaxSamples, 2, 4096},
		{"MonitoredBy", c.MonitoredBy, 1, MaxMembers}, {"Deputies", c.Deputies, 0, MaxMembers},
		{"ClockEntries", c.ClockEntries, 0, MaxMembers},
	} {
		if n.v < n.low || n.v > n.limit {
			fault("%s is %d, must be from %d to %d", n.name, n.v, n.low, n.limit)
		}
	}
	return errors.Join(faults...)
}

// validateMember checks the settings of this member and of what it lets in.
func (c *Config) validateMember(fault func(format string, a ...any)) {
	e := c.Electorate
	if err := (tenure.Config{Voters: e.Voters, Grant: tenure.MinGrant}).Validate(); e.Voters != 0 && err != nil {
		fault("Electorate: %w", err)
	}
	if e.Role != "" && e.Voters == 0 || len(e.Role) > MaxRoleSize {
		fault("Electorate: role %q, must have at most %d bytes, and some seats", e.Role, MaxRoleSize)
	}
	if len(c.Roles) > MaxRoles {
		fault("%d roles, at most %d", len(c.Roles), MaxRoles)
	}
	if c.MinMembers < 0 || c.MinMembers > MaxMembers {
		fault("MinMembers is %d, must be from 0 to %d", c.MinMembers, MaxMembers)
	}
	if len(c.MinRoleMembers) > MaxRoles {
		fault("%d minimums of roles, at most %d", len(c.MinRoleMembers), MaxRoles)
	}
	for _, r := range c.MinRoleMembers {
		if r.Role == "" || len(r.Role) > MaxRoleSize || r.Members < 1 || r.Members > MaxMembers {
			fault("minimum of %d members with role %q, must be from 1 to %d of a role of 1 to %d bytes", r.Members, r.Role,
				MaxMembers, MaxRoleSize)
		}
	}
	if c.AppVersion != "" {
		if err := cluster.CheckVersion(c.AppVersion); err != nil {
			fault("AppVersion: %w", err)
		}
	}
	zones := 0
	for _, r := range c.Roles {
		if strings.HasPrefix(r, cluster.ZonePrefix) {
			if zones++; zones == 2 || r == cluster.ZonePrefix {
				fault("role %q: a member names one zone at most, in 1 to %d bytes", r, MaxRoleSize-len(cluster.ZonePrefix))
			}
		}
		if r == "" || len(r) > MaxRoleSize {
			fault("role %q has %d bytes, must have 1 to %d", r, len(r), MaxRoleSize)
		}
	}
}

// regularBeats is how many heartbeats of a regular rhythm SilenceBound looks at.
const regularBeats = 16

// detectors are the settings of the detectors of one node; c has its defaults.
func (c Config) detectors() fd.Settings {
	return fd.Settings{Interval: c.HeartbeatInterval, Pause: c.AcceptablePause, MinDeviation: c.MinStdDeviation,
		MaxSamples: c.MaxSamples, Deviations: fd.DeviationsFor(c.Threshold)}
}

// SilenceBound returns how long after the last sign of life of a peer an accusation against it is written at the
// latest, when its heartbeats came in their regular rhythm, the first one included: a detector that has just begun is
// the most patient. Accusations wait for no reaper, and a second probe puts none off. It asks the configured Detector
// itself.
func (c Config) SilenceBound() time.Duration {
	c = c.WithDefaults()
	d := c.Detector(c.detectors())
	var most, at time.Duration
	for range regularBeats {
		at += c.HeartbeatInterval
		d.Heartbeat(at)
		if deadline, ok := d.Deadline(); ok {
			most = max(most, deadline-at)
		}
	}
	return most + verdictBatch
}
