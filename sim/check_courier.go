// What the checkers demand of control messages: between two incarnations each is delivered once and in order, a message
// that is sent again is the same, and in the end all of them have come (FD-4).

package sim

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/courier"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// pairKey is one direction between two incarnations.
type pairKey struct{ from, to peer.ID }

// letters is what was sent on it, as digests in the order of their first sending, and how much of it was delivered.
type letters struct {
	sent []uint64
	got  int
}

// stream returns the stream of two incarnations, made on first use.
func (c *checker) stream(from, to peer.ID) *letters {
	k := pairKey{from, to}
	s := c.streams[k]
	if s == nil {
		s = &letters{}
		c.streams[k] = s
	}
	return s
}

func letterHash(kind wire.Kind, body []byte) uint64 {
	d := xxhash.New()
	_, _ = d.Write([]byte{byte(kind)})
	_, _ = d.Write(body)
	return d.Sum64()
}

// posted sees all mail as it leaves.
func (c *checker) posted(p *proc, m *peer.Mail) {
	if m.Kind != wire.KindParcel {
		return
	}
	l, err := courier.ParseParcel(m.Body)
	if err != nil || l.From != p.id.Inc {
		c.violate(p, "courier", "a parcel that nobody can read: %v", err)
		return
	}
	s := c.stream(p.id, peer.ID{Addr: m.To.Addr, Inc: l.To})
	sum := letterHash(l.Kind, l.Body)
	switch at := l.Seq - 1; {
	case at == uint64(len(s.sent)):
		s.sent = append(s.sent, sum)
	case at > uint64(len(s.sent)):
		c.violate(p, "courier", "number %d to %s comes after %d", l.Seq, c.w.name(m.To), len(s.sent))
	case s.sent[at] != sum:
		c.violate(p, "courier", "number %d to %s is another message than before", l.Seq, c.w.name(m.To))
	}
}

// received sees each control message that came in a parcel.
func (c *checker) received(p *proc, r *node.Received) {
	c.frame(p, r.From, r.Kind)
	s := c.stream(r.From, p.id)
	sum := letterHash(r.Kind, r.Body)
	if s.got >= len(s.sent) || s.sent[s.got] != sum {
		c.violate(p, "courier", "%s of %s is not the next message, number %d of %d", r.Kind, c.w.name(r.From), s.got+1,
			len(s.sent))
		return
	}
	s.got++
}

// undelivered names a control message between two processes that run and hold each other for members, and that has not
// come; "" when there is none.
func (c *checker) undelivered() string {
	running := c.w.running()
	holds := func(p, q *proc) bool {
		m, ok := p.view.Member(q.id)
		return ok && m.Status != membership.Down
	}
	for _, p := range running {
		for _, q := range running {
			s := c.streams[pairKey{p.id, q.id}]
			if s != nil && s.got < len(s.sent) && holds(p, q) && holds(q, p) {
				return fmt.Sprintf("%d of %d control messages of %s to %s", len(s.sent)-s.got, len(s.sent), c.w.name(p.id),
					c.w.name(q.id))
			}
		}
	}
	return ""
}

// quarantined: nothing that a storm does makes a peer deaf for control messages alone, so nobody who lives is ever
// given up. One that is dead may be, when those who watched it have gone as well.
func (c *checker) quarantined(p *proc, e *membership.Event) {
	if !c.calmMail || e.Kind != membership.MemberQuarantined && e.Kind != membership.SelfIndicted {
		return
	}
	if q := c.w.process(e.Member.ID); q != nil && q.alive {
		c.violate(p, "courier", "%s of %s: %s", e.Kind, c.w.name(e.Member.ID), e.Reason())
	}
}
