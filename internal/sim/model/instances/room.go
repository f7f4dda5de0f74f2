// Room: hand-offs that buffer. An instance is the entity of a shard. Its move is here in its smallest form; the model
// of hand-off (docs/contributing/model.md) has the whole of it.

package instances

// wished returns the node on which slot 0 is to live by a table.
func (p *Placed) wished() uint8 {
	if c, ok := p.pending(0); ok {
		return c.To
	}
	return p.Host[0]
}

// tends has x complete a change once the shard lives at the new node.
func (c *compiled) tends(t *state, x int) {
	o := &t.on[x]
	for slot := range slots {
		ch, ok := o.row.pending(slot)
		if !ok || ch.From != uint8(x) || ch.Complete {
			continue
		}
		knows := t.room.knows[x]
		if slot != 0 || ch.To == nobody || knows == ch.To || t.view[x].status[x] == leaving && knows != uint8(x) ||
			!c.keeps(readyFirst) {
			o.told[slot] = ch.At
		}
	}
}

// shard takes the steps of the shard of slot 0.
func (r *turn) shard() {
	c, s := r.c, r.s
	q := &s.room
	for x := range nodes {
		o := &s.on[x]
		if !s.alive.has(x) {
			continue
		}
		switch want := o.row.wished(); {
		case want == nobody || !s.alive.has(int(want)) || s.on[want].doors:
		case q.to != nobody && s.on[q.to].doors:
			t := r.fork()
			t.room.to, t.room.marked = nobody, 0
			r.take(t, note{"slot 0 does not move to n%d, which leaves", int(q.to), 0, 0, false})
		case q.home == nobody:
			r.claims(x, want)
		case q.to == nobody && want != q.home:
			t := r.fork()
			t.room.to = want
			r.take(t, note{"the shard of slot 0 is to move to n%d, as n%d has it", int(want), x, 0, false})
		case c.taken(s, x) && want != q.home && !c.keeps(takeoverWaits):
			r.claims(x, want)
		}
		r.parks(x)
	}
	if q.to != nobody && q.home != nobody && (s.alive&^q.marked == 0 || !c.keeps(markers)) {
		t := r.fork()
		t.room.home, t.room.to, t.room.marked = q.to, nobody, 0
		if !c.keeps(stateMoves) {
			t.room.count = 0
		}
		r.take(t, note{"n%d has stopped the instance, and n%d begins it with its state", int(q.home), int(q.to), 0, false})
	}
}

// taken reports whether x takes the owner for Down.
func (c *compiled) taken(s *state, x int) bool { return s.view[x].status[s.room.home] == down }

// claims gives the shard of an owner that was lost away.
func (r *turn) claims(x int, want uint8) {
	t := r.fork()
	q := &t.room
	if q.home != nobody && t.alive.has(int(q.home)) {
		r.fault("TWO: n%d still has the instance of slot 0, and n%d gets it", int(q.home), int(want))
	}
	q.home, q.to, q.marked, q.count, q.sum = want, nobody, 0, 0, 0
	r.take(t, note{"n%d gets the shard of an owner that was lost, as n%d has it", int(want), x, 0, false})
}

// parks has sender x hear of a move, send its marker behind what it has sent, and hear of the end of the move.
func (r *turn) parks(x int) {
	c, s := r.c, r.s
	q := &s.room
	switch {
	case q.to != nobody && !q.parked.has(x):
		t := r.fork()
		t.room.parked |= only(x)
		if !c.keeps(parks) {
			t.room.knows[x] = q.to
		}
		r.take(t, note{"n%d hears that slot 0 moves, and keeps what is for it", x, 0, 0, false})
	case q.to != nobody && !q.marked.has(x):
		for m := range c.messages {
			if c.sender(m) == x && s.sent[m].where == flies && s.sent[m].to == q.home {
				return // the marker is behind it
			}
		}
		t := r.fork()
		t.room.marked |= only(x)
		r.take(t, note{"the marker of n%d comes to n%d", x, int(q.home), 0, false})
	case q.to == nobody && q.home != nobody && (q.parked.has(x) || q.knows[x] != q.home):
		t := r.fork()
		t.room.parked &^= only(x)
		t.room.knows[x] = q.home
		r.take(t, note{"n%d hears that slot 0 lives on n%d", x, int(q.home), 0, false})
	}
}

// flushes makes the sender of m send what it kept.
func (r *turn) flushes(m int) {
	c, s := r.c, r.s
	x := c.sender(m)
	for k := range m {
		if c.sender(k) == x && s.sent[k].where == waits {
			return
		}
	}
	to := s.room.knows[x]
	if s.room.parked.has(x) && c.keeps(parks) || to == nobody {
		return
	}
	t := r.fork()
	t.sent[m] = message{where: flies, to: to}
	if !s.alive.has(int(to)) {
		t.sent[m] = message{where: lost}
	}
	r.take(t, note{"message %d leaves n%d for n%d", m + 1, x, int(to), false})
}

// arrives has message m come to the node that its sender took for the owner, behind those before it.
func (r *turn) arrives(m int) {
	c, s := r.c, r.s
	d := s.sent[m]
	for k := range m {
		if e := s.sent[k]; c.sender(k) == c.sender(m) && e.where == flies && e.to == d.to {
			return
		}
	}
	t := r.fork()
	q := &t.room
	if q.home != d.to && q.to == d.to && !c.keeps(parks) { // the new one takes it before the old one has ended
		r.fault("TWO: n%d handles message %d while n%d has the instance", int(d.to), m+1, int(q.home))
	}
	if q.home != d.to {
		t.sent[m] = message{where: lost}
		if t.crashes == 0 && t.mistakes == 0 {
			r.fault("LOST: message %d comes to n%d, which has the instance no more", m+1, int(d.to))
		}
		r.take(t, note{"message %d is lost at n%d", m + 1, int(d.to), 0, false})
		return
	}
	for k := m + 1; k < c.messages; k++ {
		if c.sender(k) == c.sender(m) && s.sent[k].where == handled {
			r.fault("REORDERED: message %d comes behind message %d", m+1, k+1)
		}
	}
	if q.count != q.sum {
		r.fault("STATE: the instance has %d messages in its state, and %d were handled", int(q.count), int(q.sum))
	}
	q.count++
	q.sum++
	t.sent[m] = message{where: handled}
	r.take(t, note{"message %d comes to n%d, which handles it", m + 1, int(d.to), 0, false})
}

// loses is what becomes of the shard when x dies.
func (c *compiled) loses(t *state, x int) {
	q := &t.room
	switch uint8(x) {
	case q.home:
		q.home, q.to, q.marked, q.parked = nobody, nobody, 0, 0
		q.count, q.sum = 0, 0
	case q.to:
		q.to, q.marked = nobody, 0
	}
	q.marked &^= only(x)
	q.parked &^= only(x)
	q.knows[x] = nobody
}
