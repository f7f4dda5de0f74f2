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
	case !m.room(0):
		return nil, ErrBusy
	case len(to) < m.cfg.N && !m.cfg.Short, len(to) < m.cfg.R, len(to) < m.cfg.W, m.old:
		return nil, ErrMembers
	}
	r := &request{number: number, key: key, to: to, deadline: m.now + m.cfg.Timeout}
	return r, nil
}

// room reports whether one more request may be under way, beside others that begin. Those that have their outcome make
// room: a replica that is silent would keep each of them until its deadline.
func (m *Machine) room(others int) bool {
	if len(m.requests)+others < m.cfg.MaxRequests {
		return true
	}
	k := slices.IndexFunc(m.requests, func(r *request) bool { return r.phase == over || len(r.to) == 0 })
	if k < 0 {
		return false
	}
	m.missed(m.requests[k])
	m.requests = slices.Delete(m.requests, k, k+1)
	return true
}

// missed keeps a write for the replicas that did not acknowledge it.
func (d *shelf) missed(r *request) {
	if len(r.entry) == 0 || r.wish == nil || r.phase == reads || r.elsewhere {
		return
	}
	for _, id := range r.to {
		if id != d.ident.id && !slices.Contains(r.acked, id) {
			d.hint(id, r.key, r.entry)
		}
	}
}

// get begins a read.
func (m *Machine) get(c GetCommand) error {
	r, err := m.begins(c.Number, c.Key, 0)
	if err == nil {
		m.asks(r)
	}
	return err
}

// look begins to ask all replicas of a key what they have.
func (m *Machine) look(c LookCommand) error {
	group, _ := place(c.Key)
	switch {
	case len(c.Key) == 0 || len(c.Key) > m.cfg.MaxKey:
		return ErrTooLarge
	case !m.room(0):
		return ErrBusy
	case len(m.groups[group]) == 0:
		return ErrMembers
	}
	m.asks(&request{number: c.Number, key: c.Key, to: m.groups[group], deadline: m.now + m.cfg.Timeout, phase: looks})
	return nil
}

// looked ends a look when all replicas that are up have answered, or it has expired.
func (m *Machine) looked(r *request) {
	up := func(id peer.ID) bool { return id == m.ident.id || m.up.Has(id) }
	waits := func(id peer.ID) bool { return up(id) && !slices.Contains(r.answered, id) }
	if len(r.to) == 0 || r.deadline > m.now && slices.ContainsFunc(r.to, waits) {
		return
	}
	o := Outcome{Number: r.number, Entry: r.got.Live()}
	for _, id := range r.to {
		l := r.look(id, up(id), m.cfg.Mode)
		for _, h := range m.hints {
			if h.to == id && string(h.key) == string(r.key) {
				l.Hints++
			}
		}
		o.Looks = append(o.Looks, l)
	}
	m.effects.Done = append(m.effects.Done, o)
	r.to, r.deadline = nil, m.now // nothing more is heard of it
}

// asks sends a read to all replicas of its key.
func (m *Machine) asks(r *request) {
	m.enter(r)
	for _, id := range r.to {
		m.send(id, &message{kind: read, number: r.tag, key: r.key})
	}
}

// put begins a write. Register reads before it writes; of siblings a replica of the key makes the change.
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
	r.value = Versioned{By: m.ident.id, Seq: gossip.MaxChanges, Past: past, Data: c.Data} // no change has that number
	if c.Delete {
		r.value.Deleted, r.value.At, r.value.Data = true, m.wall, nil
	}
	r.value.seal()
	m.enter(r)
	if !m.passOn(r) {
		m.requests = m.requests[:len(m.requests)-1]
		return ErrUnable
	}
	return nil
}

