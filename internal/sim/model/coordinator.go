// The coordinator: reports, homes, moves, and what it makes of confirmations.

package model

// coordinator is what coordinators do in a step.
type coordinator struct{ owner }

// hosts returns the nodes that may host and coordinate, and that report.
func (c *Config) hosts() set {
	if c.Proxy {
		return c.everybody().minus(int(c.Nodes) - 1)
	}
	return c.everybody()
}

// takeOffice makes a node the coordinator: it asks all what they own. Fences and numbers of moves go on from an
// earlier office under the same term.
func (s coordinator) takeOffice(j int) {
	n := &s.w.nodes[j]
	before := n.office
	n.office = office{phase: collects, term: n.up, epoch: before.epoch}
	if s.c.keeps(sequencesSurvive) {
		n.office.moves = before.moves + 1 // homes of this office are newer than moves of the one before
	}
	for shard := range s.c.Shards {
		r := &n.office.of[shard]
		r.target, r.wants = none, before.of[shard].wants
		if s.c.keeps(toldAll) {
			r.told = s.c.everybody() &^ n.knows
		}
		if !s.c.keeps(toldProxies) {
			r.told &= s.c.hosts()
		}
	}
	for k := range s.c.all() {
		if s.c.hosts().has(k) && !n.knows.has(k) {
			s.post(j, k, letter{kind: reportWanted, term: n.up})
		}
	}
}

// hearReport is what a member says of a shard. The last one of a member makes it count.
func (s coordinator) hearReport(j, from int, l letter) {
	o := &s.w.nodes[j].office
	r := &o.of[l.shard]
	switch l.state {
	case live:
		r.state, r.home, r.fence, r.target, r.keepers, r.left = alive, uint8(from), l.fence, none, 0, 0
	case draining: // no node does that while it keeps given-up-moves
		r.state, r.home, r.fence = inMove, uint8(from), l.fence
	case stopping, handing:
		r.state, r.home, r.fence = ending, uint8(from), l.fence
	}
	s.hearRest(r, from, l)
	if l.shard == s.c.Shards-1 {
		o.reported = o.reported.and(from)
	}
	s.collect(j)
}

// hearRest is what a report says of what is left of a shard. Of two rests that of the later owner counts, and none
// counts beside an owner that is live.
func (s coordinator) hearRest(r *record, from int, l letter) {
	who := only(from)
	if l.at == gaveAway {
		who = l.who
	}
	if l.at == nobodyHas || who == 0 || l.move < max(r.left, r.fence) || r.state == alive {
		return
	}
	if l.move > r.left {
		r.keepers, r.target = 0, none
	}
	r.left, r.keepers = l.move, r.keepers|who
	for k := range s.c.all() {
		if l.at != ownerHas && who.has(k) {
			r.target = uint8(k)
		}
	}
}

// collect ends the time in which nothing is allocated: all have reported, or are removed and the takeover time is over.
func (s coordinator) collect(j int) {
	n := &s.w.nodes[j]
	missing := s.c.hosts() &^ (n.office.reported | n.over)
	if n.office.phase == collects && (missing == 0 || !s.c.keeps(allReports)) {
		n.office.phase = reigns
	}
	for shard := range int(s.c.Shards) {
		s.serve(j, shard)
	}
}

// hearAsk is a home that is wanted.
func (s coordinator) hearAsk(j, from int, l letter) {
	r := &s.w.nodes[j].office.of[l.shard]
	r.wants = r.wants.and(from)
	s.serve(j, int(l.shard))
}

// disclosed reports whether a home is disclosed.
func (s coordinator) disclosed(n *node, r *record) bool {
	if n.knows.has(int(r.home)) {
		return false
	}
	return r.state == alive || r.state == starting && !s.c.keeps(startedFirst) ||
		r.state == ending && !s.c.keeps(movingNotDisclosed)
}

// serve discloses and allocates.
func (s coordinator) serve(j, shard int) {
	n := &s.w.nodes[j]
	r := &n.office.of[shard]
	if n.office.phase == outOfOffice || n.gated {
		return
	}
	s.disclose(j, shard)
	r.keepers &^= n.knows
	due := r.wants|r.keepers != 0 || r.target != none
	if !s.c.keeps(homeForTransfer) {
		due = r.wants != 0
	}
	if n.office.phase != reigns || r.state != free || !due {
		return
	}
	n.office.epoch++
	r.left = max(r.left, r.fence) // of the last owner
	r.state, r.home, r.fence, r.move = starting, s.nextHome(j, r), n.office.term<<4|n.office.epoch, 0
	r.told = 0
	s.orderHost(j, shard)
	s.disclose(j, shard)
}

// orderHost sends the order to host, which names the fence of the instance before.
func (s coordinator) orderHost(j, shard int) {
	o := &s.w.nodes[j].office
	r := &o.of[shard]
	s.post(j, int(r.home), letter{kind: hostShard, shard: uint8(shard), term: o.term, fence: r.fence, move: r.left})
}

