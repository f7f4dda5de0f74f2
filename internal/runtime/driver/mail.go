// Control mail: what goes to the transport, what a peer of an earlier version does not know, and what is counted of it.

package driver

import (
	"errors"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// sendMail hands one piece of control mail to the transport. A peer that does not know segments gets what was in them
// bare, from the next turn on. Control goroutine.
func (d *Driver) sendMail(m peer.Mail) {
	err := d.wires.Send(m)
	if err == nil {
		return
	}
	d.count.mailLost.Add(1)
	d.log.Debug("control mail not sent", "peer", m.To, "kind", m.Kind, "error", err)
	var old *transport.VersionError
	if !errors.As(err, &old) {
		return
	}
	switch to := m.To; { // commands that are never refused
	case m.Kind == wire.KindSegment && to.Inc != 0:
		d.inbox.post(func() { _ = d.command(node.PlainCommand{ID: to}) })
	case m.Kind == wire.KindWatchHello:
		d.inbox.post(func() { _ = d.command(watch.OlderCommand{ID: to}) })
	}
}

// noteCounts publishes what the node's machines count when it has changed. Control goroutine.
func (d *Driver) noteCounts() {
	if s := d.control.node.Counts(); s != d.control.counts {
		d.control.counts = s
		changed := s // s itself would be made anew at every step
		d.counts.Store(&changed)
	}
	if d.takeover.stale(d.now()) {
		d.takeover.note(d.now(), d.control.node, d.View(), d.peerTable.homesAt)
	}
	if over := d.takeover.over(d.now(), d.View()); over != nil {
		d.events.publish(d.View(), over)
	}
}
