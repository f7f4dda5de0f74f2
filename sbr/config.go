// Config: the strategies and their settings, with defaults and checks.

package sbr

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
)

// Strategy is the rule by which one side of a broken cluster is chosen to live.
type Strategy uint8

// The strategies. All nodes of a cluster must use the same one with the same settings.
const (
	// KeepMajority lets the side with more members live; on a tie the side of the lowest address.
	KeepMajority Strategy = iota
	// StaticQuorum lets a side live that has at least Config.QuorumSize members.
	StaticQuorum
	// KeepOldest lets the side of the oldest member live, unless that member is alone.
	KeepOldest
	// DownAll ends every node as soon as one is lost.
	DownAll
	// LeaseMajority lets the side live that acquires the lease; the side with fewer members asks later.
	LeaseMajority
	// UnsafeAutoDown downs every unreachable member, on every side. In a partition ALL sides live on: it is a split
	// brain by design, for clusters in which a second owner does no harm, and for comparison.
	UnsafeAutoDown
	// Off decides nothing: members that are lost stay until an operator downs them.
	Off
)

var strategyNames = [...]string{KeepMajority: "keep-majority", StaticQuorum: "static-quorum", KeepOldest: "keep-oldest",
	DownAll: "down-all", LeaseMajority: "lease-majority", UnsafeAutoDown: "unsafe-auto-down", Off: "off"}

// String names the strategy as settings do.
func (s Strategy) String() string { return enum.Name(strategyNames[:], s, "strategy") }

// ParseStrategy returns the strategy of that name.
func ParseStrategy(name string) (Strategy, error) {
	for i, n := range strategyNames {
		if n == name {
			return Strategy(i), nil
		}
	}
	return Off, fmt.Errorf("sbr: no strategy %q, there are %q", name, strategyNames)
}

// MarshalText gives the name.
func (s Strategy) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a name, as String gives it. The error names those that there are.
func (s *Strategy) UnmarshalText(text []byte) error {
	if enum.Parse(s, text) == nil {
		return nil
	}
	_, err := ParseStrategy(string(text))
	return err
}

// Config holds the settings of a resolver. The zero value is keep-majority with all defaults. It must be the same on
// all nodes.
type Config struct {
	// Strategy chooses the side that lives (keep-majority).
	Strategy Strategy
	// Role restricts counting, and the choice of the lowest or oldest, to members with this role; empty means all. Every
	// member of a losing side goes, with the role or without.
	Role string
	// QuorumSize is the least number of members, with the role, of a side that lives under static-quorum. There must
	// never be more than 2*QuorumSize-1 such members.
	QuorumSize int
	// KeepAlone lets the oldest member live under keep-oldest also when it is the only one on its side and the others
	// are at least two. The default is that the others live then, so that the crash of the oldest ends only itself.
	KeepAlone bool
	// StableAfter is how long the picture must stand still before a decision. Zero means by the number of Up members at
	// the last converged version: 5.5 s up to 5, 10 s up to 10, 13 s up to 20, 17 s up to 50, 20 s up to 100, then 30 s.
	StableAfter time.Duration
	// StablePercent is how much of the times by number of members counts, in percent, where StableAfter is zero. Zero
	// means 100; from 10 to 1000.
	StablePercent int
	// UnstableAfter is how much longer than StableAfter the picture may go on changing before all nodes are downed. Zero
	// means three quarters of StableAfter; negative means never.
	UnstableAfter time.Duration
	// Silence is the longest silence of a member that the failure detectors bear, all nodes' (5.33 s). A node takes that
	// of its own detectors, whatever it is set to.
	Silence time.Duration
	// WatchedBy is how many others the failure detectors have watch each member (5): in a cluster of more than one more
	// than that, what one node notices comes to the others by gossip. A node takes that of its own detectors, whatever it
	// is set to.
	WatchedBy int
	// LeaseName names the lease of lease-majority; empty means the cluster's name followed by "-resolver".
	LeaseName string
	// LeaseDelay is how much later the side with fewer members asks for the lease (2 s).
	LeaseDelay time.Duration
	// LeaseTimeout is how long an answer about the lease may take; none counts as refused (2 s).
	LeaseTimeout time.Duration
	// LeaseHold is how long the lease is kept after the last downed member was removed (40 s).
	LeaseHold time.Duration
}

// WithDefaults returns c with zero fields replaced by their defaults. StableAfter and UnstableAfter keep their zeros,
// which mean values that depend on the cluster.
func (c Config) WithDefaults() Config {
	for _, d := range []struct {
		at *time.Duration
		v  time.Duration
	}{{&c.Silence, 5330 * time.Millisecond},
		{&c.LeaseDelay, 2 * time.Second}, {&c.LeaseTimeout, 2 * time.Second}, {&c.LeaseHold, 40 * time.Second}} {
		if *d.at == 0 {
			*d.at = d.v
		}
	}
	c.WatchedBy = cmp.Or(c.WatchedBy, 5)
	return c
}

