// The region of a node: where a message goes, what waits, what a home and a move make of it.

package model

// region is what the regions of all nodes do in a step.
type region struct{ *step }

// enter puts a message into the mailbox of a host. A full mailbox refuses; the sender is notified, and that is no loss
// but for what had to wait: it was accepted while a move was on.
func (s region) enter(i, shard int, m msg) {
	h := &s.w.nodes[i].places[shard].host
	if s.w.removed.has(i) {
		s.excuse(m) // what a removed owner takes before it learns of that is lost with it
	}
	if s.c.Mailbox > 0 && h.box.n >= s.c.Mailbox {
		if m&parkedFlag == 0 {
			s.excuse(m)
			return
		}
		if !s.c.keeps(parkedNeverRefused) {
			s.lose(m, "had waited and is refused by n%d, whose mailbox is full", i)
			return
		}
	}
	h.box.push(m)
}

// send is a message of the application at node i.
func (s region) send(i int) {
	n := &s.w.nodes[i]
	m := newMsg(i, int(n.sent))
	n.sent++
	if s.w.removed.has(i) {
		s.excuse(m) // others do not listen to it any more
	}
	s.route(i, m)
}

// route takes a message as the slot of its shard says.
func (s region) route(i int, m msg) {
	shard := s.c.shardOf(m)
	p := &s.w.nodes[i].places[shard].slot
	switch {
	case p.state == local:
		s.enter(i, shard, m)
	case p.state != remote:
		p.parked.push(m | parkedFlag)
		s.askHome(i, shard)
	case p.parked.n > 0 && s.keepsBehind(p):
		p.parked.push(m | parkedFlag)
	case s.c.large(m):
		p.parked.push(m | parkedFlag)
		s.drain(i, shard)
	case s.hasRoom(i, int(p.home)):
		s.transmit(i, int(p.home), frame{kind: envelope, by: uint8(i), shard: uint8(shard), m: m, mark: p.fence})
	default:
		s.excuse(m) // the link is full: the caller has an error
	}
}

// keepsBehind reports whether a message waits behind what is parked already.
func (s region) keepsBehind(p *slot) bool {
	if s.c.large(p.parked.at[0]) {
		return s.c.keeps(largeHolds)
	}
	return s.c.keeps(parkBehind)
}

// askHome asks the coordinator once in each office.
func (s region) askHome(i, shard int) {
	n := &s.w.nodes[i]
	p := &n.places[shard].slot
	if (p.state == unknown || p.state == moving) && p.parked.n > 0 && p.asked < n.promise {
		p.asked = n.promise
		s.post(i, s.w.coordinator(n.promise), letter{kind: askHome, shard: uint8(shard), term: n.promise})
	}
}

// drain sends what is parked to the home that is known now, as far as the link has room and up to a large message.
func (s region) drain(i, shard int) {
	p := &s.w.nodes[i].places[shard].slot
	for p.parked.n > 0 {
		m := p.parked.at[0]
		switch {
		case p.state == local:
			s.enter(i, shard, p.parked.pop())
		case p.state != remote:
			return
		case s.c.large(m):
			p.large = max(p.large, begun)
			return
		case !s.hasRoom(i, int(p.home)):
			return
		default:
			p.parked.pop()
			s.transmit(i, int(p.home), frame{kind: envelope, by: uint8(i), shard: uint8(shard), m: m, mark: p.fence})
		}
	}
}

// drainOne sends one message that is parked: there is room on the link.
func (s region) drainOne(i, shard int) {
	p := &s.w.nodes[i].places[shard].slot
	m := p.parked.pop()
	s.transmit(i, int(p.home), frame{kind: envelope, by: uint8(i), shard: uint8(shard), m: m, mark: p.fence})
	s.drain(i, shard)
}

