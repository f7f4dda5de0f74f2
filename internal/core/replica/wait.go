// Waits: updates that enough members have to hold, and reads of enough members.

package replica

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// wait is one of them.
type wait struct {
	nonce   uint64
	e       *entry
	level   Level
	reads   bool
	need    held             // of an update: what members have to hold
	acked   peer.Set         // of an update: which do
	said    map[peer.ID]held // of a read: what members held when they were asked
	againAt time.Duration
}

// read begins to ask members.
func (m *Machine) read(c ReadCommand) error {
	e := m.keys[c.Name]
	switch {
	case e == nil:
		return ErrNotOpen
	case len(m.waits) >= MaxWaiting:
		return ErrWaiting
	}
	m.await(&wait{nonce: c.Nonce, e: e, level: c.Level, reads: true, said: map[peer.ID]held{}})
	return nil
}

func (m *Machine) await(w *wait) {
	m.waits, w.e.waits = append(m.waits, w), append(w.e.waits, w)
	if m.settle(w.e); slices.Contains(w.e.waits, w) {
		m.ask(w)
	}
}

// ask sends an update to all members that have not said that they hold it, or asks all that have not answered a read.
func (m *Machine) ask(w *wait) {
	w.againAt = m.now + again
	for _, id := range m.live {
		switch _, said := w.said[id]; {
		case w.reads && !said:
			m.sendHeld(id, &heldFrame{nonce: w.nonce, mode: wantMissing | wantTold, list: []keyHeld{{w.e.name, w.e.held}}})
		case !w.reads && !w.acked.Has(id):
			// What it holds is not known: all but the latest update is taken to be there, and a gap answers otherwise.
			theirs := slices.Clone(w.e.held)
			if i, ok := theirs.find(m.self); ok {
				theirs[i].n--
			}
			o := offer{m: m, to: id}
			o.add(w.e, theirs, w.nonce)
			o.flush()
		}
	}
}

// heard notes for each wait what a member holds of a key.
func (m *Machine) heard(from peer.ID, f *heldFrame, e *entry, theirs held) {
	for _, w := range e.waits {
		switch {
		case w.reads && f.mode&isAnswer != 0 && f.nonce == w.nonce:
			w.said[from] = theirs
		case !w.reads && theirs.covers(w.need):
			w.acked.Add(from)
		}
	}
}

// waitsFor returns the nonce under which a member that answered is to answer again when it has got what it lacks; zero
// when nobody waits for that.
func (m *Machine) waitsFor(f *heldFrame, e *entry) uint64 {
	if f.mode&isAnswer != 0 && slices.ContainsFunc(e.waits, func(w *wait) bool {
		return w.nonce == f.nonce && !w.reads
	}) {
		return f.nonce
	}
	return 0
}

// settle ends the waits for a key that are over.
func (m *Machine) settle(e *entry) {
	over := func(w *wait) bool { return len(m.members) > 0 && len(m.have(w)) >= w.level.Of(len(m.members)) }
	if slices.ContainsFunc(e.waits, over) {
		for _, w := range e.waits {
			if over(w) {
				m.effects.Done = append(m.effects.Done, w.nonce)
			}
		}
		m.drop(func(w *wait) bool { return w.e == e && over(w) })
	}
}

// drop forgets waits.
func (m *Machine) drop(which func(*wait) bool) {
	for _, w := range m.waits {
		if which(w) {
			w.e.waits = slices.DeleteFunc(slices.Clone(w.e.waits), func(x *wait) bool { return x == w })
		}
	}
	m.waits = slices.DeleteFunc(m.waits, which)
}

// have returns the members that hold an update, or have answered a read, this node among them.
func (m *Machine) have(w *wait) (list peer.Set) {
	for _, id := range m.members {
		said, ok := w.said[id]
		if id == m.self || w.acked.Has(id) || ok && w.e.held.covers(said) {
			list = append(list, id)
		}
	}
	return list
}

// Missing says of what waits under a nonce which members have not answered, in order, and how many are wanted; nothing
// waits under it when it is over.
func (m *Machine) Missing(nonce uint64) (missing []peer.ID, need, have int) {
	for _, w := range m.waits {
		if w.nonce == nonce {
			there := m.have(w)
			for _, id := range m.members {
				if !there.Has(id) {
					missing = append(missing, id)
				}
			}
			return missing, w.level.Of(len(m.members)), len(there)
		}
	}
	return nil, 0, 0
}
