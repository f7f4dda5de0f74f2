// The encoding of a state: what the search keeps of the states that it has yet to look at, and hashes.

package model

// coder writes a state, or reads one.
type coder struct {
	b     []byte
	at    int
	reads bool
	c     *Config
}

func code[T ~uint8](c *coder, fields ...*T) {
	for _, p := range fields {
		if c.reads {
			*p = T(c.b[c.at])
			c.at++
		} else {
			c.b = append(c.b, byte(*p))
		}
	}
}

func (c *coder) flags(fields ...*bool) {
	var bits uint8
	for i, p := range fields {
		if *p {
			bits |= 1 << i
		}
	}
	code(c, &bits)
	for i, p := range fields {
		*p = bits>>i&1 == 1
	}
}

func (c *coder) list(l *list) {
	code(c, &l.n)
	if c.c.State {
		code(c, &l.count)
	}
	for i := range l.n {
		code(c, &l.at[i])
	}
}

func (c *coder) letters(q *letters) {
	code(c, &q.n)
	for i := range q.n {
		l := &q.at[i]
		code(c, &l.kind, &l.shard, &l.term, &l.at, &l.fence, &l.move, &l.state)
		code(c, &l.who)
		c.list(&l.left)
	}
}

func (c *coder) frames(q *frames) {
	code(c, &q.n)
	for i := range q.n {
		f := &q.at[i]
		code(c, &f.kind, &f.by, &f.shard, &f.mark)
		code(c, &f.m)
	}
}

func (c *coder) place(p *place) {
	s := &p.slot
	code(c, &s.state, &s.home, &s.fence, &s.move, &s.asked, &s.ended, &s.large)
	c.list(&s.parked)
	h := &p.host
	code(c, &h.state, &h.earlyMove, &h.holdFence, &h.keepFence, &h.gave)
	if h.gave != 0 {
		code(c, &h.gaveTo)
	}
	c.flags(&s.owes, &h.busy)
	if h.earlyMove != 0 {
		code(c, &h.early)
	}
	if h.state != idle {
		code(c, &h.fence, &h.move, &h.target)
		code(c, &h.need, &h.got)
		code(c, &h.asker)
		c.list(&h.box)
	}
	if h.holdFence != 0 {
		c.list(&h.hold)
	}
	if h.keepFence != 0 {
		c.list(&h.keep)
	}
}

func (c *coder) office(o *office) {
	code(c, &o.phase)
	if o.phase == outOfOffice {
		for s := range c.c.Shards {
			code(c, &o.of[s].wants)
		}
		return
	}
	code(c, &o.term, &o.epoch, &o.moves)
	code(c, &o.reported, &o.drains)
	for s := range c.c.Shards {
		r := &o.of[s]
		code(c, &r.state, &r.home, &r.fence, &r.move, &r.target, &r.left)
		code(c, &r.told, &r.wants, &r.keepers)
		c.flags(&r.aborting)
	}
}

func (c *coder) node(n *node) {
	code(c, &n.up, &n.nonce, &n.promise, &n.sent)
	code(c, &n.knows, &n.over, &n.doubts)
	c.flags(&n.alive, &n.asleep, &n.gated, &n.leaves)
	if !n.alive {
		return
	}
	for s := range c.c.Shards {
		c.place(&n.places[s])
	}
	c.office(&n.office)
}

func (c *coder) world(w *world) {
	for i := range c.c.all() {
		c.node(&w.nodes[i])
		c.frames(&w.work[i])
		for j := range c.c.all() {
			if i != j {
				c.letters(&w.ctl[i][j])
				c.frames(&w.dat[i][j])
			}
		}
	}
	for i := range senders {
		code(c, &w.handled[i], &w.lossy[i], &w.answered[i], &w.silent[i], &w.last[i][0], &w.last[i][1])
	}
	code(c, &w.fence[0], &w.fence[1], &w.asker[0], &w.asker[1], &w.nextUp)
	code(c, &w.crashes, &w.restarts, &w.moves, &w.aborts, &w.breaks, &w.sleeps, &w.reigns, &w.leaver.told, &w.leaver.tries)
	code(c, &w.removed)
	if c.c.State {
		code(c, &w.had[0], &w.had[1])
		code(c, &w.unsure)
	}
	c.flags(&w.faults)
}

// encode appends a state to b.
func (c *Config) encode(b []byte, w *world) []byte {
	k := coder{b: b, c: c}
	k.world(w)
	return k.b
}

// decode reads a state that encode wrote; what it does not hold becomes zero.
func (c *Config) decode(b []byte, w *world) {
	*w = world{}
	k := coder{b: b, c: c, reads: true}
	k.world(w)
}
