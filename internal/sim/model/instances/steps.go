// Steps: what may happen next: gossip, the leader, programmers, what nodes do for their instances, and faults.

package instances

import (
	"github.com/kith-io/kith/cluster"
)

// note says what a step was; it is printed only where it leads to a violation.
type note struct {
	text    string
	a, b, d int
	fault   bool // it is none that a way to rest may have
}

// turn takes all steps of a state.
type turn struct {
	c    *compiled
	s    *state
	emit func(t *state, w note)
	bad  string // what a step has found
}

func (r *turn) fork() *state {
	t := *r.s
	return &t
}

// take hands a step on, if it leads anywhere.
func (r *turn) take(t *state, w note) {
	for x := range nodes {
		if !t.alive.has(x) {
			continue
		}
		r.c.completes(t, x)
		if r.c.keeps(drainersAgree) || t.on[x].drain != r.s.on[x].drain {
			t.view[x].announces(x, t.on[x].drain)
		}
		if !r.c.lags.has(x) && t.on[x].row != t.view[x].Placed {
			r.look(t, x, false)
			r.c.completes(t, x)
		}
	}
	for x := range nodes {
		if !t.alive.has(x) || t.view[x] != r.s.view[x] {
			t.seen[x] = 0
		}
		for y := range nodes {
			if t.alive.has(x) && t.alive.has(y) && t.view[x] == t.view[y] {
				t.seen[x] |= only(y)
			}
		}
	}
	r.c.tidy(t)
	if *t != *r.s || r.bad != "" {
		r.emit(t, w)
	}
	r.bad = ""
}

// completes notes in the view of x what its instances are complete with, whenever the view has changed.
func (c *compiled) completes(t *state, x int) {
	v, o := &t.view[x], &t.on[x]
	for slot := range slots {
		ch := &v.Change[slot]
		switch {
		case ch.At == 0 || ch.From != uint8(x) || ch.At != o.told[slot]:
			o.told[slot] = 0
		case !ch.Complete:
			ch.Complete = true
			if !c.keeps(completeStays) {
				o.told[slot] = 0
			}
		}
	}
}

// tidy forgets what makes no difference any more, so that a run is smaller.
func (c *compiled) tidy(t *state) {
	for x := range nodes {
		if !t.alive.has(x) {
			t.on[x], t.view[x], t.seen[x] = local{}, view{}, 0
			continue
		}
		for slot := range slots {
			if ch := t.on[x].row.Change[slot]; t.on[x].over[slot] != 0 && t.on[x].over[slot] < ch.At {
				t.on[x].over[slot] = 0
			}
			if o := &t.on[x]; o.asked[slot] != 0 && o.here[slot].at > o.asked[slot] {
				o.asked[slot] = 0
			}
		}
	}
}

// steps takes all steps of a state.
func (r *turn) steps() {
	for x := range nodes {
		if !r.s.alive.has(x) {
			continue
		}
		r.gossips(x)
		r.leads(x)
		r.programs(x)
		r.leaves(x)
		r.looks(x, false)
		r.looks(x, true)
		for slot := range slots {
			r.ends(x, slot)
		}
		r.fails(x)
	}
	for slot := range slots {
		r.requests(slot)
	}
	for m := range r.c.messages {
		r.moves(m)
	}
	if r.c.buffers {
		r.shard()
	}
}

// gossips has x read the state of others.
func (r *turn) gossips(x int) {
	s := r.s
	for y := range nodes {
		if x == y || !s.alive.has(y) || s.view[x].status[y] >= exiting || s.view[y].status[x] == down {
			continue
		}
		t := r.fork()
		t.view[x] = r.c.merge(&s.view[x], &s.view[y])
		r.take(t, note{"n%d reads the state of n%d", x, y, 0, false})
	}
}

