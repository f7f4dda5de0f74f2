// Sending: the window of one peer, what of it is sent again and when, and when the peer is given up.

package courier

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// link is one peer: the stream to it and the stream from it. Zero deadlines are none.
type link struct {
	id       peer.ID
	standing Standing
	closed   bool // nothing is sent to it any more, for ever
	plain    bool // it takes messages without segments only

	sent  []message // not acknowledged, by number; the first has the number base
	base  uint64
	bytes int
	full  bool          // reported as full
	spent time.Duration // when a message last found no room; zero: never

	at    time.Duration // when to send again
	wait  time.Duration // the pause before
	tries int           // repetitions since something was acknowledged
	trip  time.Duration // how long an acknowledgement takes lately; zero: nothing is known
	outage

	waited time.Duration // how long a Present peer has acknowledged nothing
	since  time.Duration // up to when that is counted

	got       uint64    // the number up to which everything has been delivered
	held      []message // came before one that is missing, by number
	heldBytes int
	ackAt     time.Duration // when to acknowledge at the latest
	owed      int           // deliveries that have not been acknowledged
	byAddress bool          // the acknowledgement is to go to the address alone
}

// outage is what is repeated while nothing is acknowledged.
type outage struct {
	recovery uint64 // the last number that is to be repeated
	resent   uint64 // the last one that was
	batch    int
	detours  bool          // the last repetition took the address alone
	hurried  time.Duration // when the first message was last repeated because later ones had come
}

// message is one message on its way. Body is the courier's own copy.
type message struct {
	seq    uint64
	kind   wire.Kind
	body   []byte
	posted time.Duration
}

func (l *link) last() uint64 { return l.base + uint64(len(l.sent)) - 1 }

// push numbers a message and sends it.
func (m *Machine) push(l *link, kind wire.Kind, body []byte) error {
	if bound := m.bound(l, len(body)); bound != "" {
		m.stats.Full++
		l.spent = max(m.now, 1)
		err := &FullError{Peer: l.id, Kind: kind, Messages: len(l.sent), Bytes: l.bytes, Bound: bound}
		if !l.full {
			l.full = true
			m.out.Full = append(m.out.Full, err)
		}
		return err
	}
	if len(l.sent) == 0 {
		l.wait, l.tries, l.waited, l.since = m.pause(l), 0, 0, m.now
		m.plan(&l.at, m.after(l.wait))
	}
	l.sent = append(l.sent, message{seq: l.last() + 1, kind: kind, body: slices.Clone(body), posted: m.now})
	l.bytes += len(body)
	m.bytes += len(body)
	m.open++
	m.stats.Posted++
	m.transmit(l, l.last(), false)
	return nil
}

// bound returns the bound that one more message would break, "" when there is room.
func (m *Machine) bound(l *link, n int) string {
	switch {
	case len(l.sent) >= m.cfg.Messages:
		return fmt.Sprintf("%d messages", m.cfg.Messages)
	case len(l.sent) > 0 && l.bytes+n > m.cfg.Bytes:
		return fmt.Sprintf("%d bytes", m.cfg.Bytes)
	case m.bytes+n > m.cfg.TotalBytes:
		return fmt.Sprintf("%d bytes to all peers", m.cfg.TotalBytes)
	}
	return ""
}

// transmit sends one message, with the present acknowledgement.
func (m *Machine) transmit(l *link, seq uint64, detour bool) {
	s, to := &l.sent[seq-l.base], l.id
	if detour {
		to.Inc = 0
	}
	p := Segment{From: m.self.Inc, To: l.id.Inc, Seq: seq, Ack: l.got, Detour: detour, Kind: s.kind, Body: s.body}
	m.send(to, wire.KindSegment, AppendSegment(m.arena.Begin(), &p))
	if !l.byAddress {
		l.ackAt, l.owed = 0, 0
	}
}

// resend repeats what is outstanding because nothing was acknowledged for a while: the first few of it, the rest as
// acknowledgements come. From the third time on every second repetition goes to the address alone, which is another
// connection: one that stands still without breaking holds nothing up for ever.
func (m *Machine) resend(l *link) {
	if len(l.sent) == 0 {
		l.at = 0
		return
	}
	l.tries++
	l.wait = min(max(2*l.wait, m.pause(l)), m.cfg.ResendMax)
	l.at = m.after(l.wait)
	l.detours = l.tries >= 3 && l.tries%2 == 1
	l.batch, l.recovery, l.resent = firstBatch, l.last(), l.base-1
	m.repeat(l)
}

