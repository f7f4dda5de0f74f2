// Remotes: other nodes as the data plane sees them, and the way of answers back to them.

package driver

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/transport"
	"github.com/kith-io/kith/wire"
)

// remote is another node: its link, and what is refused of it until it is told. It is the Origin of its asks.
type remote struct {
	d        *Driver
	id       peer.ID
	link     *transport.Link
	refusals refusals
	listed   atomic.Bool // stands in remoteTable.telling
}

// Reply answers an ask over the link to the asker.
func (r *remote) Reply(corr uint64, reason route.Reason, payload []byte) error {
	if err := r.d.checkReply(payload); err != nil {
		return err
	}
	if len(payload) > r.d.cfg.MaxPayload {
		return r.replyLarge(corr, payload)
	}
	l := r.link
	l.Lock()
	b, err := l.Reserve(wire.ReplySize + len(payload))
	if err != nil {
		l.Unlock()
		r.d.count.repliesLost.Add(1)
		return err
	}
	if reason != route.OK {
		reason = reason.Spoken(l.Version())
	}
	wire.PutReply(b, uint16(reason), corr, payload)
	wake := l.Commit()
	l.Unlock()
	if wake {
		// On the link's own loop this costs no system call: a busy loop looks at its tasks when the pass ends.
		l.Wake(nil)
	}
	return nil
}

// refuse notes a tell of this peer that was refused, so that it is told.
func (r *remote) refuse(k refusalKey, id []byte) {
	if !r.refusals.add(k, id) {
		r.d.count.refusalsUntold.Add(1)
		return
	}
	if r.listed.CompareAndSwap(false, true) {
		t := &r.d.remotes
		t.mu.Lock()
		t.telling = append(t.telling, r)
		t.mu.Unlock()
	}
}

// remoteTable holds the remotes by identity. There are as many as members, and those removed a moment ago.
type remoteTable struct {
	mu      sync.Mutex
	byID    map[peer.ID]*remote
	telling []*remote // those with refusals to be told
}

// get returns the remote of id, nil when there is none.
func (t *remoteTable) get(id peer.ID) *remote {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// remote returns the remote of id and makes it if there is none. One that is forgotten gets a dead link, and no place in
// the table: nothing would take it out again.
func (d *Driver) remote(id peer.ID) *remote {
	t := &d.remotes
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.byID[id]; r != nil {
		return r
	}
	r := &remote{d: d, id: id, link: d.wires.Link(id)}
	if r.link.Err() == nil {
		if t.byID == nil {
			t.byID = map[peer.ID]*remote{}
		}
		t.byID[id] = r
	}
	return r
}

func (t *remoteTable) drop(id peer.ID) *remote {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byID[id]
	delete(t.byID, id)
	return r
}

// tellRefusals sends what was refused to the senders of it.
func (d *Driver) tellRefusals() {
	t := &d.remotes
	t.mu.Lock()
	telling := t.telling
	t.telling = nil
	t.mu.Unlock()
	slices.SortFunc(telling, func(a, b *remote) int { return a.id.Compare(b.id) })
	for _, r := range telling {
		r.listed.Store(false)
		list := r.refusals.take()
		if len(list) == 0 {
			continue
		}
		mail := peer.Mail{To: r.id, Kind: wire.KindRefused, Body: appendRefusals(nil, list)}
		if err := d.wires.Send(mail); err != nil {
			d.count.refusalsUntold.Add(1)
			d.log.Debug("refusals not told", "peer", r.id, "error", err)
		}
	}
}

// selfOrigin is the Origin of asks of this node to entities of its own.
type selfOrigin struct{ d *Driver }

// Reply settles the ask. That nobody waits any more is no error, as it is none for an answer over a link.
func (o *selfOrigin) Reply(corr uint64, reason route.Reason, payload []byte) error {
	if err := o.d.checkReply(payload); err != nil {
		return err
	}
	o.d.asks.settle(corr, reason, payload)
	return nil
}

func (d *Driver) checkReply(payload []byte) error {
	if len(payload) > d.cfg.MaxMessage {
		return fmt.Errorf("%w: reply of %d bytes, at most %d", route.ErrTooLarge, len(payload), d.cfg.MaxMessage)
	}
	return nil
}
