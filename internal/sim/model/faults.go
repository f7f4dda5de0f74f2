// Faults and what members make of them: crashes, restarts, broken connections, sleepers, removals, takeover times.

package model

// member is what nodes do as members, and what befalls them.
type member struct{ coordinator }

// crash is the end of a process. What it had sent arrives, a prefix of it, or nothing.
func (s member) crash(x int) {
	w := s.w
	n := &w.nodes[x]
	w.faults = true
	w.removed = w.removed.minus(x)
	s.excuseSender(x)
	for shard := range s.c.Shards {
		h := &n.places[shard].host
		s.excuseAll(&h.box)
		s.excuseAll(&h.hold)
		if h.holdFence == 0 {
			s.excuseAll(&h.keep)
		}
		s.excuseAll(&n.places[shard].slot.parked) // messages of its entities
	}
	for _, f := range w.work[x].at[:w.work[x].n] {
		if f.kind == envelope {
			s.excuse(f.m)
		}
	}
	for i := range s.c.all() {
		s.dropFrames(i, x)
		for _, l := range w.ctl[i][x].at[:w.ctl[i][x].n] {
			s.excuseAll(&l.left)
		}
		for _, l := range w.ctl[x][i].at[:w.ctl[x][i].n] {
			s.excuseAll(&l.left)
		}
		w.ctl[i][x] = letters{}
	}
	w.work[x] = frames{}
	s.excuseGiven(x)
	*n = node{up: n.up, sent: n.sent}
}

// excuseGiven says of what a dead node had handed over last that it may be lost when another one is dead too, or was,
// or an office began anew: the coordinator that knew, or was to learn, the holder.
func (s member) excuseGiven(x int) {
	dead := s.w.reigns < s.c.Reigns || s.w.crashes+1 < s.c.Crashes
	for i := range s.c.all() {
		dead = dead || i != x && !s.w.nodes[i].alive
	}
	for shard := range s.c.Shards {
		gave := s.w.nodes[x].places[shard].host.gave
		for i := range s.c.all() {
			if h := &s.w.nodes[i].places[shard].host; dead && gave != 0 && h.holdFence == gave {
				s.excuseAll(&h.hold)
			}
		}
	}
}

// excuseSender says of all that a node has sent so far that it may be lost.
func (s member) excuseSender(x int) { s.w.lossy[x] |= 1<<s.w.nodes[x].sent - 1 }

// dropFrames loses what is on the data connection from i to j.
func (s member) dropFrames(i, j int) {
	q := &s.w.dat[i][j]
	for _, f := range q.at[:q.n] {
		if f.kind == envelope {
			s.excuse(f.m)
		}
	}
	*q = frames{}
}

// breakData is the end of a data connection: what is on it is lost. The markers of moves that are on go again, first on
// the next one, also those that had come; large messages that had begun begin anew.
func (s member) breakData(i, j int) {
	w := s.w
	w.faults = true
	s.dropFrames(i, j)
	for shard := range int(s.c.Shards) {
		p := &w.nodes[i].places[shard].slot
		if p.large == whole && int(p.home) == j {
			p.large = begun
		}
		if p.state == moving && int(p.home) == j && !p.owes && s.c.keeps(resentMarkers) {
			s.mark(i, shard, p.home, p.move)
		}
	}
}

// restart is a new process at the address of one that is removed everywhere: a new member, the youngest. Coordinators
// ask it for its promise before it hosts.
func (s member) restart(x int) {
	w := s.w
	w.nodes[x] = node{up: w.nextUp, alive: true, sent: w.nodes[x].sent}
	w.nextUp++
	for shard := range s.c.Shards {
		w.nodes[x].office.of[shard].target = none
	}
	for i := range s.c.all() {
		if i == x {
			continue
		}
		n := &w.nodes[i]
		n.knows, n.over = n.knows.minus(x), n.over.minus(x)
		w.nodes[x].knows |= n.knows
		w.nodes[x].over |= n.over
		n.office.reported = n.office.reported.minus(x)
		for k := range s.c.all() {
			for l := range w.ctl[i][k].n {
				w.ctl[i][k].at[l].forget(uint8(x))
			}
		}
		w.ctl[i][x], w.ctl[x][i], w.dat[i][x], w.dat[x][i] = letters{}, letters{}, frames{}, frames{}
	}
	for i := range s.c.all() {
		if n := &w.nodes[i]; i != x && n.office.phase != outOfOffice {
			s.post(i, x, letter{kind: reportWanted, term: n.office.term})
		}
	}
}

