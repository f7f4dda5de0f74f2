// Deltas in use: which versions this node still holds, when it says a difference instead of a state, and what it does
// with one (GOS-4).

package membership

import (
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// pastVersions is how many versions before the present one a node holds, for deltas from them.
const pastVersions = 8

// history holds the last versions of this node.
type history struct {
	past [pastVersions]*version // a ring
	next int
	base *version // what those who have not heard of the present change most probably hold; nil when unknown
}

// push remembers a version that gives way to another. untold says that its own push has not gone out yet.
func (h *history) push(v *version, untold bool) {
	if !untold {
		h.base = v
	}
	h.past[h.next] = v
	h.next = (h.next + 1) % pastVersions
}

func (h *history) find(d gossip.Digest) *version {
	for _, v := range h.past {
		if v != nil && v.digest == d {
			return v
		}
	}
	return nil
}

// delta is the way from one other version to the one that keeps it. No bytes: it is not worth its while.
type delta struct {
	from  gossip.Digest
	bytes []byte
}

// held returns the version of that digest, if this node still has it.
func (m *Machine) held(d gossip.Digest) *version {
	if d == m.st.digest {
		return m.st.version
	}
	return m.history.find(d)
}

// deltaFrom returns the way from base to the present version, nil when the whole state is shorter or there is none. The
// last answer is kept with the version.
func (m *Machine) deltaFrom(base *version) []byte {
	v := m.st.version
	if v.delta.from == base.digest {
		return v.delta.bytes
	}
	v.delta = delta{from: base.digest}
	b, ok := appendDelta(nil, base, v)
	if ok && len(b) < 64+8*len(v.members) { // no packed form is shorter than its incarnations
		v.delta.bytes = b
	}
	return v.delta.bytes
}

// deltaBody says what turns the version base into the version digest, and who has seen that.
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
	if n := r.Count(0, MaxMembers); r.Err() == nil {
		d.seen = gossip.ReadSeen(&r, n)
	}
	check(&r, d.base != 0 && d.digest != 0 && d.base != d.digest, true)
	d.changes = r.Rest()
	return d, r.Done()
}

// sendGossip sends what this node knows to one who holds base: the difference, or the whole state when base is nil or
// that is shorter.
func (m *Machine) sendGossip(to peer.ID, base *version) {
	if base != nil && base.digest != m.st.digest {
		if changes := m.deltaFrom(base); changes != nil {
			m.stats.DeltasSent++
			d := deltaBody{m.toward(to), base.digest, m.st.digest, m.st.seen, changes}
			m.post(to, wire.KindDelta, func(b []byte) []byte { return appendDeltaBody(b, d) })
			return
		}
	}
	m.stats.StatesSent++
	m.sendState(to, wire.KindGossip, m.st.cluster)
}

// onDelta applies changes to exactly the version that they are for. Without it, or when they do not lead where they
// say, the state is asked for.
func (m *Machine) onDelta(arrived time.Duration, from peer.ID, body []byte) error {
	d, err := readDeltaBody(body)
	if err != nil || !m.hears(arrived, from, d.envelope, d.digest) {
		return err
	}
	v := m.held(d.digest)
	if v == nil {
		base := m.held(d.base)
		if base == nil {
			m.stats.DeltasWithoutBase++
			m.sendWant(from, m.st.digest)
			return nil
		}
		if v, err = m.apply(base, &d); err != nil {
			return err
		}
		if v == nil {
			m.stats.DeltasWrong++
			m.sendWant(from, 0) // nobody holds that: the whole state, not another delta
			return nil
		}
		m.stats.DeltasApplied++
	}
	if d.seen.Len() != len(v.members) {
		return &wire.Error{Kind: wire.KindDelta, Offset: 32, Err: wire.ErrBadValue}
	}
	if err := m.followable(wire.KindDelta, v); err != nil {
		return err
	}
	m.take(from, &state{version: v, seen: d.seen})
	return nil
}

// apply returns what d makes of base, nil when that is not what it says.
func (m *Machine) apply(base *version, d *deltaBody) (*version, error) {
	pool := m.cfg.Intern
	if v := pool.named(d.digest); v != nil {
		return v, nil
	}
	v, err := m.work.readDelta(wire.KindDelta, base, d.changes)
	if err != nil || v.digest != d.digest || !v.sound() {
		return nil, err
	}
	pool.verify(v)
	return pool.one(v), nil
}

// sound reports whether a version that was put together holds what a reader of the whole would have checked.
func (v *version) sound() bool {
	t, next := 0, 0
	for i := range v.members {
		m := &v.members[i]
		must := m.Status.numbered()
		if m.UpNumber > v.highestUp || must > 0 && m.UpNumber == 0 || must < 0 && m.UpNumber != 0 {
			return false
		}
		for t < len(v.tombs) && v.tombs[t].id.Less(m.ID) {
			t++
		}
		if t < len(v.tombs) && v.tombs[t].id == m.ID {
			return false
		}
	}
	for i := range v.clock {
		if next = v.indexFrom(next, v.clock[i].ID); next < 0 {
			return false
		}
	}
	for i := range v.reach {
		if !v.has(v.reach[i].observer) {
			return false
		}
		for _, c := range v.reach[i].records {
			if !v.has(c.subject) {
				return false
			}
		}
	}
	return true
}
