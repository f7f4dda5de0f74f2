// Tests of what a sender costs that is held up for room again and again.

package driver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/runtime/transport"
)

// A sender that waits for room thousands of times a second allocates nothing for it (CARD-3, SHD-5).
func TestWaitingForRoomAllocatesNothing(t *testing.T) {
	d := &Driver{inbox: newInbox()}
	d.peerTable.init(d)
	d.dispatch.init(d)
	d.exec.Waits.CallingOut()
	full := fmt.Errorf("sending: %w", &transport.FullError{})
	var err error
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err = d.exec.Waits.MayWait(); err == nil && lineOf(full) == (lineKey{}) {
			d.LinkRoom(nil)
		}
	}))
	require.NoError(t, err)
}

// Room in a link wakes the control goroutine only while it drains a slot into one.
func TestRoomWakesOnlyWhoDrains(t *testing.T) {
	d := &Driver{inbox: newInbox()}
	d.peerTable.init(d)
	d.dispatch.init(d)
	d.LinkRoom(nil)
	_, jobs := d.inbox.take(nil, nil)
	require.Empty(t, jobs)
	d.dispatch.control.agenda.Stall(0, slotRef{})
	require.Empty(t, d.dispatch.control.agenda.Stalled(0))
	d.drains.Store(true)
	d.LinkRoom(nil)
	_, jobs = d.inbox.take(nil, nil)
	require.Len(t, jobs, 1)
	jobs[0]()
	require.Len(t, d.dispatch.control.agenda.Stalled(0), 1)
}