// leads has x write the table, if it leads.
func (r *turn) leads(x int) {
	c, s := r.c, r.s
	v := &s.view[x]
	if v.status[x] >= exiting {
		return
	}
	for y := range nodes {
		if y < x && v.status[y] <= leaving && !c.Fickle {
			return
		}
		if v.status[y] <= leaving && !s.seen[x].has(y) && c.keeps(converged) {
			return
		}
		if c.Fickle && s.alive.has(y) && s.view[y].At.epoch() > v.At.epoch() && c.keeps(converged) {
			return // of one version one leads
		}
	}
	t := r.fork()
	t.view[x] = c.plans.plan(*v, x, c.keeps(namedStays), c.keeps(knowsDrainers),
		c.keeps(turnsBack) && c.keeps(goesOn))
	if t.view[x].At.epoch() > maxEpoch {
		return
	}
	r.take(t, note{"n%d, leader, writes epoch %d", x, int(t.view[x].At.epoch()), 0, false})
}

// programs has somebody ask for a move, or take the definition back.
func (r *turn) programs(x int) {
	c, s := r.c, r.s
	v := &s.view[x]
	if v.status[x] != up {
		return
	}
	if s.moves < c.Moves && c.movers.has(x) {
		for to := range nodes {
			if t := r.fork(); c.takers.has(to) && asksMove(&t.view[x], uint8(x), 0, uint8(to)) {
				t.moves++
				r.take(t, note{"n%d asks for slot 0 to be moved to n%d", x, to, 0, true})
			}
		}
	}
	if c.Ends && !s.ended && c.movers.has(x) {
		t := r.fork()
		t.ended = true
		w := &t.view[x]
		w.defined = defined{w.version + 1, uint8(x), true, 0, nobody}
		r.take(t, note{"n%d takes the definition back", x, 0, 0, true})
	}
}

// asksMove writes a move into a view, where a programmer may.
func asksMove(v *view, by, slot, to uint8) bool {
	if v.deleted || v.Host[slot] == nobody || v.Host[0] == to || v.Host[1] == to ||
		v.to != nobody && v.Heeded < v.version {
		return false
	}
	v.defined = defined{v.version + 1, by, false, slot, to}
	return true
}

// looks has the partition of node x look at the table, and do what there is to do. over: the time of an instance that
// ends, and goes nowhere, is over.
func (r *turn) looks(x int, over bool) {
	if over && r.c.buffers {
		return
	}
	t := r.fork()
	r.look(t, x, over)
	text := "n%d looks at the table"
	if over {
		text = "n%d looks at the table, a second later"
	}
	r.take(t, note{text, x, 0, 0, false})
}

func (r *turn) look(t *state, x int, over bool) {
	c, o := r.c, &t.on[x]
	o.row = t.view[x].Placed
	if o.goes == evacuates || o.drain && o.goes == stays {
		r.evacuates(t, x)
	}
	if c.buffers {
		c.tends(t, x)
		return
	}
	var here [slots]Stamp
	for slot := range slots {
		here[slot] = o.here[slot].at
	}
	for _, d := range c.Duties(&o.row, uint8(x), here, o.over, o.asked, !over) {
		if d.Act == Begins && o.goes == left && c.keeps(leaverMakesNone) {
			continue
		}
		r.carriesOut(t, x, d)
	}
}

// carriesOut does one thing for the instance of a slot.
func (r *turn) carriesOut(t *state, x int, d Duty) {
	c, o := r.c, &t.on[x]
	ch := o.row.Change[d.Slot]
	switch d.Act {
	case Begins:
		r.makes(t, x, d.Slot, o.row.At, c.RankOf(&o.row, uint8(x), d.Slot, o.row.At))
	case Asks:
		q := &t.ask[d.Slot]
		if q.phase != idle && q.by != uint8(x) && t.stray[d.Slot].phase == idle {
			t.stray[d.Slot], *q = *q, request{}
		}
		if q.phase != idle || !c.mayAsk(t, x, d.Slot, ch) {
			return
		}
		if c.keeps(callEndsFirst) && o.row.Way.Old == cluster.OldForwards && o.here[d.Slot].busy != 0 {
			return
		}
		if !c.way(t, ch.To) {
			return
		}
		o.asked[d.Slot] = ch.At
		*q = request{asked, ch.At, uint8(x), ch.To}
		if !c.keeps(readyFirst) {
			o.over[d.Slot] = ch.At
		}
	case Completes:
		o.told[d.Slot], o.over[d.Slot] = ch.At, ch.At
	case Ends:
		if i := &o.here[d.Slot]; i.live && o.ends[d.Slot] == 0 {
			o.ends[d.Slot] = i.at
		}
		if d.Of && ch.To == nobody {
			o.over[d.Slot] = ch.At
		}
	}
}

