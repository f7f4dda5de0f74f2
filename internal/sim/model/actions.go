// Actions: everything that may happen next in a state.

package model

// Kinds of actions.
const (
	doSend uint8 = iota
	doHandle
	doDrain
	doCarry
	doExpire
	doStop
	doHandOver
	doFailAsk
	doEnd
	doMove
	doCallOff
	doGiveAway
	doReign
	doLearn
	doTakeover
	doCrash
	doRestart
	doSleep
	doWake
	doRemove
	doRead
	doRefuse
	doLose
	doFrame
	doWork
	doBreak
	doLeave
)

// action is one of them: of node i, about node, shard or target j and t. What is optional need not ever happen, so that
// nothing may depend on it.
type action struct {
	kind, i, j, t uint8
	optional      bool
}

// actor makes steps.
type actor struct{ process }

// actorIn returns what makes steps in w.
func actorIn(c *Config, w *world) actor { return actor{newProcess(c, w)} }

// lister lists what may happen.
type lister struct {
	c   *Config
	w   *world
	is  process
	out []action
}

func (a *lister) may(kind uint8, i, j, t int) {
	a.out = append(a.out, action{kind: kind, i: uint8(i), j: uint8(j), t: uint8(t)})
}

func (a *lister) might(kind uint8, i, j, t int) {
	a.out = append(a.out, action{kind: kind, i: uint8(i), j: uint8(j), t: uint8(t), optional: true})
}

// actions lists all actions of a state, in an order that depends on the state alone.
func (c *Config) actions(w *world, into []action) []action {
	a := lister{c: c, w: w, is: newProcess(c, w), out: into[:0]}
	for i := range c.all() {
		n := &w.nodes[i]
		a.faults(i)
		a.channels(i)
		if !n.awake() {
			continue
		}
		if c.sends(i) && n.sent < c.Messages && !n.gated {
			a.might(doSend, i, 0, 0)
		}
		if w.leaver.told > 0 && !n.leaves && !n.gated && c.hosts().has(i) && a.is.succeeded(i) {
			a.might(doLeave, i, 0, 0)
		}
		for shard := range int(c.Shards) {
			a.region(i, shard)
			a.owner(i, shard)
			if n.office.phase == reigns && !n.gated {
				a.coordinator(i, shard)
			}
		}
	}
	return a.out
}

func (a *lister) region(i, shard int) {
	p := &a.w.nodes[i].places[shard].slot
	if p.parked.n == 0 {
		return
	}
	large := a.c.large(p.parked.at[0])
	switch {
	case large && p.large != waits && (p.state == remote || p.state == moving):
		if p.state == remote || p.owes || !a.c.keeps(markersBehindLarge) {
			a.may(doCarry, i, shard, 0)
		}
	case p.state == remote && a.is.hasRoom(i, int(p.home)):
		a.may(doDrain, i, shard, 0)
	}
	if p.state == moving && !a.c.keeps(parkedNeverExpire) {
		a.might(doExpire, i, shard, 0)
	}
}

func (a *lister) owner(i, shard int) {
	n := &a.w.nodes[i]
	h := &n.places[shard].host
	if n.gated {
		return
	}
	if h.box.n > 0 && (h.state == live || h.state == draining) {
		if h.state == live && h.box.n == 1 && h.box.at[0].bare() == tick {
			a.might(doHandle, i, shard, 0)
		} else {
			a.may(doHandle, i, shard, 0)
		}
	}
	marked := a.is.allMarked(i, shard)
	switch {
	case h.state == stopping:
		a.may(doEnd, i, shard, 0)
	case h.busy && (a.w.faults || marked && a.c.keeps(deadlineFailsAsks)): // every ask has a time limit
		if a.c.Asks == SelfAsk && !a.w.faults { // for which this one must not have to wait
			a.might(doFailAsk, i, shard, 0)
		} else {
			a.may(doFailAsk, i, shard, 0)
		}
	case h.busy:
	case marked && (h.box.n == 0 || !a.c.keeps(workedOff)):
		a.may(doStop, i, shard, 0)
	case marked && a.c.Transfer && a.c.keeps(deadline):
		a.may(doHandOver, i, shard, 0)
	}
}

