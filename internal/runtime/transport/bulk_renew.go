// Renewal of bulk connections: one that streams on is made anew under newer credentials between two large messages.

package transport

import (
	"net"
	"time"

	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/wire"
)

// bulkRenewal says when a dialled bulk connection is to be made anew. It belongs to the goroutine that writes.
type bulkRenewal struct {
	t      *Transport
	secure *trust.Conn // nil without TLS
	since  time.Time   // when the rest began; zero: there is none
	next   net.Conn    // that was let in to follow this one; nil: none
}

// follows dials the connection that follows one of which nothing is on its way, and reports whether this one is to end
// now: a peer that is no longer believed is dialled when it has ended. When the peer does not let it in the renewal is
// put off.
func (r *bulkRenewal) follows(b *Bulk) bool {
	creds := r.t.trust.State()
	if !r.secure.Believed(creds, r.t.trust.Now()) {
		return true
	}
	b.mu.Lock()
	b.generation++
	generation := b.generation
	b.mu.Unlock()
	nc, _, err := r.t.open(b.ctx, opening{to: b.to, lane: wire.LaneBulk, generation: generation, speak: r.t.cfg.versions})
	if err == nil {
		r.next = nc
		return true
	}
	r.since = time.Time{}
	r.secure.PutOff(time.Now().Add(renewAgain))
	r.secure.SetAnew(false)
	if b.ctx.Err() == nil {
		r.t.fault("connection not made anew", &r.t.count.tlsPutOff, "peer", b.to, "lane", wire.LaneBulk, "error", err)
	}
	return false
}

// rests reports whether no large message is to begin on the connection now: what has begun comes to its end, then it is
// made anew. What has begun and waits for its receiver for too long puts that off.
func (r *bulkRenewal) rests() bool {
	if r.secure == nil {
		return false
	}
	s, now := r.secure, time.Now()
	if s.Fresh(r.t.trust.State(), r.t.trust.Now()) || s.IsPutOff(now) {
		r.since = time.Time{}
		return false
	}
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) > r.t.cfg.renewWait {
		r.since = time.Time{}
		s.PutOff(now.Add(renewLater))
		s.SetAnew(false)
		return false
	}
	s.SetAnew(true)
	return true
}

// patience is how long the writer may wait for an event before it asks rests again.
func (r *bulkRenewal) patience() time.Duration {
	if r.since.IsZero() {
		return bulkIdle
	}
	return r.t.cfg.renewWait + time.Millisecond
}

// remind makes the writer look at the newest credentials.
func (b *Bulk) remind(creds *trust.State) {
	b.mu.Lock()
	older := b.secure != nil && !b.secure.Under(creds)
	b.mu.Unlock()
	if older {
		b.poke()
	}
}

// numbered returns the number of the newest connection.
func (b *Bulk) numbered() uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.generation
}
