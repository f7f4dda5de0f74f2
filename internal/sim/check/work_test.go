// The checker of refused tells: what it demands of their reports, and what it must not hold against anyone (SHD-4).

package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// refuses makes a process refuse n tells of another.
func refuses(w *world.World, by, of *world.Process, n int) {
	for range n {
		checks(w).Refuses(by, of.ID, &wire.Envelope{})
	}
}

// TestGivenUpRefusalsMayStillBeTold: the last copy of a notice is on its way when its sender holds the other for down
// and gives it up. What arrives then is no lie, and nothing is missing (SHD-4).
func TestGivenUpRefusalsMayStillBeTold(t *testing.T) {
	w := formed(t, 2, setup.Config{})
	c, a, b := checks(w), w.Hosts[0].Process, w.Hosts[1].Process
	refuses(w, a, b, 18)
	c.Untold(a, b.ID, 9)
	require.Contains(t, c.Unreported(), "9 tells of n2, refused by n1,", "giving up some excuses no others")
	c.Told(b, a.ID, 9)
	c.Untold(a, b.ID, 9)
	require.Empty(t, c.Unreported())
	c.Told(b, a.ID, 9)
	require.Empty(t, c.Violations)
}

// TestRefusalCheckerCriesOut: each rule of refused tells, broken once, also behind some that were given up (SHD-4).
func TestRefusalCheckerCriesOut(t *testing.T) {
	for name, rule := range map[string]struct {
		broken func(c *Checker, by, of *world.Process)
		text   string
	}{
		"told twice": {func(c *Checker, by, of *world.Process) {
			c.Told(of, by.ID, 3)
			c.Told(of, by.ID, 1)
		}, "n1 refused 3 messages and is said to have refused 4"},
		"told twice behind the last that was given up": {func(c *Checker, by, of *world.Process) {
			c.Untold(by, of.ID, 3)
			c.Told(of, by.ID, 3)
			c.Told(of, by.ID, 1)
		}, "n1 refused 3 messages and is said to have refused 4"},
		"more given up than refused": {func(c *Checker, by, of *world.Process) {
			c.Untold(by, of.ID, 4)
		}, "of 3 refused messages of n2, 4 are given up"},
		"a member given up in calm": {func(c *Checker, by, of *world.Process) {
			c.CalmMail = true
			c.Untold(by, of.ID, 3)
		}, "3 refused messages of n2, a member, are not told"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 2, setup.Config{})
			by, of := w.Hosts[0].Process, w.Hosts[1].Process
			refuses(w, by, of, 3)
			rule.broken(checks(w), by, of)
			require.Len(t, checks(w).Violations, 1)
			require.Contains(t, checks(w).Violations[0].Text, rule.text)
		})
	}
}