// passOn hands a write to a replica of its key that was not asked yet: this one if it holds one, else one that answers.
func (m *Machine) passOn(r *request) bool {
	first := 0
	if len(r.to) > 0 {
		first = m.rng.IntN(len(r.to))
	}
	var next peer.ID
	for k := range r.to {
		id := r.to[(first+k)%len(r.to)]
		if usable := id == m.ident.id || m.up.Has(id); usable && !slices.Contains(r.tried, id) &&
			(next.IsZero() || id == m.ident.id) {
			next = id
		}
	}
	if next.IsZero() {
		return false
	}
	r.phase, r.passed, r.elsewhere = leads, m.now, next != m.ident.id
	r.tried = append(r.tried, next)
	m.send(next, &message{kind: lead, number: r.tag, key: r.key, entry: Entry{r.value}})
	return true
}

// led takes what became of a write at the replica that was to make it.
func (m *Machine) led(from peer.ID, x *message) {
	r := m.find(from, x.number)
	if r == nil || r.phase != leads || !slices.Contains(r.tried, from) || slices.Contains(r.refused, from) {
		return
	}
	switch x.reason {
	case done:
		if len(x.sums) != 1 {
			m.stats.Refused++
			return
		}
		r.value.By, r.value.Seq = from, x.sums[0]
		r.value.seal()
		if r.entry = x.entry.own(); len(r.entry) == 0 { // what was wished for, and nothing else
			r.entry = Entry{r.value}
		}
		m.tell(r, nil)
	case siblings:
		m.tell(r, ErrSiblings)
	case unknown:
		m.tell(r, ErrContext)
	case late:
		m.tell(r, ErrTimeout)
	default:
		if r.refused = append(r.refused, from); !m.passOn(r) && len(r.refused) == len(r.tried) {
			m.tell(r, ErrUnable)
		}
	}
	m.ends(r)
}

// spread sends an entry to all replicas of its key, but those that have it.
func (m *Machine) spread(r *request, e Entry) {
	r.phase, r.entry = writes, e
	for _, id := range r.to {
		if !slices.Contains(r.acked, id) {
			m.send(id, &message{kind: write, number: r.tag, key: r.key, entry: e})
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
	if r.phase == looks {
		r.noteLook(from, x, m.cfg.Mode)
		m.looked(r)
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
			if !r.got.lacks(r.answers[i], Register) {
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
	r.value = v
	m.spread(r, Entry{v})
}

// repair sends each replica that has answered and lacks something all that was read (DYN-4).
func (m *Machine) repair(r *request) {
	for i, id := range r.answered {
		if r.got.lacks(r.answers[i], m.cfg.Mode) {
			m.stats.Repairs++
			r.answers[i] = r.got
			m.send(id, &message{kind: write, key: r.key, entry: r.got})
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
	if r == nil || string(r.key) != string(x.key) || r.phase == reads || r.phase == leads ||
		slices.Contains(r.acked, from) {
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
	if !r.asker.IsZero() {
		m.answerLead(r, err)
		return
	}
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
		own := r.value
		o.Entry, o.Context, o.Own = r.entry.Live(), r.entry.Context(), &own
	}
	if err == ErrTimeout {
		o.Have, o.Need = r.has(&m.cfg)
	}
	r.phase = over
	m.effects.Done = append(m.effects.Done, o)
}

// answerLead tells another node what became of the change that this replica has made for it.
func (m *Machine) answerLead(r *request, err error) {
	x := &message{kind: led, number: r.asked, key: r.key, reason: done, sums: []uint64{r.value.Seq}}
	switch err {
	case nil:
		if len(r.entry) > 1 || r.entry[0].Seq != r.value.Seq || r.entry[0].By != r.value.By {
			x.entry = r.entry
		}
	case ErrSiblings:
		x.reason = siblings
	default:
		x.reason = late
	}
	r.phase = over
	m.send(r.asker, x)
}

// expire ends requests that have expired. Replicas that did not acknowledge a write get it later, by a hint.
func (m *Machine) expire() {
	late := func(r *request) bool { return r.deadline <= m.now }
	for _, r := range m.requests {
		if !late(r) {
			if at, ok := r.asksAgainAt(m.cfg.Timeout); ok && at <= m.now && !m.passOn(r) {
				r.passed = r.deadline // nobody is left to ask
			}
			continue
		}
		m.missed(r)
		switch r.phase {
		case over:
		case looks:
			m.looked(r)
		default:
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