func (a *lister) coordinator(j, shard int) {
	w := a.w
	n := &w.nodes[j]
	r := &n.office.of[shard]
	for t := range a.c.all() {
		switch {
		case r.state != alive || !a.fits(n, r, t):
		case n.office.drains.has(int(r.home)):
			if a.triesAgain(n) {
				a.may(doMove, j, shard, t)
			}
		case w.moves > 0:
			a.might(doMove, j, shard, t)
		}
	}
	if shard == 0 && w.reigns > 0 {
		a.might(doReign, j, 0, 0)
	}
	if r.state == inMove && !r.aborting && w.aborts > 0 {
		a.might(doCallOff, j, shard, 0)
	}
	if r.state == inMove && !r.aborting && a.c.keeps(markerDeadline) {
		for k := range a.c.all() {
			if r.told.has(k) && w.nodes[k].asleep && !n.knows.has(k) {
				a.may(doCallOff, j, shard, 1)
				break
			}
		}
	}
	if r.state == inMove && !a.c.keeps(waitForStop) {
		a.might(doGiveAway, j, shard, 0)
	}
}

// fits reports whether a move may go to a node: a host that is a member, does not leave and, when it came later, has
// reported.
func (a *lister) fits(n *node, r *record, t int) bool {
	return a.c.hosts().has(t) && !n.office.drains.has(t) && int(r.home) != t && !n.knows.has(t) &&
		!n.knows.has(int(r.home)) && (a.w.nodes[t].up <= a.c.Nodes || n.office.reported.has(t))
}

func (a *lister) faults(i int) {
	w := a.w
	n := &w.nodes[i]
	if !n.alive {
		if w.restarts > 0 && a.goneForAll(i) {
			a.might(doRestart, i, 0, 0)
		}
		return
	}
	if w.crashes > 0 {
		a.might(doCrash, i, 0, 0)
	}
	if n.asleep {
		if a.matters(i) {
			a.may(doWake, i, 0, 0)
		} else {
			a.might(doWake, i, 0, 0)
		}
		if !w.removed.has(i) {
			a.might(doRemove, i, 0, 0)
		}
		return
	}
	if w.sleeps > 0 && !n.gated {
		a.might(doSleep, i, 0, 0)
	}
	if w.removed.has(i) {
		a.may(doLearn, i, i, 0)
	}
	for x := range a.c.all() {
		if gone := !w.nodes[x].alive || w.removed.has(x); x != i && gone && !n.knows.has(x) {
			a.may(doLearn, i, x, 0)
		}
		if x != i && a.is.mayTakeOver(i, x) {
			a.may(doTakeover, i, x, 0)
		}
	}
}

// goneForAll reports whether all that live have seen a removal.
func (a *lister) goneForAll(x int) bool {
	for j := range a.c.all() {
		if n := &a.w.nodes[j]; j != x && n.alive && (!n.knows.has(x) || !n.over.has(x)) {
			return false
		}
	}
	return true
}

// matters reports whether a cluster may have to wait for a sleeper: it owns, holds, or coordinates, or some node
// leaves.
func (a *lister) matters(x int) bool {
	w := a.w
	for i := range a.c.all() {
		if a.is.leavesStill(i) {
			return true
		}
	}
	n := &w.nodes[x]
	if n.office.phase != outOfOffice || w.removed.has(x) {
		return true
	}
	for j := range a.c.all() {
		if o := &w.nodes[j]; j != x && o.alive && (a.is.oldest(j) == x || w.coordinator(o.promise) == x || o.doubts.has(x)) {
			return true
		}
	}
	for shard := range a.c.Shards {
		if h := &n.places[shard].host; h.state != idle || h.holdFence != 0 || h.keepFence != 0 {
			return true
		}
		for j := range a.c.all() {
			if o := &w.nodes[j].places[shard].host; o.state == handing && int(o.target) == x {
				return true
			}
			o := &w.nodes[j].office
			if r := &o.of[shard]; w.nodes[j].alive && (o.phase == collects || o.phase == reigns &&
				(r.state == starting && int(r.home) == x || r.state == inMove && int(r.target) == x)) {
				return true
			}
		}
	}
	return false
}

