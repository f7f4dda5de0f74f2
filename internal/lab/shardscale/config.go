// Config: what is measured, and what of it may be asked for.

package shardscale

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// Config says what is measured. The flags of lab scale-shards say more of each; Child starts a process of Child.
type Config struct {
	Parts       []string // of PartHome, PartBalance, PartProxy
	HomeShards  int
	HomeLimit   time.Duration
	Shards      int
	Entities    int
	Rate        int
	Steady      time.Duration
	Limit       time.Duration
	MaxMoves    int
	Interval    time.Duration
	ProxyShards int

	Child    cli.Options
	Progress *cli.Progress
}

// The parts.
const (
	PartHome    = "home"
	PartBalance = "balance"
	PartProxy   = "proxy"
)

// Validate returns all faults joined, by the names of the flags, or nil.
func (c *Config) Validate() error {
	var errs cli.Faults
	fault := func(bad bool, what string) { errs.Must(!bad, "%s", what) }
	for _, p := range c.Parts {
		fault(!slices.Contains([]string{PartHome, PartBalance, PartProxy}, p),
			fmt.Sprintf("--parts: no part %q; there are home, balance, proxy", p))
	}
	fault(len(c.Parts) == 0, "--parts must name a part")
	shards := func(n, least int) bool { return n < least || n > 1<<20 }
	fault(shards(c.HomeShards, 1), "--home-shards must be 1 to 1048576")
	fault(shards(c.Shards, 4), "--shards must be 4 to 1048576")
	fault(shards(c.ProxyShards, 1), "--proxy-shards must be 1 to 1048576")
	fault(c.Entities < 1 || c.Entities > 10_000_000, "--entities must be 1 to 10000000")
	fault(c.Rate < 0, "--rate must not be negative")
	fault(c.MaxMoves < 0 || c.MaxMoves > 16384, "--max-moves must be 0 to 16384")
	fault(c.HomeLimit <= 0, "--home-limit must be positive")
	fault(c.Steady < 100*time.Millisecond || c.Steady > 10*time.Minute, "--steady must be 100ms to 10m")
	fault(c.Limit <= 0, "--limit must be positive")
	fault(c.Interval < 10*time.Millisecond, "--interval must be at least 10ms")
	return errs.Err()
}
