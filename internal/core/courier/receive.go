// Receiving: each message once and in order, and the acknowledgement of it.

package courier

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// pairing finds the stream that a frame belongs to: nil for one between other incarnations, or of a stranger.
func (m *Machine) pairing(id peer.ID, from, to uint64) *link {
	if from != id.Inc || to != m.self.Inc {
		m.stats.Stale++
		return nil
	}
	l := m.link(id)
	if l == nil {
		m.stats.NonMembers++
	}
	return l
}

// believable returns ErrNonsense for an acknowledgement of what was never sent.
func (l *link) believable(kind wire.Kind, ack uint64) error {
	if ack > l.last() {
		return fmt.Errorf("%w: %s of %s acknowledges %d, %d were sent", ErrNonsense, kind, l.id, ack, l.last())
	}
	return nil
}

func (m *Machine) onSegment(from peer.ID, body []byte) error {
	p, err := ParseSegment(body)
	if err != nil {
		return err
	}
	l := m.pairing(from, p.From, p.To)
	if l == nil {
		return nil
	}
	if err := l.believable(wire.KindSegment, p.Ack); err != nil {
		return err
	}
	m.acknowledged(l, p.Ack)
	l.byAddress = l.byAddress || p.Detour
	switch {
	case p.Seq <= l.got:
		m.stats.Duplicates++
		m.owe(l, 0)
	case p.Seq == l.got+1:
		m.deliver(l, message{seq: p.Seq, kind: p.Kind, body: p.Body})
		for len(l.held) > 0 && l.held[0].seq == l.got+1 {
			next := l.held[0]
			l.heldBytes -= len(next.body)
			l.held = l.held[1:]
			m.deliver(l, next)
		}
	default:
		m.hold(l, &p)
	}
	return nil
}

func (m *Machine) deliver(l *link, msg message) {
	l.got = msg.seq
	m.out.Delivered = append(m.out.Delivered, Delivery{Kind: msg.kind, Body: msg.body})
	m.stats.Delivered++
	m.owe(l, 1)
}

// hold keeps a message that came before one that is missing. What finds no room comes again.
func (m *Machine) hold(l *link, p *Segment) {
	i, twice := slices.BinarySearchFunc(l.held, p.Seq, func(h message, seq uint64) int { return cmp.Compare(h.seq, seq) })
	switch {
	case twice:
		m.stats.Duplicates++
	case l.standing == Absent || len(l.held) >= maxHeld || l.heldBytes+len(p.Body) > maxHeldBytes:
		m.stats.NotHeld++
	default:
		l.held = slices.Insert(l.held, i, message{seq: p.Seq, kind: p.Kind, body: slices.Clone(p.Body)})
		l.heldBytes += len(p.Body)
		m.stats.OutOfOrder++
		if len(l.held) == 1 {
			m.acknowledge(l, true)
			return
		}
	}
	m.owe(l, 0)
}

// owe notes that an acknowledgement is due, with the next message or after a short while.
func (m *Machine) owe(l *link, n int) {
	if l.owed += n; l.owed >= ackEvery {
		m.acknowledge(l, false)
		return
	}
	if l.ackAt == 0 {
		m.plan(&l.ackAt, m.now+m.cfg.AckDelay)
	}
}

// acknowledge sends an acknowledgement.
func (m *Machine) acknowledge(l *link, gap bool) {
	to := l.id
	if l.byAddress {
		to.Inc = 0
	}
	c := segmentAck{from: m.self.Inc, to: l.id.Inc, ack: l.got, gap: gap || len(l.held) > 0, detour: l.byAddress}
	m.send(to, wire.KindSegmentAck, c.append(m.arena.Begin()))
	m.stats.Acks++
	l.ackAt, l.owed, l.byAddress = 0, 0, false
}

// onReceipt takes an acknowledgement. One that acknowledges nothing new and says that later messages have come asks for
// the first one at once.
func (m *Machine) onReceipt(from peer.ID, body []byte) error {
	c, err := parseAck(body)
	if err != nil {
		return err
	}
	l := m.pairing(from, c.from, c.to)
	if l == nil {
		return nil
	}
	if err := l.believable(wire.KindSegmentAck, c.ack); err != nil {
		return err
	}
	if !m.acknowledged(l, c.ack) && c.gap && len(l.sent) > 0 && m.now-l.hurried >= 2*m.cfg.AckDelay {
		l.hurried = m.now
		m.transmit(l, l.base, c.detour)
		m.stats.Resent++
	}
	return nil
}