// carry is a step of the large message at the head: its receiver has all of it, then its envelope goes.
func (s region) carry(i, shard int) {
	p := &s.w.nodes[i].places[shard].slot
	if p.large == begun {
		h := &s.w.nodes[p.home].places[shard].host
		if s.w.nodes[p.home].alive && (!h.there() || h.fence != p.fence) { // refused before it was sent: no failure
			p.large, p.owes = waits, false
			s.forget(i, shard)
			return
		}
		p.large = whole
		return
	}
	m := p.parked.pop()
	p.large = waits
	s.transmit(i, int(p.home), frame{kind: envelope, by: uint8(i), shard: uint8(shard), m: m, mark: p.fence})
	if p.owes {
		p.owes = false
		s.mark(i, shard, p.home, p.move)
	}
	s.drain(i, shard)
}

// drop forgets what is left of an instance before fence: the shard went on without it.
func (s region) drop(i, shard int, fence uint8) {
	h := &s.w.nodes[i].places[shard].host
	if h.state != idle || !s.c.keeps(staleTransfers) {
		return
	}
	if h.holdFence < fence {
		h.hold, h.holdFence = list{}, 0
	}
	if h.keepFence < fence {
		h.keep, h.keepFence = list{}, 0
	}
	if h.gave < fence {
		h.gave, h.gaveTo = 0, 0
	}
}

// open gives a slot its home.
func (s region) open(i, shard int, to, home, fence uint8) {
	p := &s.w.nodes[i].places[shard].slot
	p.state, p.home, p.fence, p.move, p.asked = to, home, fence, 0, 0
	p.large, p.owes = waits, false
	s.drain(i, shard)
}

// forget ends a home: the fence is over.
func (s region) forget(i, shard int) {
	p := &s.w.nodes[i].places[shard].slot
	p.state, p.ended, p.asked = unknown, max(p.ended, p.fence), 0
	p.home, p.fence, p.move, p.large, p.owes = 0, 0, 0, waits, false
	s.askHome(i, shard)
}

// hearHome is a home that the coordinator tells.
func (s region) hearHome(i int, l letter) {
	n := &s.w.nodes[i]
	p := &n.places[l.shard].slot
	same := p.state == moving && l.fence == p.fence && l.move <= p.move
	late := p.state == local || l.fence <= p.ended || n.gone(l.at) || p.state == remote && l.fence <= p.fence ||
		p.state == moving && l.fence < p.fence || int(l.at) == i || same
	if late {
		p.asked = 0 // it is asked for again
		s.askHome(i, int(l.shard))
		return
	}
	s.drop(i, int(l.shard), l.fence)
	s.open(i, int(l.shard), remote, l.at, l.fence)
}

// hearMove parks and marks the link.
func (s region) hearMove(i int, l letter) {
	n := &s.w.nodes[i]
	p := &n.places[l.shard].slot
	if p.state == local || n.gone(l.at) || l.fence <= p.ended ||
		(p.state == remote || p.state == moving) && p.fence > l.fence || p.state == moving && p.move >= l.move {
		return
	}
	s.drop(i, int(l.shard), l.fence)
	onItsWay := p.state == remote && p.large != waits && p.home == l.at
	p.state, p.home, p.fence, p.move = moving, l.at, l.fence, l.move
	switch {
	case onItsWay && s.c.Large == Awaited && s.c.keeps(markersBehindLarge):
		p.owes = true
	case onItsWay && !s.c.keeps(markersBehindLarge):
		s.mark(i, int(l.shard), l.at, l.move)
	default:
		p.large, p.owes = waits, false
		s.mark(i, int(l.shard), l.at, l.move)
	}
	s.askHome(i, int(l.shard))
}

// hearUnpark ends a move that was called off.
func (s region) hearUnpark(i int, l letter) {
	p := &s.w.nodes[i].places[l.shard].slot
	if p.state == moving && p.move <= l.move && p.fence == l.fence && l.at != none {
		s.open(i, int(l.shard), remote, l.at, l.fence)
	}
}
