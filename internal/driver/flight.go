// Flights: tells that were on their way, or at a node, when their connection or the node was lost (package flow).

package driver

import (
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// flights is links as the transport tells it of data connections that are over. From event loops.
type flights struct{ *links }

// Flown takes what is not known of the tells on a connection to a node. Of one that is forgotten nothing will be heard.
func (f flights) Flown(to peer.ID, c flow.Flown) {
	n := f.get(to)
	if n == nil {
		f.lostInFlight(to, c.Unknown)
		return
	}
	f.lostInFlight(to, n.refusals.settled(func(s *flow.Flights) uint64 { return s.Over(c) }))
}

// Taken has the sender of a connection told what was taken here.
func (f flights) Taken(from peer.ID, c flow.Taken) {
	n := f.remoteNode(from)
	n.notices.Store(true)
	n.refusals.say(c)
	n.list()
}

// took takes a node's word on connections to it that are over.
func (t *links) took(from peer.ID, body []byte) error {
	list, err := flow.ParseTaken(body)
	if err != nil {
		return err
	}
	if n := t.get(from); n != nil { // else everything has been told as lost
		for _, e := range list {
			t.lostInFlight(from, n.refusals.settled(func(s *flow.Flights) uint64 { return s.Says(e) }))
		}
	}
	return nil
}

// lost reports what is not known of the tells sent to a node that is gone for good, or of which this one, at its end,
// will hear nothing any more.
func (n *remoteNode) lost() {
	n.d.lostInFlight(n.id, n.refusals.settled((*flow.Flights).End))
}

func (t *links) lostInFlight(to peer.ID, lost uint64) {
	t.failed.addAll(nil, route.NoShard, cause{peer: to, reason: route.LostInFlight}, lost, nil)
}

// heedOne takes what another node told this one.
func (d *Driver) heedOne(from peer.ID, kind wire.Kind, body []byte) {
	if kind != wire.KindTaken {
		d.refusals(from, kind, body)
		return
	}
	if err := d.took(from, body); err != nil {
		d.nonsense.note(from, kind, err)
	}
}
