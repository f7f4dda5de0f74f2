// Reading: which letter a node takes to heart, and the end of a step.

package model

// process is all that nodes do in a step.
type process struct{ member }

// newProcess returns what makes steps in w.
func newProcess(c *Config, w *world) process {
	return process{member{coordinator{owner{handler{region{&step{c: c, w: w}}}}}}}
}

// obeys reports whether a node takes a coordinator's letter: not one of a lower term than it has promised to, and of a
// higher one only the question for its report, which raises the promise. Proxies are not asked: they follow any letter.
func (s process) obeys(i int, l letter) bool {
	n := &s.w.nodes[i]
	switch {
	case l.term < n.promise:
		return !s.c.keeps(promises)
	case l.term == n.promise || l.kind == reportWanted:
		return true
	case !s.c.hosts().has(i) && s.c.keeps(proxiesFollow):
		n.promise = l.term
		return true
	}
	return false
}

// read takes a letter at node j.
func (s process) read(from, j int, l letter) {
	n := &s.w.nodes[j]
	switch l.kind {
	case homeIs, moveShard, moveOwner, hostShard, reportWanted, abortWanted, unpark, confirmed, stopWanted:
		if s.obeys(j, l) {
			s.order(from, j, l)
		}
	case transfer:
		s.hearTransfer(j, from, l, false)
	case transferAck, transferRefused:
		s.hearTransferred(j, from, l)
	case confirmOwner:
		s.hearDoubt(j, from, l)
	case ownerConfirmed:
		s.hearConfirmed(j, from, l)
	default:
		if n.office.phase != outOfOffice && n.office.term == l.term {
			s.tell(from, j, l)
		} else if l.kind == askHome && l.term == n.up { // repeated until the office begins
			r := &n.office.of[l.shard]
			r.wants = r.wants.and(from)
		}
	}
}

// order is a letter of a coordinator.
func (s process) order(from, i int, l letter) {
	n := &s.w.nodes[i]
	h := &n.places[l.shard].host
	switch l.kind {
	case homeIs:
		s.hearHome(i, l)
	case moveShard:
		s.hearMove(i, l)
	case moveOwner:
		s.hearOrder(i, l)
	case unpark:
		s.hearUnpark(i, l)
	case reportWanted:
		raised := l.term > n.promise
		n.promise = l.term
		s.reportTo(i, from, l.term)
		if n.gated && raised {
			s.doubt(i)
		}
	case abortWanted:
		if h.state == draining && h.move == l.move {
			s.giveUp(i, int(l.shard))
			s.post(i, from, letter{kind: aborted, shard: l.shard, term: l.term, move: l.move})
		}
	case hostShard:
		if n.gated && s.c.keeps(gatedStartNothing) {
			return // the order is repeated with the answer to what this node asks
		}
		if h.state != idle && h.fence == l.fence {
			return // it has come before
		}
		if h.state != idle {
			s.fail("TWO OWNERS: n%d is to start under %s what it has under %s", i, fenceText(l.fence), fenceText(h.fence))
		} else if l.fence > n.places[l.shard].slot.ended {
			s.start(i, int(l.shard), l.fence, l.move)
			s.post(i, from, letter{kind: started, shard: l.shard, term: l.term, fence: l.fence})
		}
	case stopWanted:
		if h.state == live && h.fence == l.fence {
			s.stop(i, int(l.shard))
			s.end(i, int(l.shard), nobodyHas, 0)
		}
	case confirmed:
		if h.keepFence != 0 && h.keepFence < l.fence {
			h.keep, h.keepFence = list{}, 0
		}
	}
}

// tell is a letter to a coordinator.
func (s process) tell(from, j int, l letter) {
	switch l.kind {
	case report:
		s.hearReport(j, from, l)
	case drainRegion:
		n := &s.w.nodes[j].office
		n.drains = n.drains.and(from)
	case askHome:
		s.hearAsk(j, from, l)
	case aborted:
		s.hearAborted(j, l)
	case stopped:
		s.hearStopped(j, from, l)
	case started:
		s.hearStarted(j, from, l)
	}
}

// maxLocal is how many letters to itself a node may handle in a step; a few are usual.
const maxLocal = 1000

// settle handles the letters of nodes to themselves.
func (s process) settle() {
	for n := 0; len(s.local) > 0; n++ {
		if n > maxLocal {
			s.fail("NO WAY OUT: n%d writes to itself for ever", s.local[0].at)
			s.local = nil
			return
		}
		m := s.local[0]
		s.local = s.local[1:]
		s.read(m.at, m.at, m.l)
	}
}
