// What the checkers demand of control messages: between two incarnations each is delivered once and in order, a message
// that is sent again is the same, and in the end all of them have come (FD-4).

package check

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// sentMessages is what was sent on it, as digests in the order of their first sending, and how much of it was
// delivered.
type sentMessages struct {
	sent  []uint64
	got   int
	words words
}

// stream returns the stream of two incarnations, made on first use.
func (c *Checker) stream(from, to peer.ID) *sentMessages {
	k := pairKey{from, to}
	s := c.streams[k]
	if s == nil {
		s = &sentMessages{}
		c.streams[k] = s
	}
	return s
}

func messageHash(kind wire.Kind, body []byte) uint64 {
	d := xxhash.New()
	_, _ = d.Write([]byte{byte(kind)})
	_, _ = d.Write(body)
	return d.Sum64()
}

// Posted sees all mail as it leaves.
func (c *Checker) Posted(p *world.Process, m *peer.Mail) {
	if m.Kind != wire.KindSegment {
		return
	}
	l, err := courier.ParseSegment(m.Body)
	if err != nil || l.From != p.ID.Inc {
		c.Violate(p, "courier", "a segment that nobody can read: %v", err)
		return
	}
	s := c.stream(p.ID, peer.ID{Addr: m.To.Addr, Inc: l.To})
	sum := messageHash(l.Kind, l.Body)
	switch at := l.Seq - 1; {
	case at == uint64(len(s.sent)):
		s.sent = append(s.sent, sum)
		if l.Kind == wire.KindRegister {
			said(c, p, s, l.Body)
		}
	case at > uint64(len(s.sent)):
		c.Violate(p, "courier", "number %d to %s comes after %d", l.Seq, c.w.Name(m.To), len(s.sent))
	case s.sent[at] != sum:
		c.Violate(p, "courier", "number %d to %s is another message than before", l.Seq, c.w.Name(m.To))
	}
}

// Received sees each control message that came in a segment.
func (c *Checker) Received(p *world.Process, r *node.Received) {
	c.Frame(p, r.From, r.Kind)
	s := c.stream(r.From, p.ID)
	sum := messageHash(r.Kind, r.Body)
	if s.got >= len(s.sent) || s.sent[s.got] != sum {
		c.Violate(p, "courier", "%s of %s is not the next message, number %d of %d", r.Kind, c.w.Name(r.From), s.got+1,
			len(s.sent))
		return
	}
	s.got++
	s.words.heard(c.w.Now, s.got)
}

// Undelivered names a control message between two processes that run and hold each other for members, and that has not
// come; "" when there is none.
func (c *Checker) Undelivered() string {
	running := c.w.Running()
	for _, p := range running {
		for _, q := range running {
			s := c.streams[pairKey{p.ID, q.ID}]
			if s != nil && s.got < len(s.sent) && c.members(p, q) && c.members(q, p) {
				return fmt.Sprintf("%d of %d control messages of %s to %s", len(s.sent)-s.got, len(s.sent), c.w.Name(p.ID),
					c.w.Name(q.ID))
			}
		}
	}
	return ""
}

// quarantined: nothing that a storm does makes a peer deaf for control messages alone, so no living one is ever given
// up over an open path. A dead one may be, when its watchers have gone as well; and one behind a link that is cut for
// good, when neither end watches the other, so that nobody accuses it: quarantine is for that [FD-4]. Members that hear
// of a quarantine from its observer are not judged.
func (c *Checker) quarantined(p *world.Process, e *membership.Event) {
	switch {
	case !c.CalmMail:
		return
	case e.Kind == membership.MemberQuarantined && e.By == p.ID:
	case e.Kind == membership.SelfSuspected:
	default:
		return
	}
	q := c.w.ProcessOf(e.Member.ID)
	if q == nil || !q.Alive {
		return
	}
	cuts := c.w.Net.Cuts
	if e.Kind == membership.SelfSuspected || !cuts[p.Index][q.Index] && !cuts[q.Index][p.Index] {
		c.Violate(p, "courier", "%s of %s: %s", e.Kind, c.w.Name(e.Member.ID), e.Reason())
	}
}
