// Patience: what a preset sets, and the margin that follows from it (FD-1, MEM-10).

package node

import (
	"time"

	"github.com/kith-io/kith/cluster"
)

// Paced returns c with the fields that its Patience sets, where they are zero: what a user has set stays. It is called
// once, before anything is derived from c; again, it changes nothing. PatienceNormal sets none.
func (c Config) Paced() Config {
	m, r := &c.Membership, &c.Resolver
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	percent := 0
	switch c.Patience {
	case cluster.PatienceCalm:
		percent = 25
		for _, d := range []*time.Duration{&m.HeartbeatInterval, &m.HeartbeatExpectedAfter, &m.GossipInterval,
			&m.ReaperInterval, &m.LeaderInterval} {
			set(d, 250*time.Millisecond)
		}
		set(&m.AcceptablePause, time.Second)
		set(&m.MinStdDeviation, 50*time.Millisecond)
	case cluster.PatienceNoisy:
		percent = 150
		set(&m.AcceptablePause, 6*time.Second)
		set(&m.MinStdDeviation, 200*time.Millisecond)
	}
	if r.StableAfter == 0 && r.StablePercent == 0 {
		r.StablePercent = percent
	}
	return c
}

// drift is what the clocks of two machines and the frames under way add to a margin that follows gossip, beside a
// hundredth of the whole.
const drift = 100 * time.Millisecond

// margin returns what is added to the time in which a cut-off owner's detector and resolver stop it: it covers the way
// of the first accusation through its side, frames under way, and clocks that drift. The accusation goes by pushes, and
// by gossip where these are lost. That of PatienceNormal and PatienceNoisy is more than their gossip needs; it is what
// all builds before presets counted with, and so what they compare.
func (c Config) margin(rest time.Duration) time.Duration {
	if c.Patience != cluster.PatienceCalm {
		return takeoverMargin
	}
	m := c.Membership.WithDefaults()
	return 3*m.PushInterval + 2*m.GossipInterval + drift + rest/100
}