// disclose sends a home to nodes that want it.
func (s coordinator) disclose(j, shard int) {
	n := &s.w.nodes[j]
	r := &n.office.of[shard]
	if !s.disclosed(n, r) {
		return
	}
	for k := range s.c.all() {
		if r.wants.has(k) {
			r.wants, r.told = r.wants.minus(k), r.told.and(k)
			s.post(j, k, letter{kind: homeIs, shard: uint8(shard), term: n.office.term, at: r.home, fence: r.fence,
				move: n.office.term<<4 | n.office.moves})
		}
	}
}

// nextHome returns the node that gets a shard: the target of its move, or the holder of what is left of it, or the
// coordinator.
func (s coordinator) nextHome(j int, r *record) uint8 {
	n := &s.w.nodes[j]
	if r.target != none && !n.knows.has(int(r.target)) {
		return r.target
	}
	to := uint8(j)
	for k := range s.c.all() {
		if r.keepers.has(k) {
			to = uint8(k)
		}
	}
	return to
}

// move begins a move. The home is disclosed to nobody any more; nodes that know it park and mark.
func (s coordinator) move(j, shard, target int) {
	n := &s.w.nodes[j]
	o := &n.office
	r := &o.of[shard]
	o.moves++
	r.state, r.move, r.target = inMove, o.term<<4|o.moves, uint8(target)
	list := r.told.minus(int(r.home)) &^ n.knows
	for k := range s.c.all() {
		if list.has(k) {
			s.post(j, k, letter{kind: moveShard, shard: uint8(shard), term: o.term, move: r.move, at: r.home, fence: r.fence})
		}
	}
	s.post(j, int(r.home), letter{kind: moveOwner, shard: uint8(shard), term: o.term, move: r.move, fence: r.fence,
		who: list, at: r.target})
}

// callOff asks the owner to give up a move; only its confirmation lets the regions go on.
func (s coordinator) callOff(j, shard int) {
	o := &s.w.nodes[j].office
	r := &o.of[shard]
	r.aborting = true
	s.post(j, int(r.home), letter{kind: abortWanted, shard: uint8(shard), term: o.term, move: r.move})
	if !s.c.keeps(confirmedAbort) {
		s.unparkAll(j, shard, r.move)
	}
}

// unparkAll tells the regions that the home stays.
func (s coordinator) unparkAll(j, shard int, move uint8) {
	o := &s.w.nodes[j].office
	r := &o.of[shard]
	for k := range s.c.all() {
		if r.told.has(k) && k != int(r.home) {
			s.post(j, k, letter{kind: unpark, shard: uint8(shard), term: o.term, move: move, at: r.home, fence: r.fence})
		}
	}
}

// hearAborted is the owner's word that it has given up a move.
func (s coordinator) hearAborted(j int, l letter) {
	r := &s.w.nodes[j].office.of[l.shard]
	if r.state == inMove && r.move == l.move {
		r.state, r.aborting, r.move, r.target = alive, false, 0, none
		if o := &s.w.nodes[j].office; o.drains.has(int(r.home)) && !s.c.keeps(leaversStay) {
			r.state = ending
			s.post(j, int(r.home), letter{kind: stopWanted, shard: l.shard, term: o.term, fence: r.fence})
		}
		if s.c.keeps(confirmedAbort) {
			s.unparkAll(j, int(l.shard), l.move)
		}
		s.serve(j, int(l.shard))
	}
}

// hearStopped is an owner's word that it has stopped, and which node has what is left.
func (s coordinator) hearStopped(j, from int, l letter) {
	r := &s.w.nodes[j].office.of[l.shard]
	if r.state == free || int(r.home) != from || r.fence != l.fence {
		return
	}
	r.state, r.aborting, r.move = free, false, 0
	switch l.state {
	case ownerHas:
		r.keepers, r.target = r.keepers.and(from), uint8(from)
	case newOwnerHas:
		r.keepers, r.target = r.keepers.and(int(l.at)), l.at
	case bothHave:
		r.keepers, r.target = r.keepers.and(int(l.at)).and(from), l.at
	}
	s.serve(j, int(l.shard))
}

// hearStarted is a new owner's confirmation: only now is the home disclosed.
func (s coordinator) hearStarted(j, from int, l letter) {
	o := &s.w.nodes[j].office
	r := &o.of[l.shard]
	if r.state != starting || r.fence != l.fence {
		return
	}
	r.state, r.target, r.left = alive, none, 0
	for k := range s.c.all() {
		if r.keepers.has(k) && k != from {
			s.post(j, k, letter{kind: confirmed, shard: l.shard, term: o.term, fence: l.fence})
		}
	}
	r.keepers = 0
	s.serve(j, int(l.shard))
}

// lost frees the shards of a member after its takeover time.
func (s coordinator) lost(j, x int) {
	o := &s.w.nodes[j].office
	for shard := range s.c.Shards {
		r := &o.of[shard]
		r.told, r.wants = r.told.minus(x), r.wants.minus(x)
		if r.state != free && int(r.home) == x {
			r.state, r.aborting, r.move = free, false, 0
		}
		if r.target == uint8(x) {
			r.target = none
		}
	}
	s.collect(j)
}
