// Rounds: how two nodes find out what either lacks, and send it.

package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// anybody returns a random member that is reachable.
func (m *Machine) anybody() (peer.ID, bool) {
	if len(m.live) == 0 {
		return peer.ID{}, false
	}
	return m.live[m.rng.IntN(len(m.live))], true
}

// root sums up everything that is held.
func (m *Machine) root() (sum uint64) {
	for i, s := range m.sums {
		sum = sum*31 + s + uint64(i)
	}
	return sum
}

// round tells one member a digest of everything: at rest nothing else is sent.
func (m *Machine) round() {
	m.roundAt = m.now + Round
	to := m.next
	if m.next = (peer.ID{}); !slices.Contains(m.live, to) {
		var ok bool
		if to, ok = m.anybody(); !ok {
			return
		}
	}
	m.stats.Rounds++
	m.send(to, wire.KindReplicaDigest, wire.AppendU64(nil, m.root()))
}

// compare says what is held of keys in buckets that differ, from a random one on.
func (m *Machine) compare(with peer.ID, theirs *[buckets]uint64) {
	f := heldFrame{mode: wantMissing | wantCompare}
	size, first := 0, m.rng.IntN(buckets)
	for i := range buckets {
		at := (first + i) % buckets
		if theirs[at] == m.sums[at] {
			continue
		}
		for _, e := range m.table[at] {
			f.list = append(f.list, keyHeld{e.name, e.held})
			if size += sizeOf(e); size > maxFrame {
				m.soon(with)
				m.sendHeld(with, &f)
				return
			}
		}
	}
	if len(f.list) > 0 {
		m.sendHeld(with, &f)
	}
}

// sizeOf is how many bytes an entry of a held frame takes at most.
func sizeOf(e *entry) int { return len(e.name) + 4 + len(e.held)*(minMark+24) }

// add says what is held of one more key, of which size bytes are said already. It reports whether there was room: the
// first one is always said.
func (f *heldFrame) add(e *entry, size *int) bool {
	more := sizeOf(e)
	if *size > 0 && *size+more > maxFrame {
		return false
	}
	*size += more
	f.list = append(f.list, keyHeld{e.name, e.held})
	return true
}

func (m *Machine) sendHeld(to peer.ID, f *heldFrame) {
	m.send(to, wire.KindReplicaHeld, appendHeldFrame(nil, f))
}

// soon makes the next round come before its time, with a member that could not be sent everything.
func (m *Machine) soon(with peer.ID) { m.next, m.roundAt = with, min(m.roundAt, m.now+more) }

// spread asks one member what it holds of keys that changed lately.
func (m *Machine) spread() {
	m.rumourAt = m.now + rumour
	to, ok := m.anybody()
	if !ok {
		return
	}
	f := heldFrame{mode: wantMissing | wantCompare}
	size, n := 0, 0
	for _, e := range m.hot {
		if size += sizeOf(e); size > maxFrame && n > 0 {
			break
		}
		f.list = append(f.list, keyHeld{e.name, e.held})
		e.hot--
		n++
	}
	// Those that were sent come last the next time.
	m.hot = slices.DeleteFunc(append(slices.Clone(m.hot[n:]), m.hot[:n]...), func(e *entry) bool { return e.hot == 0 })
	m.sendHeld(to, &f)
}

// told takes a report of what another member holds: sends what it lacks, and says what this node lacks, or holds.
func (m *Machine) told(from peer.ID, f *heldFrame) {
	answer := heldFrame{mode: wantMissing}
	if f.mode&isAnswer == 0 {
		answer.nonce, answer.mode = f.nonce, wantMissing|isAnswer
	}
	o, said := offer{m: m, to: from}, 0
	for _, k := range f.list {
		e := m.keys[k.name]
		if e == nil {
			continue
		}
		m.heard(from, f, e, k.held)
		m.settle(e)
		if f.mode&wantMissing != 0 && !k.held.covers(e.held) {
			o.add(e, k.held, m.waitsFor(f, e))
		}
		tells := f.mode&wantTold != 0 || f.mode&wantCompare != 0 && !e.held.covers(k.held)
		if tells && !answer.add(e, &said) {
			m.soon(from) // what is held here may be far more than what the other one holds
		}
	}
	o.flush()
	if len(answer.list) > 0 {
		m.sendHeld(from, &answer)
	}
}

