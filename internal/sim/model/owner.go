// The owner of a shard: it hosts, drains, stops, hands over what it could not work off.

package model

// owner is what owners do in a step.
type owner struct{ handler }

// start makes a shard live. What is left of an earlier instance is taken up when the order names its fence; anything
// else lies here since the shard went on without it.
func (s owner) start(i, shard int, fence, rest uint8) {
	w := s.w
	h := &w.nodes[i].places[shard].host
	if w.nodes[i].acts() {
		s.owners(i, shard, fence)
	}
	if fence <= w.fence[shard] {
		s.fail("FENCE: %s after %s", fenceText(fence), fenceText(w.fence[shard]))
	}
	w.fence[shard] = fence
	var left list
	switch any := !s.c.keeps(namedTransfers); {
	case h.holdFence != 0 && (h.holdFence == rest || any):
		left = h.hold
	case h.keepFence != 0 && (h.keepFence == rest || any):
		left = h.keep
	}
	s.takeUp(i, shard, &left)
	*h = host{state: live, fence: fence}
	if s.c.keeps(transferFirst) {
		h.box = left
		s.open(i, shard, local, uint8(i), fence)
		return
	}
	h.box.count = left.count
	s.open(i, shard, local, uint8(i), fence)
	for _, m := range left.all() {
		h.box.push(m)
	}
}

// takeUp demands that a new instance begins with the state that the last one ended with, or without any, where that
// may be lost. Only a second fault can bring back an older one: no node is left that knew of the last instance.
func (s owner) takeUp(i, shard int, left *list) {
	if !s.c.State {
		return
	}
	had := &s.w.had[shard]
	lost := left.count != *had && s.mayBeLost(shard)
	switch {
	case left.count == *had:
	case left.count != 0 && lost && s.faults() > 1:
		*had = left.count
	case left.count != 0:
		s.fail("OLDER: n%d begins with %v, and the last one was %v", i, left.count, *had)
	case !lost:
		s.fail("LOST: n%d begins without %v", i, *had)
	default:
		left.count = had.anew()
		*had = left.count
	}
	s.w.unsure = s.w.unsure.minus(shard)
}

// faults returns how many processes have crashed, or slept, and offices have begun anew.
func (s owner) faults() uint8 {
	c, w := s.c, s.w
	return c.Crashes + c.Sleeps + c.Reigns - w.crashes - w.sleeps - w.reigns
}

// mayBeLost reports whether a fault has hit the state of a shard, or a removed node has it and does not know.
func (s owner) mayBeLost(shard int) bool {
	for i := range s.c.all() {
		if h := &s.w.nodes[i].places[shard].host; s.w.removed.has(i) {
			for _, l := range []*list{&h.box, &h.hold, &h.keep} {
				s.excuseAll(l)
			}
		}
	}
	return s.w.unsure.has(shard)
}

// arrive takes a frame at node i.
func (s owner) arrive(i int, f frame) {
	n := &s.w.nodes[i]
	if f.kind == answer {
		s.answered(i, f.m)
		return
	}
	h := &n.places[f.shard].host
	if f.kind == marker {
		s.marked(h, f)
		return
	}
	if (h.state == live || h.state == draining) && h.fence == f.mark {
		s.enter(i, int(f.shard), f.m)
		return
	}
	s.lose(f.m, "is refused by n%d, which is no owner under fence %s", i, fenceText(f.mark))
	b := &s.w.nodes[f.by]
	if p := &b.places[f.shard].slot; b.alive && p.state == remote && p.fence == f.mark {
		s.forget(int(f.by), int(f.shard))
	}
}

// marked counts a marker. Data and control race: one of a move that the owner has not heard of is kept.
func (s owner) marked(h *host, f frame) {
	switch {
	case h.state == draining && (h.move == f.mark || !s.c.keeps(numberedMarkers)):
		h.got = h.got.and(int(f.by))
	case s.c.keeps(earlyMarkers) && h.state != idle && f.mark > h.move:
		if f.mark > h.earlyMove {
			h.earlyMove, h.early = f.mark, 0
		}
		if f.mark == h.earlyMove {
			h.early = h.early.and(int(f.by))
		}
	}
}

// hearOrder is the order to move a shard away, with the list of the nodes that mark.
func (s owner) hearOrder(i int, l letter) {
	p := &s.w.nodes[i].places[l.shard]
	h := &p.host
	if h.fence != l.fence || h.state != live && h.state != draining {
		return // it stops or has stopped: its word is under way
	}
	h.state, h.move, h.need, h.got, h.target = draining, l.move, l.who, 0, l.at
	if s.w.nodes[i].gone(l.at) {
		h.target = none
	}
	if h.earlyMove == l.move {
		h.got = h.early
	}
	if h.earlyMove <= l.move {
		h.earlyMove, h.early = 0, 0
	}
	if s.c.keeps(removalMarks) {
		h.got |= h.need & s.w.nodes[i].knows
	}
	if s.c.keeps(ownCallersPark) {
		p.slot.state, p.slot.move = moving, l.move
	}
}

// giveUp ends a move that has not reached the stop call.
func (s owner) giveUp(i, shard int) {
	h := &s.w.nodes[i].places[shard].host
	h.state, h.move, h.need, h.got, h.target = live, 0, 0, 0, 0
	s.open(i, shard, local, uint8(i), h.fence)
}

