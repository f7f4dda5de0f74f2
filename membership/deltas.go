// Deltas in use: which versions this node still holds, when it says a difference instead of a state, and what it does
// with one (GOS-4).

package membership

import (
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// deltaBody says what turns the version base into the version digest, and which members have seen that.
type deltaBody struct {
	envelope
	base, digest gossip.Digest
	seen         gossip.Seen
	changes      []byte
}

func appendDeltaBody(b []byte, d deltaBody) []byte {
	b = wire.AppendU64(wire.AppendU64(appendEnvelope(b, d.envelope), uint64(d.base)), uint64(d.digest))
	b = gossip.AppendSeen(wire.AppendUvarint(b, uint64(d.seen.Len())), d.seen)
	return append(b, d.changes...)
}

// readDeltaBody leaves the changes as a view into body.
func readDeltaBody(body []byte) (deltaBody, error) {
	r := wire.NewReader(wire.KindDelta, body)
	d := deltaBody{envelope: readEnvelope(&r), base: gossip.Digest(r.U64()), digest: gossip.Digest(r.U64())}
	if n := r.Count(0, cluster.MaxMembers); r.Err() == nil {
		d.seen = gossip.ReadSeen(&r, n)
	}
	check(&r, d.base != 0 && d.digest != 0 && d.base != d.digest, true)
	d.changes = r.Rest()
	return d, r.Done()
}

// sendGossip sends what this node knows to a node that holds base: the difference, or the whole state when base is nil
// or that is shorter.
func (c *core) sendGossip(to peer.ID, base *members.Version) {
	if base != nil && base.Digest != c.st.Digest {
		if changes := c.st.DeltaFrom(base); changes != nil {
			c.stats.DeltasSent++
			d := deltaBody{c.toward(to), base.Digest, c.st.Digest, c.st.Seen, changes}
			c.post(to, wire.KindDelta, func(b []byte) []byte { return appendDeltaBody(b, d) })
			return
		}
	}
	c.stats.StatesSent++
	c.sendState(to, wire.KindGossip, c.st.Cluster)
}

// onDelta applies changes to exactly the version that they are for. Without it, or when they do not lead where they
// say, the state is asked for.
func (x *exchange) onDelta(arrived time.Duration, from peer.ID, body []byte) error {
	d, err := readDeltaBody(body)
	if err != nil || !x.hears(arrived, from, d.envelope, d.digest) {
		return err
	}
	v := x.held(d.digest)
	if v == nil {
		base := x.held(d.base)
		if base == nil {
			x.stats.DeltasWithoutBase++
			x.sendWant(from, x.st.Digest)
			return nil
		}
		if v, err = x.store.Apply(base, d.digest, d.changes); err != nil {
			return err
		}
		if v == nil {
			x.stats.DeltasWrong++
			x.sendWant(from, 0) // nobody holds that: the whole state, not another delta
			return nil
		}
		x.stats.DeltasApplied++
	}
	if d.seen.Len() != len(v.Members) {
		return &wire.Error{Kind: wire.KindDelta, Offset: 32, Err: wire.ErrBadValue}
	}
	if err := x.followable(wire.KindDelta, v); err != nil {
		return err
	}
	x.take(from, v.SeenBy(d.seen))
	return nil
}
