// Links: what the transport tells of connections that stand, broke, or whose peer is gone.

package driver

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/hello"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// LinkUp notes a connection.
func (d *Driver) LinkUp(id peer.ID, lane wire.Lane, number int) {
	d.log.Debug("connected", "peer", id, "lane", lane, "number", number)
}

// LinkDown fails the asks that went over a broken connection.
func (d *Driver) LinkDown(id peer.ID, lane wire.Lane, number int, lost uint64, err error) {
	d.log.Debug("disconnected", "peer", id, "lane", lane, "number", number, "lost", lost, "error", err)
	if lane != wire.LaneData {
		return
	}
	if n := d.remotes.get(id); n != nil && number < len(n.conns) {
		d.asks.fail(n.conns[number], route.PeerLost)
		d.loseLarge(n.conns[number], err)
	}
}

// LinkLost takes evidence that a peer's process is gone. An upcall of the transport, from a goroutine of its own.
func (d *Driver) LinkLost(id peer.ID) { d.lost(membership.LinkLostCommand{ID: id}) }

// LinkSilent passes on that a path is stuck, or is no more; the transport has logged it. The ticker tells it, which is
// where hooks are called.
func (d *Driver) LinkSilent(id peer.ID, lane wire.Lane, number int, since time.Duration) {
	d.exec.ReportLater(entity.Incident{Kind: entity.Silent, Took: since, Running: since > 0,
		Text: fmt.Sprintf("%s connection %d to %s", lane, number, id)})
}

func (d *Driver) lost(c membership.LinkLostCommand) {
	d.log.Debug("connection lost and refused", "peer", c.ID, "replaced", c.Replaced)
	d.inbox.post(func() {
		if err := d.command(c); err != nil {
			d.log.Debug("evidence not taken", "peer", c.ID, "error", err)
		}
	})
}

// PeerRefused takes a refusal for good. Being refused as removed is the end of this incarnation, by those whom the
// membership believes.
func (d *Driver) PeerRefused(err *hello.RefusedError) {
	d.log.Error("peer refused this node", "peer", err.Peer, "reason", err.Reason, "differs", err.Key, "ours", err.Ours,
		"theirs", err.Theirs)
	if err.Reason == hello.RefusedIncarnation && err.Peer.Inc != 0 {
		d.lost(membership.LinkLostCommand{ID: err.Peer, Replaced: true})
	}
	if err.Reason == hello.RefusedCluster {
		d.otherCluster(err)
	}
	if err.Reason == hello.RefusedRemoved {
		d.inbox.post(func() { d.refusedAsRemoved(err) })
	}
}