// allMarked reports whether all markers are in.
func (s owner) allMarked(i, shard int) bool {
	h := &s.w.nodes[i].places[shard].host
	return h.state == draining && (h.need&^h.got == 0 || !s.c.keeps(allMarkers))
}

// stop sends the stop call.
func (s owner) stop(i, shard int) {
	p := &s.w.nodes[i].places[shard]
	p.host.state = stopping
	p.slot.state, p.slot.home, p.slot.fence, p.slot.move = moving, uint8(i), p.host.fence, p.host.move
	for _, m := range p.host.box.all() {
		s.lose(m, "lies in the mailbox of n%d, which stops", i)
	}
	p.host.box = list{count: p.host.box.count}
}

// ended is the end of the stop call: what entities hand over then is left, though no message is.
func (s owner) ended(i, shard int) {
	if s.c.State && s.c.keeps(statesAreARest) {
		s.handOver(i, shard)
		return
	}
	s.end(i, shard, nobodyHas, 0)
}

// end is an owner that has stopped, and names the holder of what is left.
func (s owner) end(i, shard int, has, holder uint8) {
	n := &s.w.nodes[i]
	h := &n.places[shard].host
	fence := h.fence
	*h = host{hold: h.hold, holdFence: h.holdFence, keep: h.keep, keepFence: h.keepFence}
	if has == newOwnerHas && s.c.keeps(reportsNameHolder) {
		h.gave, h.gaveTo = fence, holder
	}
	p := &n.places[shard].slot
	p.fence = fence
	s.post(i, s.w.coordinator(n.promise), letter{kind: stopped, shard: uint8(shard), term: n.promise, fence: fence,
		state: has, at: holder})
	s.forget(i, shard)
}

// The holder of what is left of a shard that stopped.
const (
	nobodyHas uint8 = iota
	ownerHas        // it could not hand over
	newOwnerHas
	bothHave
	gaveAway // in a report: another node has it
)

// handOver hands over what is left when the entities have stopped, at the deadline or before, or keeps it when there is
// nobody to take it.
func (s owner) handOver(i, shard int) {
	n := &s.w.nodes[i]
	p := &n.places[shard]
	h := &p.host
	p.slot.state, p.slot.home, p.slot.fence, p.slot.move = moving, uint8(i), h.fence, h.move
	h.state, h.keep, h.keepFence = handing, h.box, h.fence
	h.box = list{}
	for _, m := range h.keep.all() {
		if s.c.isAsk(m) && !s.c.keeps(transferNamesAsker) {
			s.w.silent[m.from()] |= 1 << m.seq()
		}
	}
	if n.gone(h.target) || int(h.target) == i {
		s.end(i, shard, ownerHas, uint8(i))
		return
	}
	s.post(i, int(h.target), letter{kind: transfer, shard: uint8(shard), fence: h.fence, left: h.keep})
}

// hearTransfer is what another owner hands over. One that is refused stays where it is. One of a fence that is over
// comes of an owner that is dead, after its shard went on without it.
func (s owner) hearTransfer(i, from int, l letter, refuse bool) {
	p := &s.w.nodes[i].places[l.shard]
	h := &p.host
	late := l.fence <= p.slot.ended || l.fence < p.slot.fence
	if h.state != idle || l.fence <= h.holdFence || late && s.c.keeps(lateTransfers) {
		return
	}
	if refuse {
		s.post(i, from, letter{kind: transferRefused, shard: l.shard, fence: l.fence})
		return
	}
	h.hold, h.holdFence = l.left, l.fence
	s.post(i, from, letter{kind: transferAck, shard: l.shard, fence: l.fence})
}

// hearTransferred is the new owner's word on what was handed over.
func (s owner) hearTransferred(i, from int, l letter) {
	h := &s.w.nodes[i].places[l.shard].host
	if h.state != handing || h.fence != l.fence {
		return
	}
	has := newOwnerHas
	switch {
	case l.kind == transferRefused:
		has = ownerHas
		if !s.c.keeps(refusalReturns) {
			has, h.keep, h.keepFence = nobodyHas, list{}, 0
		}
	case s.c.keeps(dropAtAck):
		h.keep, h.keepFence = list{}, 0
	default:
		has = bothHave
	}
	if has == newOwnerHas && !s.c.keeps(namesHolder) {
		has = nobodyHas
	}
	s.end(i, int(l.shard), has, uint8(from))
}

// reportTo tells a new coordinator of each shard what becomes of it. A node that promises a higher term gives up the
// moves that have not reached the stop call.
func (s owner) reportTo(i, to int, term uint8) {
	n := &s.w.nodes[i]
	for shard := range int(s.c.Shards) {
		h := &n.places[shard].host
		if h.state == draining && s.c.keeps(givenUpMoves) {
			s.giveUp(i, shard)
		}
		r := letter{kind: report, shard: uint8(shard), term: term, state: h.state, fence: h.fence}
		switch {
		case h.holdFence != 0:
			r.at, r.move = newOwnerHas, h.holdFence
		case h.keepFence != 0 && h.state == idle:
			r.at, r.move = ownerHas, h.keepFence
		}
		if h.gave > r.move {
			r.at, r.move, r.who = gaveAway, h.gave, only(int(h.gaveTo))
		}
		if h.state == idle {
			r.fence = 0
		}
		s.post(i, to, r)
	}
	if n.leaves {
		s.post(i, to, letter{kind: drainRegion, term: term})
	}
	for shard := range int(s.c.Shards) {
		s.askHome(i, shard)
	}
}
