// Package formation decides, for one node that knows nobody, whether it joins a cluster that its contact points show it
// or is the one that forms a new cluster. It is stepped: answers of look-ups and probes go in with
// the time, what is to be done comes out. Package bootstrap runs it; docs/bootstrap.md has the rules.
//
// It is no part of what embedders may rely on, but for the types that package kith and its like lead to: the rest may
// change in any version (docs/compatibility.md).
package formation

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds and defaults.
const (
	MaxPoints = 256 // contact points of one answer, as of package discovery
	MaxSeeds  = 5   // that a contact point names, and that are joined

	DefaultMargin        = 5 * time.Second
	DefaultRequired      = 2 // where the expected size is not given
	DefaultLookInterval  = time.Second
	DefaultLookBackOff   = 15 * time.Second
	DefaultProbeInterval = time.Second
	DefaultFreshFor      = 3 * time.Second

	jitter      = 5                // a fifth of each interval comes on top, at most
	attemptTime = 3 * time.Second  // after which an attempt to form is given up
	holderLimit = 30 * time.Second // after which a node that has a promise and is not heard counts as dead
)

// ErrBadConfig is wrapped by the errors of Config.Validate.
var ErrBadConfig = errors.New("formation: bad configuration")

// Config says how a node finds its cluster. Zero values mean defaults.
type Config struct {
	// Cluster is the name of the cluster. Needed.
	Cluster string
	// Self is this node: the address under which members reach it, and its incarnation. Needed.
	Self peer.ID
	// Point is this node's own contact point. Needed.
	Point peer.Addr
	// Wire is the versions that this node speaks; zero: those of this build.
	Wire wire.Versions
	// Expected is how many nodes the cluster begins with; zero: not known.
	Expected int
	// Required is how many nodes must have confirmed that they are in no cluster, this one included, before one is
	// formed. Zero: more than half of Expected, or DefaultRequired. Two clusters can form when it is half or less of the
	// nodes that start together.
	Required int
	// Margin is how long look-ups must have shown the same contact points before a cluster is formed. Zero means
	// DefaultMargin.
	Margin time.Duration
	// NeverForm makes this node join only.
	NeverForm bool
	// SomeMayBeSilent forms a cluster though contact points that were found do not answer, as long as Required do.
	SomeMayBeSilent bool
	// Remembered is the id of the cluster that this node was in, zero when it remembers none: of two clusters of this name
	// it joins that one only.
	Remembered uint64
	// Decider decides in place of LowestAddress. It must not keep what it is given. Nil: LowestAddress.
	Decider Decider

	// LookInterval is the pause between look-ups, LookBackOff the longest one after failures, ProbeInterval that between
	// two probes of one contact point, FreshFor how long an answer counts. Zero: the defaults above.
	LookInterval, LookBackOff, ProbeInterval, FreshFor time.Duration
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	def(&c.Wire, wire.Spoken())
	if c.Required == 0 && c.Expected > 0 {
		c.Required = c.Expected/2 + 1
	}
	def(&c.Required, DefaultRequired)
	def(&c.Margin, DefaultMargin)
	def(&c.LookInterval, DefaultLookInterval)
	def(&c.LookBackOff, DefaultLookBackOff)
	def(&c.ProbeInterval, DefaultProbeInterval)
	def(&c.FreshFor, DefaultFreshFor)
	if c.Decider == nil {
		c.Decider = LowestAddress{}
	}
	return c
}

// Validate returns all faults of c, defaults applied, joined into one error, or nil. Each wraps ErrBadConfig.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrBadConfig}, args...)...))
		}
	}
	fault(c.Cluster != "", "Cluster is empty")
	fault(!c.Self.IsZero() && c.Self.Inc != 0, "Self %s is no node", c.Self)
	fault(!c.Point.IsZero(), "Point is no address")
	fault(c.Wire.Valid(), "Wire names no version")
	fault(c.Expected >= 0 && c.Expected <= MaxPoints, "Expected is %d, must be 0 to %d", c.Expected, MaxPoints)
	fault(c.Required >= 1 && c.Required <= MaxPoints, "Required is %d, must be 1 to %d", c.Required, MaxPoints)
	fault(c.Expected == 0 || c.Required <= c.Expected, "Required is %d, more than the %d of Expected", c.Required,
		c.Expected)
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"Margin", c.Margin}, {"LookInterval", c.LookInterval}, {"LookBackOff", c.LookBackOff},
		{"ProbeInterval", c.ProbeInterval}, {"FreshFor", c.FreshFor}} {
		fault(d.v >= time.Millisecond && d.v <= time.Hour, "%s is %v, must be 1ms to 1h", d.name, d.v)
	}
	fault(c.FreshFor >= c.ProbeInterval, "FreshFor is %v, less than ProbeInterval %v", c.FreshFor, c.ProbeInterval)
	return errors.Join(errs...)
}