// mayAsk reports whether node x has asked the new node of a change to make the instance, or knows a way to do so: else
// the change has not begun there, and its own instance handles.
func (c *compiled) mayAsk(t *state, x, slot int, ch Change) bool {
	return c.way(t, ch.To) || t.on[x].asked[slot] == ch.At || !c.keeps(handlesWithoutAWay)
}

// makes makes the instance of a slot on node x, if there is none.
func (r *turn) makes(t *state, x, slot int, at, rank Stamp) {
	c, i := r.c, &t.on[x].here[slot]
	if i.live {
		return
	}
	if !c.keeps(writerInFence) {
		rank = StampOf(rank.epoch(), 0)
	}
	*i = instance{live: true, at: at, rank: rank}
	if slot != 0 {
		return
	}
	if m := calledOn(t, x); m >= 0 {
		r.fault("TWO: n%d makes an instance while its last one handles message %d", x, m+1)
	}
	bit := uint64(1) << rank
	for y := range nodes {
		if y != x && t.given[y]&bit != 0 {
			r.fault("FENCE: n%d and n%d were both given %d.%d", x, y, int(rank.epoch()), int(rank&7))
		}
	}
	if t.given[x]&bit != 0 {
		r.fault("FENCE: n%d is given %d.%d twice", x, int(rank.epoch()), int(rank&7))
	}
	t.given[x] |= bit
}

// calledOn returns the message that an instance on node x handles, -1 for none.
func calledOn(s *state, x int) int {
	for m, d := range s.sent {
		if d.where == calls && int(d.to) == x {
			return m
		}
	}
	return -1
}

// ends has a message end the instance of a slot.
func (r *turn) ends(x, slot int) {
	o := &r.s.on[x]
	if o.ends[slot] == 0 || o.here[slot].busy != 0 {
		return
	}
	t := r.fork()
	if i := &t.on[x].here[slot]; i.at == o.ends[slot] || !r.c.keeps(endNamesOne) {
		*i = instance{}
	}
	t.on[x].ends[slot] = 0
	r.take(t, note{"n%d ends the instance of slot %d", x, slot, 0, false})
}

// requests carries the request to make an instance to the new node, and the answer back.
func (r *turn) requests(slot int) {
	c, s := r.c, r.s
	q := s.ask[slot]
	if q.phase != idle && (!s.alive.has(int(q.by)) || !s.alive.has(int(q.to))) {
		t := r.fork()
		t.ask[slot] = request{}
		r.take(t, note{"the request for slot %d ends with its node", slot, 0, 0, false})
		return
	}
	switch q.phase {
	case asked:
		for x := range nodes {
			if !r.reaches(x, q.to) {
				continue
			}
			t := r.fork()
			if r.prepares(t, q, x, slot) {
				t.ask[slot].phase = ready
			} else {
				t.ask[slot] = request{}
			}
			r.take(t, note{"n%d is asked to make the instance of slot %d", x, slot, 0, false})
		}
		if s.timeouts < c.Timeouts && s.stray[slot].phase == idle {
			t := r.fork()
			t.timeouts++
			t.ask[slot], t.stray[slot] = request{}, q
			r.take(t, note{"n%d waits no more for n%d and slot %d", int(q.by), int(q.to), slot, false})
		}
	case ready:
		t := r.fork()
		t.on[q.by].over[slot] = q.at
		t.ask[slot] = request{}
		r.take(t, note{"n%d hears that n%d is ready for slot %d", int(q.by), int(q.to), slot, false})
	}
	if q := s.stray[slot]; q.phase == asked {
		t := r.fork()
		t.stray[slot] = request{}
		if s.alive.has(int(q.to)) {
			r.prepares(t, q, int(q.to), slot)
		}
		r.take(t, note{"n%d is asked late to make the instance of slot %d", int(q.to), slot, 0, false})
	}
}