// marks reports whether node i has a marker for node j that a break would send again.
func (a *lister) marks(i, j int) bool {
	for shard := range a.c.Shards {
		if p := &a.w.nodes[i].places[shard].slot; p.state == moving && int(p.home) == j {
			return true
		}
	}
	return false
}

func (a *lister) channels(i int) {
	w := a.w
	for j := range a.c.all() {
		if i == j {
			continue
		}
		if w.breaks > 0 && w.nodes[i].alive && w.nodes[j].alive && (w.dat[i][j].n > 0 || a.marks(i, j)) {
			a.might(doBreak, i, j, 0)
		}
		if !w.nodes[j].awake() {
			continue
		}
		if q := &w.ctl[i][j]; q.n > 0 {
			a.may(doRead, i, j, 0)
			if l := &q.at[0]; l.kind == transfer && a.c.Refuse {
				a.might(doRefuse, i, j, 0)
			}
			if !w.nodes[i].alive {
				a.might(doLose, i, j, 0)
			}
		}
		if w.dat[i][j].n > 0 && !w.nodes[j].gated {
			a.may(doFrame, i, j, 0)
		}
	}
	if n := &w.nodes[i]; n.acts() && w.work[i].n > 0 {
		a.may(doWork, i, 0, 0)
	}
}

// run makes one step.
func (s actor) run(a action) {
	i, j, t := int(a.i), int(a.j), int(a.t)
	switch a.kind {
	case doSend:
		s.send(i)
	case doHandle:
		s.handle(i, j)
	case doDrain:
		s.drainOne(i, j)
	case doCarry:
		s.carry(i, j)
	case doExpire:
		p := &s.w.nodes[i].places[j].slot
		p.large, p.owes = waits, false
		s.lose(p.parked.pop(), "has waited too long at n%d while its shard moved", i)
	case doStop:
		s.stop(i, j)
	case doHandOver:
		s.handOver(i, j)
	case doFailAsk:
		s.failAsk(i, j)
	case doEnd:
		s.ended(i, j)
	case doMove:
		if o := &s.w.nodes[i].office; !o.drains.has(int(o.of[j].home)) {
			s.w.moves--
		} else if s.w.leaver.tries > 0 {
			s.w.leaver.tries--
		}
		s.move(i, j, t)
	case doLeave:
		s.w.leaver.told--
		s.leave(i)
	case doCallOff:
		if t == 0 {
			s.w.aborts--
		}
		s.callOff(i, j)
	case doReign:
		s.w.reigns--
		s.takeOffice(i)
	case doGiveAway:
		r := &s.w.nodes[i].office.of[j]
		r.state, r.aborting = free, false
		s.serve(i, j)
	default:
		s.runFault(a)
	}
	s.settle()
}

// runFault makes a step of the surroundings: channels and faults.
func (s actor) runFault(a action) {
	w, i, j := s.w, int(a.i), int(a.j)
	switch a.kind {
	case doLearn:
		s.learn(i, j)
	case doTakeover:
		s.takeover(i, j)
	case doCrash:
		w.crashes--
		s.crash(i)
	case doRestart:
		w.restarts--
		s.restart(i)
	case doSleep:
		w.sleeps--
		s.sleep(i)
	case doWake:
		s.wake(i)
	case doRemove:
		s.remove(i)
	case doRead:
		s.read(i, j, w.ctl[i][j].pop())
	case doRefuse:
		s.hearTransfer(j, i, w.ctl[i][j].pop(), true)
	case doLose:
		w.ctl[i][j] = letters{}
	case doFrame:
		f := w.dat[i][j].pop()
		if s.c.Worker && f.kind != answer && (f.kind != marker || s.c.keeps(queuedMarkers)) {
			w.work[j].push(f)
			return
		}
		s.arrive(j, f)
	case doWork:
		s.arrive(i, w.work[i].pop())
	case doBreak:
		w.breaks--
		s.breakData(i, j)
	}
}