// forget takes a process out of a letter that names it: letters name incarnations.
func (l *letter) forget(x uint8) {
	l.who = l.who.minus(int(x))
	switch l.kind {
	case homeIs, moveShard, moveOwner, unpark:
		if l.at == x {
			l.at = none
		}
	case stopped:
		if l.at == x && l.state != ownerHas {
			l.state = nobodyHas
		}
	}
}

// learn is a removal that node j sees: of x, or of itself.
func (s member) learn(j, x int) {
	w := s.w
	if j == x {
		s.crash(x) // it ends; it had been excused when it was removed
		return
	}
	n := &w.nodes[j]
	n.knows = n.knows.and(x)
	for _, l := range w.ctl[x][j].at[:w.ctl[x][j].n] {
		s.excuseAll(&l.left)
	}
	w.ctl[x][j], w.ctl[j][x] = letters{}, letters{}
	s.dropFrames(x, j)
	s.dropFrames(j, x)
	for shard := range int(s.c.Shards) {
		p := &n.places[shard]
		if (p.slot.state == remote || p.slot.state == moving) && int(p.slot.home) == x {
			s.forget(j, shard)
		}
		if s.c.keeps(removalMarks) { // a removed node sends nothing any more
			p.host.got = p.host.got.and(x)
		}
		if int(p.host.gaveTo) == x {
			p.host.gave, p.host.gaveTo = 0, 0
		}
		if p.host.state == handing && int(p.host.target) == x { // gone before it acknowledged
			s.end(j, shard, ownerHas, uint8(j))
		}
		if p.host.state != idle && int(p.host.target) == x { // a later process there is another one
			p.host.target = none
		}
	}
	if !w.nodes[x].alive {
		s.takeover(j, x)
	}
	s.succeed(j)
	if n.gated {
		s.doubt(j)
	}
	for shard := range int(s.c.Shards) {
		s.askHome(j, shard)
	}
}

// takeover is the end of the takeover time of a member that was removed: it has crashed, or stopped, or sleeps.
func (s member) takeover(j, x int) {
	n := &s.w.nodes[j]
	n.over = n.over.and(x)
	if n.office.phase != outOfOffice {
		s.lost(j, x)
	}
}

// mayTakeOver reports whether the takeover time of a member that lives can be over for j: everybody else knows of its
// removal, and it handles nothing: an owner that is cut off stops in time, and no confirmation is on its way to it.
func (s member) mayTakeOver(j, x int) bool {
	w := s.w
	n := &w.nodes[j]
	if !n.knows.has(x) || n.over.has(x) || w.nodes[x].acts() {
		return false
	}
	if !w.nodes[x].alive {
		return true
	}
	for k := range s.c.all() {
		if k != x && w.nodes[k].alive && !w.nodes[k].knows.has(x) {
			return false
		}
		for _, l := range w.ctl[k][x].at[:w.ctl[k][x].n] {
			if l.kind == ownerConfirmed && !w.nodes[x].asleep {
				return false
			}
		}
	}
	return true
}

// oldest returns the oldest host that is a member in the view of node j, or -1.
func (s member) oldest(j int) int {
	n := &s.w.nodes[j]
	oldest := -1
	for k := range s.c.all() {
		if s.c.hosts().has(k) && !n.knows.has(k) && (oldest < 0 || s.w.nodes[k].up < s.w.nodes[oldest].up) {
			oldest = k
		}
	}
	return oldest
}

// succeed makes a node the coordinator when it is the oldest that is left; a proxy follows the oldest.
func (s member) succeed(j int) {
	n := &s.w.nodes[j]
	switch oldest := s.oldest(j); {
	case oldest == j && n.office.phase == outOfOffice && n.promise <= n.up:
		s.takeOffice(j)
	case oldest >= 0 && !s.c.hosts().has(j):
		n.promise = max(n.promise, s.w.nodes[oldest].up)
	}
}

