// Tests of what ends a lease though nobody steps its holder.

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGuard: it tells once that a lease has ended, not before, and of none that is not held; a confirmation puts the
// end off, and comes in time or not at all.
func TestGuard(t *testing.T) {
	var g Guard
	require.False(t, g.Tick(time.Hour), "nothing is held")
	g.Follow(20 * time.Second)
	require.Equal(t, 20*time.Second, g.Until())
	require.False(t, g.Tick(20*time.Second-1))
	g.Follow(25 * time.Second)
	require.False(t, g.Tick(20*time.Second))
	require.True(t, g.Tick(25*time.Second))
	require.Zero(t, g.Until())
	require.False(t, g.Tick(time.Hour), "once")
	require.True(t, g.Follow(2*time.Hour), "it was confirmed when it had been ended")
	require.False(t, g.Follow(3*time.Hour))
	require.True(t, g.Tick(3*time.Hour))
	require.False(t, g.Follow(0))
	require.False(t, g.Follow(4*time.Hour), "whoever holds it anew says so")
	g.Follow(0)
	require.False(t, g.Tick(5*time.Hour), "its holder has said so itself")
}

// TestConfirmedBehindItsEnd: a confirmation that comes when the lease is over by the clock, which its holder has not
// been stepped to see, takes it anew: a caller that followed the guard and withheld the entity has to permit it
// (SHD-12).
func TestConfirmedBehindItsEnd(t *testing.T) {
	d := newDesk(t).begin(1).answer(true, "")
	for d.tick(); d.now < 12*time.Second; d.tick() {
		d.answer(false, "store away")
	}
	d.now += 1900 * time.Millisecond // that answer takes its time, so that the next call is made shortly before the end
	d.answer(false, "store away").tick()
	require.Equal(t, 18900*time.Millisecond, d.now)
	require.False(t, d.Withhold)
	d.now = cfg.Hold + 500*time.Millisecond
	d.answer(true, "")
	require.True(t, d.Permit)
	require.Equal(t, Held, d.h.Status().State)
	require.Equal(t, uint64(2), d.h.Status().Acquired)
	require.Equal(t, uint64(1), d.h.Status().Lost)
}
