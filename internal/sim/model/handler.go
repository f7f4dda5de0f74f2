// Handlers: messages taken from mailboxes, what handlers ask, and the way of the answers.

package model

// handler is what handlers do in a step.
type handler struct{ region }

// owners demands that nobody else calls handlers of a shard.
func (s handler) owners(i, shard int, fence uint8) {
	for j := range s.c.all() {
		n := &s.w.nodes[j]
		if h := &n.places[shard].host; j != i && n.acts() && h.there() {
			s.fail("TWO OWNERS: n%d under %s and n%d under %s", j, fenceText(h.fence), i, fenceText(fence))
		}
	}
}

// handle takes the first message of a mailbox.
func (s handler) handle(i, shard int) {
	w := s.w
	h := &w.nodes[i].places[shard].host
	m := h.box.pop()
	s.owners(i, shard, h.fence)
	if m.bare() == tick {
		s.again(i, shard)
		return
	}
	if w.handled[m.from()]>>m.seq()&1 == 1 {
		s.fail("DUPLICATE: message %v is handled twice", m)
	}
	if last := &w.last[m.from()][shard]; uint8(m.seq()) < *last {
		s.fail("REORDERED: message %v is handled after %v", m, newMsg(m.from(), int(*last)-1))
	} else {
		*last = uint8(m.seq()) + 1
	}
	w.handled[m.from()] |= 1 << m.seq()
	s.count(h, shard)
	switch {
	case s.c.nested(m):
		h.busy, h.asker = true, m
		s.ask(i, shard)
	case s.c.isAsk(m):
		s.reply(i, m)
	}
}

// count is what a handler makes of its state.
func (s handler) count(h *host, shard int) {
	if !s.c.State {
		return
	}
	s.w.had[shard]++
	if h.state != draining || s.c.keeps(statesComeLast) { // else it is asked for before what is worked off
		h.box.count++
	}
}

// again is the next turn of a loop.
func (s handler) again(i, shard int) {
	if s.c.Loop == SelfLoop {
		s.w.nodes[i].places[shard].host.box.push(tick)
		return
	}
	s.route(i, tick)
}

// ask is what the handler of a nested ask does: it asks an entity, and waits. An ask of a shard that moves, to that
// shard, would wait for what waits for it: it fails.
func (s handler) ask(i, shard int) {
	m := s.c.asks(shard)
	s.w.asker[shard] = uint8(i)
	if to := s.c.shardOf(m); to == shard && s.c.keeps(selfAsksFail) && s.w.nodes[i].places[to].slot.state == moving {
		s.excuse(m)
		s.finish(i, shard)
		return
	}
	s.route(i, m)
}

// failAsk ends what a handler asks with a typed error: at the deadline of a move, or of the ask.
func (s handler) failAsk(i, shard int) {
	s.excuse(s.c.asks(shard))
	s.finish(i, shard)
}

// finish is the return of a handler that had asked.
func (s handler) finish(i, shard int) {
	h := &s.w.nodes[i].places[shard].host
	if h.busy {
		m := h.asker
		h.busy, h.asker = false, 0
		s.reply(i, m)
	}
}

// reply sends an answer to the asker.
func (s handler) reply(i int, m msg) {
	w := s.w
	if w.silent[m.from()]>>m.seq()&1 == 1 {
		return // nobody knows the asker any more
	}
	to := m.from()
	if to == entity {
		to = int(w.asker[m.seq()])
	}
	if to == i {
		s.answered(i, m)
		return
	}
	s.transmit(i, to, frame{kind: answer, by: uint8(i), m: m})
}

// answered is an answer that has come to the node that asked.
func (s handler) answered(i int, m msg) {
	s.w.answered[m.from()] |= 1 << m.seq()
	if m.from() == entity && int(s.w.asker[m.seq()]) == i {
		s.finish(i, m.seq())
	}
}
