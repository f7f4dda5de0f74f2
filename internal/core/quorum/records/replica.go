// Replica: what owners ask of this disk, all of a step in one commit.

package records

// committed makes what is on disk known, and reads it.
func (m *replica) committed(s *step) {
	for sh, h := range s.heads { // a map in, a map out: no order
		if h.fresh {
			m.shards, h.fresh = m.shards+1, false
		}
		m.heads[sh] = h
	}
	for _, a := range s.answers {
		m.reply(a.to, a.x)
	}
	for i := range s.reads {
		l := &s.reads[i]
		if l.x.kind == read {
			m.reads(l)
		} else {
			m.pulled(l)
		}
	}
}

// handle does what one letter asks.
func (m *replica) handle(s *step, l *letter) {
	switch l.x.kind {
	case claim:
		m.claimed(s, l)
	case write:
		m.written(s, l)
	case read, pull:
		s.reads = append(s.reads, *l)
	case fetch:
		m.fetches(s, l)
	case part:
		m.parted(s, l)
	case clearing:
		m.clears(s, l)
	}
}

// claimed promises a ballot, unless a higher one was promised or it has been written under already.
func (m *replica) claimed(s *step, l *letter) {
	h := m.headOf(s, l.x.shard)
	switch {
	case h == nil || h.stamp.Ballot == l.x.ballot:
	case h.promise.Compare(l.x.ballot) > 0:
		s.answer(l.from, h.held(promised, l.x, no))
	case !m.room(h):
		s.answer(l.from, h.held(promised, l.x, full))
	default:
		n := *h
		n.promise = l.x.ballot
		if n.promise != h.promise {
			m.put(s, l.x.shard, &n)
		}
		a := n.held(promised, l.x, yes)
		a.entry = n.entry
		s.answer(l.from, a)
	}
}

// written takes what an owner has written, as far as the history before is there.
func (m *replica) written(s *step, l *letter) {
	x := l.x
	h := m.headOf(s, x.shard)
	if h == nil {
		return
	}
	a := &message{kind: wrote, shard: x.shard, ballot: x.ballot, promise: h.promise, stamp: h.stamp}
	if h.promise.Compare(x.ballot) > 0 {
		a.code = no
		s.answer(l.from, a)
		return
	}
	n := m.rewritten(s, h, x)
	switch {
	case s.failed != nil:
		return
	case n == nil:
		a.code = lacks
		s.answer(l.from, a)
		return
	}
	for i, body := range x.entries {
		if n.stamp.Number+1 == x.number+uint64(i) {
			if n = m.append(s, x.shard, n, x.ballot, body); n == nil {
				return
			}
		}
	}
	_, results, err := m.opened(&view{disk: m.disk, layers: []changes{s.over}}, x.shard, n)
	if err != nil {
		s.failed = err
		return
	}
	a.promise, a.stamp, a.results = n.promise, n.stamp, results
	s.answer(l.from, a)
}

// rewritten returns a head with its history under the owner's ballot, at the number that the owner took over or later;
// nil where that history is not there.
func (m *replica) rewritten(s *step, h *head, x *message) *head {
	base, n := x.stamp, *h
	switch {
	case h.stamp.Ballot == x.ballot:
		return h
	case !m.room(h):
		return nil
	case h.stamp.same(base):
		n.stamp.Ballot = x.ballot
	case x.entry != nil && h.stamp.Number+1 == base.Number && chained(h.stamp.Chain, x.entry) == base.Chain:
		appended := m.append(s, x.shard, h, x.ballot, x.entry)
		if appended == nil {
			return nil
		}
		n = *appended
	case h.entry != nil && h.stamp.Number == base.Number+1 && h.state == base.Chain: // the last one goes
		n.entry, n.stamp = nil, Stamp{x.ballot, base.Number, base.Chain}
		n.open, n.done, n.results = false, nil, nil
	default:
		return nil
	}
	n.promise, n.before = x.ballot, x.before
	m.put(s, x.shard, &n)
	return &n
}

// reads answers a read from what is on disk.
func (m *replica) reads(l *letter) {
	x := l.x
	h, err := m.loaded(x.shard)
	if err != nil {
		m.stats.Damaged++
		return
	}
	judged := x.ballot != Ballot{}
	if judged && h.promise.Compare(x.ballot) > 0 {
		m.reply(l.from, h.held(answered, x, no))
		return
	}
	a := h.held(answered, x, without)
	if !x.want || judged && (h.stamp.Ballot != x.ballot || h.stamp.Number < x.decided) {
		m.reply(l.from, a)
		return
	}
	v := &view{disk: m.disk}
	if !judged || h.stamp.Number == x.decided { // the last entry is decided, or may be
		done, _, err := m.opened(v, x.shard, h)
		if err != nil {
			m.stats.Failed++
			return
		}
		v = v.with(done)
	}
	st := stateAt(v, x.shard.stateKey(h.place))
	a.answer, a.code = st.answer(&x.query, m.cfg.Page), yes
	if st.failed != nil {
		m.stats.Failed++
		return
	}
	m.reply(l.from, a)
}
