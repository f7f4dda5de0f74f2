// A sleep reaches the node before anything that waited for its control loop.

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// afterStop counts the control frames that a process takes before the order to stop.
type afterStop struct {
	Watcher
	p      *Process
	frames int
	stops  int // frames that came before the order; -1: none came
}

func (a *afterStop) Frame(p *Process, from peer.ID, kind wire.Kind) {
	if p == a.p {
		a.frames++
	}
	a.Watcher.Frame(p, from, kind)
}

func (a *afterStop) Stops(p *Process, why string) {
	if p == a.p && a.stops < 0 {
		a.stops = a.frames
	}
	a.Watcher.Stops(p, why)
}

// TestSleepIsToldBeforeWhatWaited makes a process sleep, unseen by its clock, while its control loop is stuck with
// frames in front of it: the first step after it suspends the node, as a driver's does (MEM-10). A home that is
// disclosed in one of those frames would else be hosted, and what was parked for it be handled, by a node that others
// may hold dead.
func TestSleepIsToldBeforeWhatWaited(t *testing.T) {
	w := formed(t, 3, setup.Config{})
	a := w.Hosts[0].Process
	seen := &afterStop{Watcher: w.Watcher, p: a, stops: -1}
	a.Stick(3 * time.Second)
	w.Advance(2 * time.Second)
	require.Greater(t, len(a.inbox), 1, "frames wait")
	a.Sleep(20 * time.Second)
	w.Watcher = seen
	w.Advance(21 * time.Second)
	require.False(t, a.Stuck())
	require.GreaterOrEqual(t, seen.stops, 0, "it was told to stop")
	require.LessOrEqual(t, seen.stops, 1, "the first frame's step tells of the sleep first")
}