// reaches reports whether what goes to a node may come to x: when the shard has moved by which it comes, another one
// gets it that is given shards, if there is one.
func (r *turn) reaches(x int, to uint8) bool {
	s := r.s
	given := set(0)
	for y := range nodes {
		if y != int(to) && s.alive.has(y) && !s.on[y].doors {
			given |= only(y)
		}
	}
	if given == 0 {
		given = s.alive &^ only(int(to))
	}
	gone := !s.alive.has(int(to)) || s.on[to].doors && given != 0
	return gone && given.has(x) || !gone && x == int(to)
}

// prepares makes the instance that the old node hands over, on node x, and reports whether it is ready.
func (r *turn) prepares(t *state, q request, x, slot int) bool {
	c := r.c
	if x != int(q.to) && c.keeps(requestsNameOne) {
		return false
	}
	row := c.row(t, x, q.at)
	ch := row.Change[slot]
	if c.keeps(initIsCurrent) && q.at <= row.At && !(ch.At == q.at && int(ch.To) == x) {
		return false
	}
	r.makes(t, x, slot, q.at, q.at)
	return true
}

// leaves has x leave or drain, step by step.
func (r *turn) leaves(x int) {
	c, s := r.c, r.s
	o := &s.on[x]
	r.drains(x)
	switch {
	case o.goes == stays && c.leavers.has(x) && s.leaves == 0 && s.view[x].status[x] == up:
		t := r.fork()
		t.leaves++
		t.on[x].goes = evacuates
		r.take(t, note{"n%d begins to leave", x, 0, 0, true})
	case o.goes == evacuates && s.view[x].status[x] == up && c.empty(s, x) && (c.settled(s, x) || !c.keeps(settles)):
		t := r.fork()
		t.on[x].goes, t.on[x].doors = left, true
		t.view[x].status[x] = leaving
		for slot := range slots {
			if i := &t.on[x].here[slot]; i.busy != 0 && c.keeps(endsBehindItsCall) {
				t.on[x].ends[slot] = i.at
			} else {
				*i = instance{}
			}
		}
		r.take(t, note{"n%d leaves", x, 0, 0, false})
	}
}

// drains has x drain, and take that back: it says so at once. The way to it goes when all have seen that it has no
// instance, and is there again some time after it drains no more.
func (r *turn) drains(x int) {
	c, s := r.c, r.s
	o := &s.on[x]
	if o.goes == left || !c.drainers.has(x) {
		return
	}
	switch t := r.fork(); {
	case !o.drain && o.goes == stays && s.view[x].said < 8:
		t.on[x].drain = true
		r.take(t, note{"n%d drains", x, 0, 0, true})
	case o.drain && s.undrains < c.Undrains:
		t.on[x].drain = false
		t.undrains++
		r.take(t, note{"n%d drains no more", x, 0, 0, true})
	}
	if o.doors != o.drain && (o.doors || c.bare(s, x) && c.settled(s, x) || !c.keeps(shardsLast)) {
		t := r.fork()
		t.on[x].doors = o.drain
		r.take(t, note{"the way to n%d goes, or is there again", x, 0, 0, false})
	}
}

// settled reports whether all members have seen the view of x.
func (c *compiled) settled(s *state, x int) bool {
	for y, status := range s.view[x].status {
		if status <= leaving && !s.seen[x].has(y) {
			return false
		}
	}
	return true
}