// offer gathers what one member is sent in one go: at most maxFrame bytes, and one state in pieces.
type offer struct {
	m    *Machine
	to   peer.ID
	body []byte // of a deltas frame
	wait uint64 // its nonce
	sent int
}

// add sends somebody what it lacks of a key, as deltas where they are still there.
func (o *offer) add(e *entry, theirs held, nonce uint64) {
	if o.sent > maxFrame {
		o.m.soon(o.to)
		return
	}
	list, size, ok := e.lacking(theirs)
	if !ok {
		o.m.sendState(o, e, nonce)
		return
	}
	if len(o.body)+size > maxFrame || o.wait != nonce {
		o.flush()
	}
	if o.body == nil {
		o.body, o.wait = wire.AppendU64(nil, nonce), nonce
	}
	o.body = appendKeyDeltas(o.body, &keyDeltas{e.name, e.kind.Name, list})
	o.sent += size
}

func (o *offer) flush() {
	if o.body != nil {
		o.m.send(o.to, wire.KindReplicaDeltas, o.body)
		o.body = nil
	}
}

// deltas merges what another member sent. Behind a gap nothing is taken, and what is missing is asked for.
func (m *Machine) deltas(from peer.ID, nonce uint64, list []keyDeltas) error {
	answer := heldFrame{nonce: nonce, mode: wantMissing | isAnswer}
	said := 0
	var bad error
	for i := range list {
		k := &list[i]
		e := m.keys[k.name]
		if e == nil {
			continue
		}
		if e.kind.Name != k.kind {
			m.stats.Refused++
			continue
		}
		gap, err := m.mergeDeltas(e, k.list)
		if err != nil {
			bad = err
		}
		if (gap || nonce != 0) && !answer.add(e, &said) {
			m.soon(from)
		}
	}
	if len(answer.list) > 0 {
		m.sendHeld(from, &answer)
	}
	return bad
}

func (m *Machine) mergeDeltas(e *entry, list []delta) (gap bool, err error) {
	news := false
	defer func() { // also of what came before one that is refused
		if news {
			m.changed(e)
			m.settle(e)
		}
	}()
	for i := range list {
		d := &list[i]
		at := e.held.of(d.by)
		if d.upTo <= at {
			continue
		}
		if d.after > at {
			m.stats.Gaps++
			gap = true
			continue
		}
		v, err := e.kind.Parse(d.body)
		if err == nil {
			err = m.admits(e, d.by, len(d.body))
		}
		if err != nil {
			m.stats.Refused++
			return gap, fmt.Errorf("replicated: delta of %q: %w", e.name, err)
		}
		m.put(e, e.kind.Merge(e.value, v), e.size+len(d.body))
		e.held.raise(d.by, d.upTo)
		m.kept.add(e, delta{d.by, d.after, d.upTo, slices.Clone(d.body)})
		news = true
	}
	return gap, nil
}

// admits refuses what comes from others and would be far over the bounds: each node holds its own changes to them, and
// changes made apart may come to more together.
func (m *Machine) admits(e *entry, by peer.ID, grown int) error {
	switch {
	case by == m.self:
		return errMine
	case len(e.held) >= maxMarks && e.held.of(by) == 0:
		return ErrWriters
	case e.size+grown > maxState || m.bytes+grown > 2*MaxTotal:
		// The size is an estimate that only grows: look how much there is.
		text, err := e.kind.Append(nil, e.value)
		if m.put(e, e.value, len(text)); err != nil || e.size+grown > maxState || m.bytes+grown > 2*MaxTotal {
			return ErrTooLarge
		}
	}
	return nil
}

var errMine = errors.New("an update of this incarnation that it never made")
