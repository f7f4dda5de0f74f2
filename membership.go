// MembershipConfig: how membership is paced, the part of a configuration that goes to the membership machine as it is.
// it is.

package kith

import (
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/membership"
)

// MembershipConfig is how gossip, failure detection, joining and leader duties are paced (Config.Membership). The zero
// value of every field means its default, given in parentheses, so the zero MembershipConfig is ready. Durations are at
// least 1 ms. Roles, versions, and time limits of joining and leaving stand in Config.
type MembershipConfig struct {
	// Settings are what all members must agree on, in any order, at most membership.MaxSettings. A join with another value
	// of a key that both sides have is refused, by the member asked as by the joiner.
	Settings []Setting
	// LenientSettings lets such joins pass, with a SettingsDiffer event.
	LenientSettings bool

	// SeedTimeout is how long the first seed looks for a cluster before it forms one (5 s).
	SeedTimeout time.Duration
	// ProbeInterval is how often seeds are asked again, and how often a join that got no answer is repeated (1 s).
	ProbeInterval time.Duration
	// JoinRetryAfter is how long one contact has to answer a join before all seeds are asked again (10 s).
	JoinRetryAfter time.Duration
	// SeedCheckInterval is how often a member asks one of its seeds that is no member which cluster it belongs to
	// (30 s); negative: never. It finds a cluster that was formed twice.
	SeedCheckInterval time.Duration

	// GossipInterval is the period of gossip rounds (1 s); three rounds each while fewer than half have seen the newest
	// version of the state.
	GossipInterval time.Duration
	// GossipTimeToLive is the age above which received gossip is dropped unread (2 s).
	GossipTimeToLive time.Duration
	// DifferentViewProbability is how often a round prefers a peer that has not seen the newest version (0.8); above 0,
	// at most 1.
	DifferentViewProbability float64
	// ReduceDifferentViewAbove is the cluster size above which that probability falls, to a tenth at three times
	// this size (400).
	ReduceDifferentViewAbove int
	// PushInterval is the least time between two pushes of changes to peers that have not seen them (50 ms).
	PushInterval time.Duration
	// PushFanout is how many peers that have not seen a change get it at once (3; 1 to 64).
	PushFanout int
	// CompressAbove is the size in bytes from which a state is gzipped (1024).
	CompressAbove int

	// Deputies is how many members after the leader in sorted order are deputies, to one of which a round goes by chance
	// when its own target was none (0: no deputies).
	Deputies int
	// GossipToUnreachable sends a round by chance to an unreachable member too, and hears what it answers (off).
	GossipToUnreachable bool
	// Overview keeps which version each member was last heard to have, for Node.Versions (off).
	Overview bool

	// ClockEntries is how many entries the vector clock may have before the leader prunes those that have not changed for
	// ClockEntryAge (0: never). Entries of removed members go in any case.
	ClockEntries int
	// ClockEntryAge is how long an entry must have stayed the same (1 h).
	ClockEntryAge time.Duration

	// WeaklyUpAfter is how long a leader without convergence waits before it lets joining members in as WeaklyUp (7 s);
	// negative: never.
	WeaklyUpAfter time.Duration
	// MinMembers is how many members there must be before joining ones are let in (0 and 1: no minimum). All members
	// should agree on it, for each of them may become the leader.
	MinMembers int
	// MinRoleMembers is the same for single roles; at most membership.MaxRoles of them.
	MinRoleMembers []RoleMinimum

	// LeaderInterval is how often leader duties are looked at besides at every change (1 s).
	LeaderInterval time.Duration
	// ReaperInterval is how often accusations are looked at for peers that are heard again (1 s). Silence is noticed at
	// its deadline.
	ReaperInterval time.Duration
	// TombstoneRetention is how long removed incarnations are remembered (24 h). A node without contact to any
	// member for half of it ends itself, and so does one that is not let in for so long after it asked first.
	TombstoneRetention time.Duration
	// ExitTimeout is how long an exiting node repeats that it is done before it ends unanswered (10 s, or less when the
	// takeover time is short). With a resolver it must be at least two seconds below the takeover time.
	ExitTimeout time.Duration

	// Detector makes the failure detector of each peer; nil means fd.PhiAccrual. fd.Deadline has a fixed patience. One of
	// your own has to pass the suite of package fd/fdtest.
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
	// MaxSamples is how many heartbeat intervals are remembered per peer (1000; 2 to 4096).
	MaxSamples int
	// MonitoredBy is how many neighbours on the ring watch each node (5).
	MonitoredBy int
}

// The presets of Config.Patience.
const (
	PatienceNormal = cluster.PatienceNormal // bears stalls of up to 3 s; the default
	PatienceCalm   = cluster.PatienceCalm   // of up to 1 s: a dead process is given up in a third of the time
	PatienceNoisy  = cluster.PatienceNoisy  // of up to 6 s
)

// Validate returns all faults of t joined, defaults applied, or nil. Config.Validate calls it: it needs calling only
// where a MembershipConfig is made before the rest of the configuration is known.
func (t MembershipConfig) Validate() error { return t.machine().Validate() }

// machine is t as the membership machine takes it. What the machine has besides comes from Config and from below.
func (t MembershipConfig) machine() membership.Config {
	return membership.Config{
		Settings: t.Settings, LenientSettings: t.LenientSettings,
		SeedTimeout: t.SeedTimeout, ProbeInterval: t.ProbeInterval, JoinRetryAfter: t.JoinRetryAfter,
		SeedCheckInterval: t.SeedCheckInterval,
		GossipInterval:    t.GossipInterval, GossipTimeToLive: t.GossipTimeToLive,
		DifferentViewProbability: t.DifferentViewProbability, ReduceDifferentViewAbove: t.ReduceDifferentViewAbove,
		PushInterval: t.PushInterval, PushFanout: t.PushFanout, CompressAbove: t.CompressAbove,
		Deputies: t.Deputies, GossipToUnreachable: t.GossipToUnreachable, Overview: t.Overview,
		ClockEntries: t.ClockEntries, ClockEntryAge: t.ClockEntryAge,
		WeaklyUpAfter: t.WeaklyUpAfter, MinMembers: t.MinMembers, MinRoleMembers: t.MinRoleMembers,
		LeaderInterval: t.LeaderInterval, ReaperInterval: t.ReaperInterval,
		TombstoneRetention: t.TombstoneRetention, ExitTimeout: t.ExitTimeout,
		Detector: t.Detector, HeartbeatInterval: t.HeartbeatInterval,
		HeartbeatExpectedAfter: t.HeartbeatExpectedAfter, AcceptablePause: t.AcceptablePause,
		Threshold: t.Threshold, MinStdDeviation: t.MinStdDeviation, MaxSamples: t.MaxSamples, MonitoredBy: t.MonitoredBy,
	}
}