// sleep stops a process; letters and frames wait for it.
func (s member) sleep(x int) {
	n := &s.w.nodes[x]
	s.w.faults = true
	n.asleep, n.gated, n.doubts = true, false, 0
}

// wake lets it go on: it calls no handler before others have confirmed what it owns.
func (s member) wake(x int) {
	n := &s.w.nodes[x]
	n.asleep = false
	n.nonce++
	if s.c.keeps(sleepersConfirm) {
		n.gated = true
		s.doubt(x)
	}
}

// remove downs a member that sleeps: what it sent, and what is on its way to it, may be lost.
func (s member) remove(x int) {
	w := s.w
	w.removed = w.removed.and(x)
	s.excuseSender(x)
	for shard := range s.c.Shards {
		h := &w.nodes[x].places[shard].host
		s.excuseAll(&h.box)
		s.excuseAll(&h.hold)
		s.excuseAll(&h.keep)
	}
	for _, f := range w.work[x].at[:w.work[x].n] {
		if f.kind == envelope {
			s.excuse(f.m)
		}
	}
}

// doubt asks the nodes that can confirm what a node owns: its coordinator, and a coordinator all others.
func (s member) doubt(i int) {
	n := &s.w.nodes[i]
	n.nonce++
	n.doubts = 0
	for k := range s.c.all() {
		if k != i && !n.knows.has(k) && (n.office.phase != outOfOffice || s.w.nodes[k].up == n.promise) {
			n.doubts = n.doubts.and(k)
			s.post(i, k, letter{kind: confirmOwner, term: n.promise, move: n.nonce})
		}
	}
	s.resume(i)
}

// hearDoubt is the question of one that has slept.
func (s member) hearDoubt(j, from int, l letter) {
	n := &s.w.nodes[j]
	a := letter{kind: ownerConfirmed, term: n.promise, move: l.move}
	if n.office.phase != outOfOffice && n.office.term == l.term {
		for shard := range int(s.c.Shards) {
			if r := &n.office.of[shard]; r.state != free && int(r.home) == from {
				a.who = a.who.and(shard)
			}
		}
		a.state = 1 // it says which node's shards they are
	}
	s.post(j, from, a)
	for shard := range int(s.c.Shards) {
		if r := &n.office.of[shard]; a.state == 1 && r.state == starting && int(r.home) == from {
			s.orderHost(j, shard)
		}
	}
}

// hearConfirmed is an answer to one that has slept. One of an earlier question says nothing.
func (s member) hearConfirmed(i, from int, l letter) {
	n := &s.w.nodes[i]
	if !n.gated || l.move != n.nonce {
		return
	}
	if l.term > n.promise { // the office is over; its successor asks for a report
		n.office = office{of: [maxShards]record{{target: none}, {target: none}}}
		return
	}
	for shard := range int(s.c.Shards) {
		if h := &n.places[shard].host; l.state == 1 && h.state != idle && !l.who.has(shard) {
			s.excuseAll(&h.box)
			*h = host{hold: h.hold, holdFence: h.holdFence, keep: h.keep, keepFence: h.keepFence, gave: h.gave,
				gaveTo: h.gaveTo}
			s.forget(i, shard)
		}
	}
	n.doubts = n.doubts.minus(from)
	s.resume(i)
}

// resume ends the suspension when nothing is in doubt any more.
func (s member) resume(i int) {
	n := &s.w.nodes[i]
	others := s.c.everybody().minus(i) &^ n.knows
	if !n.gated || n.doubts != 0 || others != 0 && n.office.phase == outOfOffice && !s.hasCoordinator(i) {
		return
	}
	n.gated = false
	if n.office.phase != outOfOffice {
		s.collect(i)
	}
}

// hasCoordinator reports whether the coordinator that a node follows is still a member for it.
func (s member) hasCoordinator(i int) bool {
	k := s.w.coordinator(s.w.nodes[i].promise)
	return k >= 0 && !s.w.nodes[i].knows.has(k)
}