// empty reports whether x has nothing to give away, by its table.
func (c *compiled) empty(s *state, x int) bool {
	v := &s.view[x]
	for slot := range slots {
		if v.Host[slot] != uint8(x) || v.deleted {
			continue
		}
		if ch, ok := v.pending(slot); ok && !ch.Complete && ch.To != nobody || !ok && c.fewest(s, x) != nobody {
			return false
		}
	}
	return true
}

// bare reports whether x has no instance, and none is to come or to go, by its table.
func (c *compiled) bare(s *state, x int) bool {
	v := &s.view[x]
	for slot := range slots {
		ch := v.Change[slot]
		if s.on[x].here[slot].live || v.Host[slot] == uint8(x) || ch.At != 0 && (ch.From == uint8(x) || ch.To == uint8(x)) {
			return false
		}
	}
	return true
}

// fewest returns a member that may take an instance of x.
func (c *compiled) fewest(t *state, x int) uint8 {
	v := &t.view[x]
	for y := range uint8(nodes) {
		named := false
		for slot := range slots {
			named = named || v.Host[slot] == y || v.Change[slot].At != 0 && v.Change[slot].To == y
		}
		if int(y) != x && v.status[y] == up && !named && !v.who.has(int(y)) && c.way(t, y) {
			return y
		}
	}
	return nobody
}

// evacuates asks for what is on x to be moved.
func (r *turn) evacuates(t *state, x int) {
	v := &t.view[x]
	for slot := range slots {
		if _, ok := v.pending(slot); ok || v.Host[slot] != uint8(x) || v.status[x] != up {
			continue
		}
		if to := r.c.fewest(t, x); to != nobody && v.version < 12 {
			asksMove(v, uint8(x), uint8(slot), to)
		}
	}
}

// fails has x crash, take a dead one for Down, or one that lives.
func (r *turn) fails(x int) {
	c, s := r.c, r.s
	if c.mortal.has(x) && s.crashes < c.Crashes {
		t := r.fork()
		t.crashes++
		c.kills(t, x)
		r.take(t, note{"n%d crashes", x, 0, 0, true})
	}
	if s.on[x].goes == left && s.view[x].status[x] == exiting && (!c.buffers || s.room.home != uint8(x)) &&
		calledOn(s, x) < 0 { // the shard by which a call came goes behind it
		t := r.fork()
		t.left |= only(x)
		c.kills(t, x)
		r.take(t, note{"n%d has left", x, 0, 0, false})
	}
	for y := range nodes {
		if y != x && s.alive.has(y) && s.view[y].status[x] == down {
			t := r.fork()
			c.kills(t, x)
			r.take(t, note{"n%d, which others take for Down, ends", x, 0, 0, false})
			break
		}
	}
	for y := range nodes {
		if y == x || s.view[x].status[y] == down {
			continue
		}
		mistake := s.alive.has(y)
		if mistake && (s.mistakes == c.Mistakes || !c.victims.has(y) || !c.deciders.has(x)) {
			continue
		}
		t := r.fork()
		if mistake {
			t.mistakes++
		}
		t.view[x].status[y] = down
		r.take(t, note{"n%d takes n%d for Down", x, y, 0, mistake})
	}
}

// kills ends a node, and what is with it or on the way to it.
func (c *compiled) kills(t *state, x int) {
	t.alive &^= only(x)
	goes := t.on[x].goes == left
	for m := range c.messages {
		d := &t.sent[m]
		switch {
		case d.where == unsent && c.sender(m) == x:
			d.where = reported // nobody sends it
		case d.where == flies && int(d.to) == x && goes:
			// another node has the shard by which it comes
		case (d.where == flies || d.where == calls) && int(d.to) == x,
			(d.where == backs || d.where == waits) && c.sender(m) == x:
			d.where = lost
		}
	}
	for slot := range slots {
		if t.stray[slot].phase != idle && (int(t.stray[slot].by) == x || int(t.stray[slot].to) == x) {
			t.stray[slot] = request{}
		}
	}
	if c.buffers {
		c.loses(t, x)
	}
}