// Majority reports whether Required is more than half of Expected: then two clusters never form at one time.
func (c Config) Majority() bool {
	c = c.WithDefaults()
	return c.Expected > 0 && 2*c.Required > c.Expected
}

// Reply is what a contact point says of its node. It says so before there is any membership, and its form does not
// depend on the versions that the nodes speak otherwise.
type Reply struct {
	Cluster   string // the name
	Node      peer.ID
	Wire      wire.Versions
	ClusterID uint64      // zero: the node is in no cluster
	Seeds     []peer.Addr // members to join, at most MaxSeeds; none when it is in no cluster
	Forms     bool        // it has all promises and is about to form the cluster
	Ended     uint64      // the last of its attempts to form that it gave up
	Never     bool        // it may not form a cluster
}

// Info is what a Decider decides by.
type Info struct {
	Self       peer.ID
	Required   int
	Margin     time.Duration
	Stable     time.Duration // for how long look-ups have shown these points
	Known      bool          // a look-up has succeeded
	NeverForm  bool
	Silent     bool // points that do not answer are no hindrance
	Majority   bool // Required is known to be more than half of the nodes
	Remembered uint64
	Points     []Observed // all that were found, in the order of their addresses
}

// Observed is one contact point, and what it said lately.
type Observed struct {
	Point    peer.Addr
	Answered bool // within the time for which an answer counts; Reply is valid
	Reply    Reply
	Foreign  bool   // its node belongs to a cluster of another name
	Speaks   bool   // its node and this one have a wire version in common
	Failed   string // why its last probe failed; empty: it did not, or there was none yet
}

// Action is what a node does about its cluster.
type Action uint8

// The actions of a Decision.
const (
	KeepLooking Action = iota // there is a reason to wait: Decision.Hold
	JoinCluster               // through Decision.Seeds
	FormCluster               // once all nodes that are here have promised themselves

	actions
)

var actionNames = [actions]string{"keep-looking", "join-cluster", "form-cluster"}

// String names the action as logs do.
func (a Action) String() string { return enum.Name(actionNames[:], a, "action") }

// MarshalText gives the name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (a *Action) UnmarshalText(text []byte) error { return enum.Parse(a, text) }

// Hold is why a node neither joins nor forms a cluster yet.
type Hold uint8

// The reasons to wait.
const (
	HoldNothing      Hold = iota // there is none
	HoldUnknown                  // no look-up has succeeded yet
	HoldTooFew                   // fewer than Required nodes have confirmed that they are in no cluster
	HoldUnstable                 // what look-ups show has changed within the margin
	HoldSilent                   // a contact point does not answer
	HoldNotLowest                // a node of a lower address is to form the cluster
	HoldNeverForm                // this node may not form a cluster
	HoldNotListed                // look-ups do not show this node itself
	HoldForming                  // another node is about to form the cluster
	HoldDuplicate                // there are two clusters of this name
	HoldIncompatible             // the cluster's nodes speak no wire version that this one does
	HoldPromised                 // this node has promised itself to another that wants to form the cluster
	HoldClaiming                 // this node wants to form the cluster, and waits for promises
	HoldDecider                  // the decider says so, or said nothing that can be done

	holds
)

var holdNames = [holds]string{"nothing", "unknown", "too-few", "unstable", "silent", "not-lowest", "never-form",
	"not-listed", "forming", "twin", "incompatible", "promised", "claiming", "decider"}

// String names the reason as logs do.
func (h Hold) String() string { return enum.Name(holdNames[:], h, "hold") }

// MarshalText gives the name.
func (h Hold) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (h *Hold) UnmarshalText(text []byte) error { return enum.Parse(h, text) }

// Decision is what a Decider wants.
type Decision struct {
	Action Action
	Seeds  []peer.Addr // of JoinCluster: members that observations name
	Hold   Hold        // of KeepLooking
	Detail string      // of KeepLooking, in words
}

// Decider decides by what is observed now. It is asked again and again, and holds no state of its own. Whatever it
// says, a node joins only members of a cluster of its own name that observations name, and forms one only with the
// promises of Required nodes.
type Decider interface {
	Decide(info Info) Decision
}