// Validate returns all faults of c, defaults applied, joined into one error, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf("resolver: "+format, a...)) }
	if int(c.Strategy) >= len(strategyNames) {
		fault("unknown strategy %d", c.Strategy)
	}
	if c.Strategy == StaticQuorum && c.QuorumSize < 1 {
		fault("static-quorum needs QuorumSize of at least 1, it is %d", c.QuorumSize)
	}
	if c.StableAfter != 0 && c.StableAfter < minStable {
		fault("StableAfter is %v, must be at least %v", c.StableAfter, minStable)
	}
	if c.StablePercent != 0 && (c.StablePercent < 10 || c.StablePercent > 1000) {
		fault("StablePercent is %d, must be from 10 to 1000", c.StablePercent)
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"LeaseDelay", c.LeaseDelay}, {"LeaseTimeout", c.LeaseTimeout}, {"LeaseHold", c.LeaseHold}} {
		if d.v < time.Millisecond {
			fault("%s is %v, must be at least 1ms", d.name, d.v)
		}
	}
	return errors.Join(faults...)
}

// minStable is the shortest patience that makes sense: two gossip rounds and a little.
const minStable = 100 * time.Millisecond

// stableSteps is the advised patience by number of Up members.
var stableSteps = [...]struct {
	members int
	after   time.Duration
}{{5, 5500 * time.Millisecond}, {10, 10 * time.Second}, {20, 13 * time.Second}, {50, 17 * time.Second},
	{100, 20 * time.Second}, {1 << 30, 30 * time.Second}}

// StableFor returns how long the picture must stand still in a cluster that had up Up members at its last converged
// version.
func (c Config) StableFor(up int) time.Duration {
	if c.StableAfter > 0 {
		return c.StableAfter
	}
	after := stableSteps[len(stableSteps)-1].after
	for _, s := range stableSteps {
		if up <= s.members {
			after = s.after
			break
		}
	}
	return after * time.Duration(c.percent()) / 100
}

// percent is StablePercent with its default.
func (c Config) percent() int { return cmp.Or(c.StablePercent, 100) }

// watchesAll reports whether each of that many members watches all others.
func (c *Config) watchesAll(members int) bool { return members <= c.WatchedBy+1 }

// unstableFor returns after what time of change all go, counted from the first change; ok is false when they never do.
func (c Config) unstableFor(stable time.Duration) (d time.Duration, ok bool) {
	switch {
	case c.UnstableAfter < 0:
		return 0, false
	case c.UnstableAfter > 0:
		return stable + c.UnstableAfter, true
	}
	return stable + stable*3/4, true
}

// DecidedWithin returns the longest time from the first change in what is reachable to the moment at which every node
// that loses has suspended itself, in a cluster with that many Up members: 1.75 times StableAfter by default, and a
// second more with a lease. It never falls when up grows. With UnstableAfter below zero there is no longest time while
// the picture goes on changing; what is returned holds then for a picture that stands still.
func (c Config) DecidedWithin(up int) time.Duration {
	stable := c.StableFor(up)
	d, ok := c.unstableFor(stable)
	if !ok {
		d = stable + stable*3/4
	}
	if c.Strategy == LeaseMajority {
		d = max(d+leastWait, stable*7/4) // see waitFor
	}
	return d
}

// Sizes returns numbers of members such that StableFor, and what goes by it, is the same for all numbers above one of
// them up to the next. They rise, and the last one stands for all above the one before.
func Sizes() []int {
	var list []int
	for _, s := range stableSteps[:len(stableSteps)-1] {
		list = append(list, s.members)
	}
	return append(list, list[len(list)-1]+1)
}

// Settings returns what must agree on all nodes of a cluster as one line of text: strategy, role, times.
func (c Config) Settings() string {
	c = c.WithDefaults()
	s := c.Strategy.String()
	if c.Role != "" {
		s += " role=" + c.Role
	}
	switch c.Strategy {
	case StaticQuorum:
		s += fmt.Sprintf(" quorum=%d", c.QuorumSize)
	case KeepOldest:
		s += fmt.Sprintf(" keep-alone=%t", c.KeepAlone)
	case LeaseMajority:
		s += fmt.Sprintf(" lease=%s delay=%v", c.LeaseName, c.LeaseDelay)
	case Off:
		return s
	}
	stable := "by-size"
	if c.StableAfter > 0 {
		stable = c.StableAfter.String()
	} else if p := c.percent(); p != 100 {
		stable += fmt.Sprintf("*%d%%", p)
	}
	unstable := "default"
	if c.UnstableAfter > 0 {
		unstable = c.UnstableAfter.String()
	} else if c.UnstableAfter < 0 {
		unstable = "never"
	}
	return s + " stable-after=" + stable + " unstable-after=" + unstable
}
