// Broker: reads and writes that this node was asked for (DYN-3, DYN-4).

package quorum

import (
	"slices"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// begins checks a request and returns it.
func (m *Machine) begins(number uint64, key []byte, size int) (*request, error) {
	group, _ := place(key)
	to := m.groups[group]
	switch {
	case len(key) == 0 || len(key) > m.cfg.MaxKey || size > m.cfg.MaxValue:
		return nil, ErrTooLarge
	case len(m.requests) >= m.cfg.MaxRequests:
		return nil, ErrBusy
	case len(to) < m.cfg.N && !m.cfg.Short, len(to) < m.cfg.R, len(to) < m.cfg.W, m.old:
		return nil, ErrMembers
	}
	r := &request{number: number, key: key, to: to, deadline: m.now + m.cfg.Timeout}
	return r, nil
}

// get begins a read.
func (m *Machine) get(c GetCommand) error {
	r, err := m.begins(c.Number, c.Key, 0)
	if err == nil {
		m.asks(r)
	}
	return err
}

// asks sends a read to all replicas of its key.
func (m *Machine) asks(r *request) {
	m.requests = append(m.requests, r)
	for _, id := range r.to {
		m.send(id, &message{kind: read, number: m.tag(r), key: r.key})
	}
}

// put begins a write. Register reads before it writes.
func (m *Machine) put(c PutCommand) error {
	r, err := m.begins(c.Number, c.Key, len(c.Data))
	if err != nil {
		return err
	}
	r.wish = &c
	if m.cfg.Mode == Register {
		m.asks(r)
		return nil
	}
	past := c.Context
	if len(past) >= MaxClock { // values of members that are gone come back as siblings; nothing is lost
		past = past.Prune(func(id peer.ID) bool { return !m.members.Has(id) })
	}
	if past.Of(m.ident.id) > m.seq || len(past) >= MaxClock {
		return ErrContext
	}
	v, err := m.stamp(&c)
	if err != nil {
		return err
	}
	v.Past = past
	v.seal()
	m.requests = append(m.requests, r)
	m.spread(r, Entry{v})
	return nil
}

// spread sends an entry to all replicas of its key, but those that have it.
func (m *Machine) spread(r *request, e Entry) {
	r.phase, r.entry = writes, e
	for _, id := range r.to {
		if !slices.Contains(r.acked, id) {
			m.send(id, &message{kind: write, number: m.tag(r), key: r.key, entry: e})
		}
	}
	m.judge(r)
}

// held takes an answer to a read.
func (m *Machine) held(from peer.ID, x *message) {
	r := m.find(from, x.number)
	if r == nil || string(r.key) != string(x.key) || slices.Contains(r.answered, from) {
		return
	}
	if r.phase != reads && (r.wish != nil || m.cfg.Mode == Register) {
		return
	}
	r.answered, r.answers = append(r.answered, from), append(r.answers, x.entry.own())
	r.got, _ = r.got.Merge(x.entry, m.cfg.Mode)
	if !x.lacking {
		r.whole++
	}
	switch {
	case r.phase == over: // a late answer
		m.repair(r)
	case r.whole >= m.cfg.R:
		m.hasRead(r)
	}
	m.ends(r)
}

// hasRead goes on with R answers: versions are compared, replicas that lack something are repaired, the latest is
// returned.
func (m *Machine) hasRead(r *request) {
	switch {
	case r.wish != nil:
		m.writesOn(r)
	case m.cfg.Mode == Register && len(r.got) > 0:
		for i, id := range r.answered {
			if len(r.got.lacks(r.answers[i], Register)) == 0 {
				r.acked = append(r.acked, id)
			}
		}
		m.spread(r, r.got)
	default:
		m.repair(r)
		m.tell(r, nil)
	}
}

// writesOn writes a register one above what was read.
func (m *Machine) writesOn(r *request) {
	v, err := m.stamp(r.wish)
	if err != nil {
		m.tell(r, err)
		return
	}
	v.Counter = 1
	if len(r.got) > 0 {
		v.Counter += r.got[0].Counter
	}
	v.seal()
	m.spread(r, Entry{v})
}

// repair sends each replica that has answered what it lacks of what was read (DYN-4).
func (m *Machine) repair(r *request) {
	for i, id := range r.answered {
		if missing := r.got.lacks(r.answers[i], m.cfg.Mode); len(missing) > 0 {
			m.stats.Repairs++
			r.answers[i] = r.got
			m.send(id, &message{kind: write, key: r.key, entry: missing})
		}
	}
}

// wrote takes an acknowledgement.
func (m *Machine) wrote(from peer.ID, x *message) {
	if x.number&hintBit != 0 {
		m.delivered(from, x)
		return
	}
	r := m.find(from, x.number)
	if r == nil || string(r.key) != string(x.key) || r.phase == reads || slices.Contains(r.acked, from) {
		return
	}
	switch {
	case x.reason == done:
		r.acked = append(r.acked, from)
	case !slices.Contains(r.refused, from):
		r.refused = append(r.refused, from)
	}
	m.judge(r)
}

// judge ends a write that W replicas have, or that W can never have.
func (m *Machine) judge(r *request) {
	switch {
	case r.phase != writes:
	case len(r.acked) >= m.cfg.W:
		m.tell(r, nil)
	case len(r.refused) > len(r.to)-m.cfg.W:
		m.tell(r, ErrSiblings)
	}
	m.ends(r)
}

// tell gives a request its outcome.
func (m *Machine) tell(r *request, err error) {
	o := Outcome{Number: r.number, Err: err}
	if err == nil && r.wish == nil {
		e := r.got
		if r.phase == writes {
			e = r.entry // of a register: what W replicas have
		}
		o.Entry, o.Context = e.Live(), e.Context()
		if len(o.Entry) > 1 {
			m.stats.Conflicted++
		}
	} else if err == nil {
		o.Context = r.entry.Context()
	}
	r.phase = over
	m.effects.Done = append(m.effects.Done, o)
}

// expire ends requests that have expired. Replicas that did not acknowledge a write get it later, by a hint.
func (m *Machine) expire() {
	late := func(r *request) bool { return r.deadline <= m.now }
	for _, r := range m.requests {
		if !late(r) {
			continue
		}
		if len(r.entry) > 0 && r.wish != nil && r.phase != reads {
			for _, id := range r.to {
				if id != m.ident.id && !slices.Contains(r.acked, id) {
					m.hint(id, r.key, r.entry)
				}
			}
		}
		if r.phase != over {
			m.tell(r, ErrTimeout)
		}
	}
	m.requests = slices.DeleteFunc(m.requests, late)
}

// Resolve returns what a caller's function makes of siblings, or the error of that function; the siblings stay then.
func Resolve(o Outcome, f func(values [][]byte) ([]byte, error)) (data []byte, context gossip.Clock, err error) {
	values := make([][]byte, len(o.Entry))
	for i := range o.Entry {
		values[i] = o.Entry[i].Data
	}
	data, err = f(values)
	return data, o.Context, err
}
