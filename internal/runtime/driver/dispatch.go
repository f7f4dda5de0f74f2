// Dispatch: which messages wait for a route, and for what. The control goroutine moves them on (routes.go).

package driver

import (
	"cmp"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// dispatch leads messages of this node to the shards' homes: it changes routes, drains what waited for them, and asks
// for homes. Its methods belong to the control goroutine unless said otherwise.
type dispatch struct {
	control routeControl
	drains  atomic.Bool // a drain may wait for room in a link; any goroutine reads it

	log     *slog.Logger
	self    peer.ID
	inbox   *inbox
	asks    *askTable
	large   *largeTable
	room    *waitLine
	failed  *undeliveredTable
	invalid *invalidFrames
	regions *atomic.Pointer[regionTable]
	now     func() time.Duration
	command func(any) error // has the node carry out a wish
	peers   *peerTable
}

// routeControl is what only the control goroutine touches of the routes.
type routeControl struct {
	agenda  plane.Agenda[slotRef] // what is to be done for slots
	failing []failedAsk           // parked asks to be answered when no lock is held
}

type failedAsk struct {
	corr   uint64
	reason route.Reason
	why    error // which matches the reason and tells more; nil: nothing
}

func (d *dispatch) init(n *Driver) {
	d.log, d.self, d.inbox, d.asks, d.large, d.room = n.log, n.self, n.inbox, n.asks, &n.large, &n.room
	d.failed, d.invalid, d.regions = &n.failed, &n.nonsense, &n.regions
	d.now, d.command, d.peers = n.now, n.command, &n.peerTable
}

// next returns when something is due here, at the latest.
func (d *dispatch) next(latest time.Duration) time.Duration {
	if at, ok := d.control.agenda.Next(); ok {
		latest = min(latest, at)
	}
	return latest
}

// due does what is due at now.
func (d *dispatch) due(now time.Duration) {
	d.retryDrains(now)
	if d.control.agenda.Stalls() == 0 && d.drains.Load() {
		d.drains.Store(false)
	}
	d.expireParked(now)
}

// roomAgain resumes drains that met a full link. Any goroutine.
func (d *dispatch) roomAgain() {
	if d.drains.Load() { // a link that is never idle for long tells of room thousands of times a second
		d.inbox.post(func() { d.control.agenda.Roomy() })
	}
}

// askHomes asks for the homes that senders wanted in this turn, in one command for each type.
func (d *dispatch) askHomes() {
	list := d.control.agenda.Wanted()
	if len(list) == 0 {
		return
	}
	regions := d.regions.Load()
	slices.SortStableFunc(list, func(a, b slotRef) int { return cmp.Compare(a.r.no, b.r.no) })
	for len(list) > 0 {
		r := list[0].r
		n := 1
		for n < len(list) && list[n].r == r {
			n++
		}
		shards := make([]route.ShardID, n)
		for i := range shards {
			shards[i] = list[i].shard
		}
		list = list[n:]
		if regions.byID.At(r.id) != r {
			continue // it was refused, and another took its place
		}
		if err := d.command(shard.WantCommand{Type: r.id, Shards: shards}); err != nil {
			d.log.Warn("homes not asked for", "type", r.typ.Name, "shards", len(shards), "error", err)
		}
	}
}

// closeForGood makes senders of a shard get ErrStopped, and gives up what is parked for it.
func (d *dispatch) closeForGood(ref slotRef) {
	s := ref.slot()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.route.Store(nil)
	s.lead(nil)
	s.slot.Reset()
	s.slot.FailAll(func(f []byte) { d.dropParked(ref, f, route.Abandoned) })
}

// failSoon fails an ask when no lock is held. Control goroutine.
func (d *dispatch) failSoon(corr uint64, reason route.Reason, why error) {
	d.control.failing = append(d.control.failing, failedAsk{corr, reason, why})
}

// drainSlot goes on with a slot after a large message at its head. Any goroutine.
func (d *dispatch) drainSlot(ref slotRef) {
	d.inbox.post(func() {
		s := ref.slot()
		s.mu.Lock()
		if s.next != nil && s.route.Load() == nil {
			d.drain(ref, s)
		}
		s.mu.Unlock()
		d.watch(ref)
		d.failDropped()
	})
}
