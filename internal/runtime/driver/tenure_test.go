// Tests of tenures: the gate keeps to them though nobody has stepped the node, whichever clock shows that time has
// passed, and what is logged and shown of them.

package driver

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/stats"
)

func (d *Driver) tenureNow() stats.Tenure { return d.control.tenure.stats(d.start, d.now()) }

// newTenures returns a pair that has tenures, on each other's word; c sets the clocks of the second node off.
func newTenures(t *testing.T, c *shifted, log *slog.Logger) *pair {
	p := newPair(t, func(cfg *Config) {
		cfg.Sharding.TakeoverTime, cfg.Resolver.Strategy = time.Hour, node.ResolverOff
		cfg.Sharding.Tenure = Tenure{Voters: 3, Grant: 15 * time.Second}
		if len(cfg.Roles) > 0 {
			cfg.clocks, cfg.Logger = clocks{c.bootTime, c.wallTime}, log
		}
	})
	for _, d := range []*Driver{p.a, p.b} {
		eventually(t, func() bool { return d.tenureNow().Held })
	}
	return p
}

// TestGateKeepsToTheTenure: a machine that slept for longer than a grant counts handles nothing before its node has
// stepped, and goes on when others have vouched for it again; the log says so once for each change (MEM-10, AVL-5).
func TestGateKeepsToTheTenure(t *testing.T) {
	const sleep = 20 * time.Second
	for name, sleeps := range map[string]func(c *shifted){
		"of the machine": func(c *shifted) {
			c.boot.Add(int64(sleep))
			c.wall.Add(int64(sleep))
		},
		"of a virtual machine": func(c *shifted) { c.wall.Add(int64(sleep)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c shifted
			log := &logstest.Text{}
			p := newTenures(t, &c, slog.New(slog.NewTextHandler(log, nil)))
			require.False(t, p.b.exec.Gate.Held(p.b.now()))
			release := stall(t, p.b)
			sleeps(&c)
			p.b.lookForSleep() // as the ticker does
			require.True(t, p.b.exec.Gate.Held(p.b.now()), "the node has not stepped since")
			release()
			eventually(t, func() bool { s := p.b.tenureNow(); return s.RanOut > 0 && s.Held })
			for _, m := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
				eventually(t, func() bool { _, err := p.at[m].AskWithin(patience, "x", []byte("y"), nil); return err == nil })
			}
			ran := p.b.Stats().Suspension.Tenure.RanOut
			require.EqualValues(t, ran, log.Count("the tenure has run out"))
			require.EqualValues(t, ran, log.Count("the tenure is held again"))
		})
	}
}

// TestShortSleepCostsTheTenureItsTime: a step of the wall clock that is far from the takeover time counts for the
// tenure, which goes on when there is some left of it (MEM-10).
func TestShortSleepCostsTheTenureItsTime(t *testing.T) {
	t.Parallel()
	var c shifted
	p := newTenures(t, &c, nil)
	release := stall(t, p.b)
	before := p.b.tenureNow()
	c.wall.Add(int64(3 * time.Second))
	p.b.lookForSleep()
	require.True(t, p.b.exec.Gate.Held(p.b.now()), "until the node has judged it")
	release()
	eventually(t, func() bool { return !p.b.exec.Gate.Held(p.b.now()) })
	s := p.b.tenureNow()
	require.True(t, s.Held)
	require.Zero(t, s.RanOut)
	require.WithinDuration(t, before.Since.Add(-3*time.Second), s.Since, time.Second, "its clock counts the sleep")
}

// TestNoTenure: without tenures nothing is shown.
func TestNoTenure(t *testing.T) {
	p := newPair(t)
	require.Equal(t, stats.Tenure{}, p.b.Stats().Suspension.Tenure)
}

// noStore keeps no sessions.
type noStore struct{ granted }

func (noStore) TTL() time.Duration { return time.Minute }

// TestTenureConfig: what is wrong with a tenure is said at the start, all of it (CARD-2).
func TestTenureConfig(t *testing.T) {
	faults := func(edit func(*Config)) string {
		c := Config{}
		c.Sharding.Tenure.Voters = 3
		edit(&c)
		if err := c.WithDefaults().Validate(); err != nil {
			return err.Error()
		}
		return ""
	}
	require.Empty(t, faults(func(*Config) {}))
	require.Equal(t, Tenure{Voters: 5, Grant: DefaultGrant}, Tenure{Voters: 5}.withDefaults())
	require.Zero(t, Config{}.WithDefaults().Sharding.Tenure)
	text := faults(func(c *Config) {
		c.Sharding.Tenure = Tenure{Voters: 4, Grant: time.Hour, Role: strings.Repeat("r", 1000)}
		c.Membership.LenientSettings = true
		c.Sharding.Session = Session{Service: noStore{}, Ends: noStore{}}
	})
	for _, want := range []string{"4 seats, must be 3, 5 or 7", "a grant counts for 1h0m0s, must be 500ms to 1m0s",
		"must have at most", "LenientSettings must be off", "Tenure and Session: a node has one of them"} {
		require.Contains(t, text, want)
	}
	require.Contains(t, faults(func(c *Config) { c.Sharding.Tenure = Tenure{Role: "voters"} }), "0 seats")
}