// pause returns how long nothing may be acknowledged before the first repetition. On a slow path an acknowledgement
// takes longer, and what was repeated for that would make it slower still.
func (m *Machine) pause(l *link) time.Duration {
	return min(max(m.cfg.ResendAfter, 2*l.trip), m.cfg.ResendMax)
}

// timed takes note of how long the acknowledgement of a message took that was sent once. Longer ones count at once.
func (l *link) timed(took time.Duration) { l.trip = max(took, l.trip-(l.trip-took)/4) }

// repeat sends the next batch of what is to be repeated.
func (m *Machine) repeat(l *link) {
	n, bytes := 0, 0
	most := min(l.batch*repeatBytes, batchBytes)
	for seq := max(l.resent+1, l.base); seq <= min(l.recovery, l.last()) && n < l.batch; seq++ {
		if bytes += len(l.sent[seq-l.base].body); n > 0 && bytes > most {
			break
		}
		m.transmit(l, seq, l.detours)
		m.stats.Resent++
		l.resent = seq
		n++
	}
}

// acknowledged takes the peer's word that it has been delivered everything up to ack, which is at most what was sent.
func (m *Machine) acknowledged(l *link, ack uint64) (progress bool) {
	if ack < l.base {
		return false
	}
	if m.long(l) {
		m.mended = m.now
	}
	n := int(ack - l.base + 1)
	if ack > l.resent {
		l.timed(m.now - l.sent[n-1].posted)
		l.recovery = min(l.recovery, ack) // nothing is lost: what was sent once has arrived
	}
	m.open -= n
	for i := range l.sent[:n] {
		l.bytes -= len(l.sent[i].body)
		m.bytes -= len(l.sent[i].body)
		l.sent[i] = message{}
	}
	l.sent, l.base = l.sent[n:], ack+1
	l.tries, l.waited, l.since, l.wait = 0, 0, m.now, m.pause(l)
	if l.full && 2*len(l.sent) <= m.cfg.Messages && 2*l.bytes <= m.cfg.Bytes {
		l.full = false
	}
	if len(l.sent) == 0 {
		l.sent, l.at, l.detours = nil, 0, false
		return true
	}
	m.plan(&l.at, m.after(l.wait))
	if l.base <= l.recovery {
		l.batch = min(2*l.batch, maxBatch)
		m.repeat(l)
	}
	return true
}

// clear forgets what is outstanding.
func (m *Machine) clear(l *link) {
	m.bytes -= l.bytes
	m.open -= len(l.sent)
	l.base += uint64(len(l.sent))
	l.sent, l.bytes, l.at, l.full = nil, 0, 0, false
}

// close ends the stream to a peer for ever: what is outstanding will not be sent.
func (m *Machine) close(l *link) {
	m.stats.Dropped += uint64(len(l.sent))
	for i := range l.sent {
		if s := &l.sent[i]; Notice(s.kind) {
			m.out.Closed = append(m.out.Closed, peer.Mail{To: l.id, Kind: s.kind, Body: s.body})
		}
	}
	m.clear(l)
	l.closed = true
}

// count adds to a peer's silence the time since it was last counted. A pause of this node itself counts for no more
// than its own repetitions are apart.
func (m *Machine) count(l *link) {
	if l.standing == Present && len(l.sent) > 0 {
		l.waited += min(m.now-l.since, 2*m.cfg.ResendMax)
	}
	l.since = m.now
}

// long reports whether a peer has been silent for more than half of what it may be.
func (m *Machine) long(l *link) bool {
	return m.roster.GiveUpAfter > 0 && l.standing == Present && len(l.sent) > 0 && 2*l.waited >= m.roster.GiveUpAfter
}

// judge gives a peer up that has been silent for too long. While others that were silent as well are just being heard
// again it waits: what kept them all silent has ended. If giving up comes to nothing, it is judged again after half as
// long; until then it counts among the silent when another one is judged.
func (m *Machine) judge(l *link) {
	limit := m.roster.GiveUpAfter
	if !m.long(l) || l.waited < limit || l.tries < fewestTries || m.mended != 0 && m.now-m.mended < 3*m.cfg.ResendMax {
		return
	}
	alike := 0
	for _, o := range m.links {
		if o != l && m.long(o) {
			alike++
		}
	}
	first := &l.sent[0]
	m.out.GaveUp = append(m.out.GaveUp, GaveUp{ID: l.id, Alike: alike, Reason: fmt.Sprintf(
		"%d control messages not acknowledged while it was reachable for %v, the first a %s sent %v ago and %d times since",
		len(l.sent), l.waited.Round(time.Second), first.kind, (m.now - first.posted).Round(time.Second), l.tries)})
	m.stats.GaveUp++
	l.waited = limit / 2
}
