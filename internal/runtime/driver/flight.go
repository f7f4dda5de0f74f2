// Flights: tells that were on their way, or at a node, when their connection or the node was lost (package flow).

package driver

import (
	"bytes"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// flights is links as the transport tells it of data connections that are over. From event loops.
type flights struct{ *peerTable }

// Flown takes what is not known of the tells on a connection to a node. Of one that is forgotten nothing will be heard.
func (f flights) Flown(to peer.ID, c flow.Flown) {
	n := f.get(to)
	if n == nil {
		f.lostInFlight(to, c.Unknown)
		return
	}
	f.lostInFlight(to, n.refusals.settled(func(s *flow.InFlight) uint64 { return s.Over(c) }))
}

// Taken reports to the sender of a connection what was taken here.
func (f flights) Taken(from peer.ID, c flow.Taken) {
	n := f.peerNode(from)
	n.notices.Store(true)
	n.refusals.say(c)
	n.list()
}

// took takes a node's word on connections to it that are over.
func (t *peerTable) took(from peer.ID, body []byte) error {
	list, err := flow.ParseTaken(body)
	if err != nil {
		return err
	}
	if n := t.get(from); n != nil { // else everything has been reported as lost
		for _, e := range list {
			t.lostInFlight(from, n.refusals.settled(func(s *flow.InFlight) uint64 { return s.Says(e) }))
		}
	}
	return nil
}

// lost reports what is not known of the tells sent to a node that is gone for good.
func (n *peerNode) lost() {
	n.d.lostInFlight(n.id, n.refusals.settled((*flow.InFlight).End))
}

// lostAtEnd reports what this node will never know of the tells that it has sent, when its connections have closed.
func lostAtEnd(d *Driver) {
	for _, n := range d.all() {
		d.peerTable.lostInFlight(n.id, n.refusals.settled((*flow.InFlight).Close))
	}
}

// lastFrames bounds the frames that are kept for a node which ends, and lastBytes their bodies.
const (
	lastFrames = 1024
	lastBytes  = 4 << 20
)

// lastWords are the frames by which peers tell a node that ends what they took and refused of its messages: they come
// when its control goroutine takes none any more. Safe for concurrent use.
type lastWords struct {
	mu    sync.Mutex
	list  []frame
	bytes int
}

// keep copies a frame, if there is room.
func (l *lastWords) keep(from peer.ID, kind wire.Kind, arrived time.Duration, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) < lastFrames && l.bytes+len(body) <= lastBytes {
		l.bytes += len(body)
		l.list = append(l.list, frame{from, kind, arrived, bytes.Clone(body)})
	}
}

// hearLast takes those, when no connection stands any more. Control goroutine.
func hearLast(d *Driver) {
	d.last.mu.Lock()
	list := d.last.list
	d.last.list = nil
	d.last.mu.Unlock()
	for i := range list {
		f := &list[i]
		if f.kind != wire.KindSegment {
			heedLast(d, f.from, f.kind, f.body)
			continue
		}
		// Counts that make no sense came from a peer that this node no longer knows.
		_ = d.control.node.Handle(d.now(), f.arrived, f.from, f.kind, f.body)
		var e node.Effects
		d.control.node.Drain(&e)
		for _, n := range e.Notices {
			heedLast(d, n.From, n.Kind, n.Body)
		}
	}
}

// heedLast takes what a node sent at its end, for the account alone: no route is asked for any more.
func heedLast(d *Driver, from peer.ID, kind wire.Kind, body []byte) {
	if kind == wire.KindTaken {
		_ = d.took(from, body)
		return
	}
	list, err := plane.ParseRefusals(kind, body)
	if err != nil {
		return
	}
	regions := d.regions.Load()
	for _, e := range list {
		r, s := regions.byID.At(e.Type), e.Shard
		if r == nil || uint32(s) >= r.shards {
			s = route.NoShard
		} else {
			r.count.refusedThere.Add(e.Count)
		}
		d.failed.addAll(r, s, cause{from, e.Reason, e.Limit}, e.Count, e.Samples)
	}
}

func (t *peerTable) lostInFlight(to peer.ID, lost uint64) {
	t.failed.addAll(nil, route.NoShard, cause{peer: to, reason: route.LostInFlight}, lost, nil)
}

// heedOne takes a notice of another node.
func (d *Driver) heedOne(from peer.ID, kind wire.Kind, body []byte) {
	if kind != wire.KindTaken {
		d.refusals(from, kind, body)
		return
	}
	if err := d.took(from, body); err != nil {
		d.nonsense.note(from, kind, err)
	}
}
