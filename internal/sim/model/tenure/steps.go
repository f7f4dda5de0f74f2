// The steps: what may happen next, and what must never have happened.

package tenure

// turn takes the steps of one state.
type turn struct {
	c    *compiled
	s    *state
	emit func(to *state, w note)
	to   state // scratch memory
}

// fork returns the state for a change, which is good until the next one.
func (r *turn) fork() *state {
	r.to = *r.s
	return &r.to
}

// note says what a step does: a text with up to three numbers in it.
type note struct {
	text    string
	a, b, d int
}

// merges has x take over a view that was seen somewhere: a list and the members that go with it.
func (c *compiled) merges(t *state, x int, list uint8, in, up, down set) {
	v := &t.view[x]
	if back := v.gone & in &^ down; !c.keeps(numbersRemember) { // nothing says that they were members before
		v.down, v.gone = v.down&^back, v.gone&^back
	}
	v.in, v.up, v.down = v.in|in, v.up|up, v.down|down
	was := v.list
	if list == was || !c.newer(t, list, was) {
		return
	}
	before, now := c.holders(t, was), c.holders(t, list)
	w := &t.list[list]
	v.list, v.in, v.up, v.down = list, v.in|w.in, v.up|w.up, v.down|w.down
	if now.has(x) && !before.has(x) {
		t.seat[x].cold = c.promise
	}
	if c.keeps(namedHoldersOnly) {
		for g := range c.n {
			if !now.has(g) {
				t.own[x].until[g], t.own[x].asks[g] = 0, 0
			}
		}
	}
}

// shows returns what others learn from the view of y.
func (c *compiled) shows(s *state, y int) (in, up, down set) {
	v := s.view[y]
	if in, up, down = v.in, v.up, v.down; !c.keeps(numbersRemember) {
		in, up, down = in&^v.gone, up&^v.gone, down&^v.gone
	}
	return in, up, down
}

// gossip has x merge any view, also of a node that is dead, and any list that was ever written.
func (r *turn) gossip(x int) {
	if r.c.deaf.has(x) {
		return
	}
	for y := range r.c.n {
		if y == x || r.s.view[y].in == 0 {
			continue
		}
		t := r.fork()
		in, up, down := r.c.shows(r.s, y)
		r.c.merges(t, x, r.s.view[y].list, in, up, down)
		r.take(t, note{"n%d merges the view of n%d", x, y, 0})
	}
	for m := range r.s.written {
		if w := &r.s.list[m]; r.c.newer(r.s, m, r.s.view[x].list) {
			t := r.fork()
			r.c.merges(t, x, m, w.in, w.up, w.down)
			r.take(t, note{"n%d gets a view with list %d, written by n%d", x, int(w.number), int(w.writer)})
		}
	}
}

// doubts has x take another one for Down, rightly or not: that is also how it revokes its tenure.
func (r *turn) doubts(x int) {
	s, c := r.s, r.c
	for y := range c.n {
		if y == x || !c.losable.has(y) || !s.view[x].in.has(y) || (s.view[x].down | s.seat[x].revoked).has(y) {
			continue
		}
		t := r.fork()
		if !s.alive.has(y) {
			if !c.witnesses.has(x) {
				continue
			}
		} else {
			if s.mistakes == 0 || !c.deciders.has(x) || !c.victims.has(y) {
				continue
			}
			t.mistakes--
		}
		if !c.keeps(downFirst) {
			was := *t
			t.seat[x].revoked |= only(y)
			r.take(t, note{"n%d revokes n%d, its view does not show it", x, y, 0})
			was.view[x].down |= only(y)
			r.take(&was, note{"n%d takes n%d for Down", x, y, 0})
			continue
		}
		t.view[x].down |= only(y)
		r.take(t, note{"n%d takes n%d for Down, and revokes it", x, y, 0})
	}
}

// ends has x end, which its own view lists as Down.
func (r *turn) ends(x int) {
	if r.c.Ends && r.s.view[x].down.has(x) {
		t := r.fork()
		r.c.dies(t, x)
		t.farewells |= only(x)
		r.take(t, note{"n%d learns that it is Down, ends and says so", x, 0, 0})
	}
}

// joins has x let a joiner in, which takes over its view, and has a leader bring it Up.
func (r *turn) joins(x int) {
	v := r.s.view[x]
	for j := range r.c.n {
		if !r.c.joiners.has(j) {
			continue
		}
		if r.s.view[j].in == 0 {
			t := r.fork()
			t.alive |= only(j)
			t.view[x].in |= only(j)
			t.view[j] = t.view[x]
			t.view[j].seen = 0
			if !r.c.keeps(convergedJoins) {
				t.view[x].up |= only(j)
				t.view[j].up |= only(j)
			}
			r.take(t, note{"n%d lets n%d in", x, j, 0})
		}
		if v.members().has(j) && !v.up.has(j) && leads(v, x) && v.members().within(v.seen) {
			t := r.fork()
			t.view[x].up |= only(j)
			r.take(t, note{"n%d, leader, brings n%d Up", x, j, 0})
		}
	}
}

// forgets has x forget one that is Down for it and for all members that it knows.
func (r *turn) forgets(x int) {
	v := r.s.view[x]
	for y := range r.c.n {
		if !v.down.has(y) || v.gone.has(y) {
			continue
		}
		if r.s.prunes > 0 && leads(v, x) && v.members().within(v.seen) {
			t := r.fork()
			t.prunes--
			t.view[x].gone |= only(y)
			r.take(t, note{"n%d, leader, removes n%d and forgets it", x, y, 0})
		}
		for z := range r.c.n {
			if z != x && r.s.view[z].gone.has(y) {
				t := r.fork()
				t.view[x].gone |= only(y)
				r.take(t, note{"n%d forgets n%d, as n%d has", x, y, z})
				break
			}
		}
	}
}

// leads reports whether x leads by its view.
func leads(v view, x int) bool { return (v.up &^ v.down).lowest() == x }

// dies takes x away. What it has written and said stays readable.
func (c *compiled) dies(t *state, x int) {
	t.alive &^= only(x)
	t.fast &^= only(x)
	t.own[x], t.promised[x] = owner{}, 0
	t.seat[x].promise, t.seat[x].revoked, t.seat[x].cold = [nodes]uint8{}, 0, 0
	t.orders[x] = [nodes]uint8{}
	r := &t.reign[x]
	t.reign[x] = reign{rests: r.rests}
	t.view[x].seen = 0
	for y := range c.n {
		t.own[y].asks[x], t.seat[y].promise[x] = 0, 0 // it handles nothing: waiting for its promise changes nothing
	}
}

// crashes has x die.
func (r *turn) crashes(x int) {
	if r.s.crashes > 0 && r.c.mortal.has(x) {
		t := r.fork()
		t.crashes--
		r.c.dies(t, x)
		r.take(t, note{"n%d dies", x, 0, 0})
	}
}

// Seats: grants to owners, words to seekers, and the leader's changes of their holders.

// bars reports whether the holder of a seat grants x nothing.
func (c *compiled) bars(s *state, g, x int) bool {
	return s.seat[g].revoked.has(x) || c.keeps(membersOnly) && !s.view[g].members().has(x)
}

// warm reports whether the holder of a seat may speak, where a rule has new ones wait.
func (c *compiled) warm(s *state, g int, r Rule) bool { return s.seat[g].cold == 0 || !c.keeps(r) }

// asks has the owner x ask the holders that its list names, all at once or, where that hastens, one.
func (r *turn) asks(x int) {
	c, s := r.c, r.s
	if s.own[x].fence == 0 {
		return
	}
	t := r.fork()
	o := &t.own[x]
	named := c.holders(s, s.view[x].list)
	for g := range c.n {
		switch {
		case !named.has(g) || !s.alive.has(g):
		case g == x:
			if c.warm(s, x, newHolderGrantsLate) && !c.bars(s, x, x) {
				o.until[x], t.seat[x].promise[x] = c.grant, c.promise
			}
		case !c.hastens() && o.asks[g] == 0:
			o.asks[g] = 1 << (c.grant - 1)
		}
	}
	r.take(t, note{"n%d asks the seats that it knows for its tenure", x, 0, 0})
	for g := range c.n {
		for left := uint8(1); left <= c.grant; left++ {
			if s.own[x].asks[g]&(1<<(left-1)) != 0 || c.hastens() && left == c.grant && g != x && named.has(g) {
				r.grants(x, g, left)
			}
			r.counts(x, g, left)
		}
	}
}

// hastens reports whether a question comes when it is asked, and a grant under the very list of its owner when it is
// given. Those that come later add nothing. A question: while the owner names the holder it may ask at the moment in
// which that one reads, and reaches further under the same promise. A grant: it would reach less far, or as far, and an
// owner with more of its tenure takes every step that one with less of it takes. What is lost leaves less, too.
func (c *compiled) hastens() bool {
	return !c.Whole && c.keeps(fromTheAsking|namedHoldersOnly|listBeforeGrant)
}

// grants has g read a renewal of x.
func (r *turn) grants(x, g int, left uint8) {
	c, s := r.c, r.s
	under := s.view[g].list
	if !s.alive.has(g) || !c.holders(s, under).has(g) || !c.warm(s, g, newHolderGrantsLate) || c.bars(s, g, x) {
		return
	}
	t := r.fork()
	o := &t.own[x]
	o.asks[g] &^= 1 << (left - 1)
	t.seat[g].promise[x] = max(t.seat[g].promise[x], c.promise)
	if c.hastens() && under == s.view[x].list {
		o.until[g] = max(o.until[g], left)
	} else {
		o.got[g], o.under[g] = 1<<(left-1), under
	}
	r.take(t, note{"n%d grants n%d its tenure (list %d)", g, x, int(s.list[under].number)})
}

// counts has x read a grant of g.
func (r *turn) counts(x, g int, left uint8) {
	c, s := r.c, r.s
	if s.own[x].got[g]&(1<<(left-1)) == 0 {
		return
	}
	t := r.fork()
	o := &t.own[x]
	under := o.under[g]
	o.got[g], o.under[g] = 0, 0
	if c.keeps(listBeforeGrant) {
		c.merges(t, x, under, 0, 0, 0)
	}
	mine := t.view[x].list
	if c.keeps(listBeforeGrant) && under != mine && s.list[under].number >= s.list[mine].number ||
		c.keeps(namedHoldersOnly) && !c.holders(t, mine).has(g) {
		r.take(t, note{"n%d drops the grant of n%d", x, g, 0})
		return
	}
	if !c.keeps(fromTheAsking) {
		left = c.grant
	}
	o.until[g] = max(o.until[g], left)
	r.take(t, note{"n%d counts the grant of n%d (%d left)", x, g, int(left)})
}

// lost returns the nodes of which the holder g may say that their tenure is over.
func (c *compiled) lost(s *state, g int) set {
	lost := s.view[g].down | s.seat[g].revoked
	if !c.keeps(knownDown) { // also of those that it has not heard of yet
		for y := range c.n {
			if s.view[y].in != 0 && !s.view[g].in.has(y) {
				lost |= only(y)
			}
		}
	}
	return lost
}

// speaks has the holder g say that somebody's tenure is over, and which members it knows beside.
func (r *turn) speaks(g int) {
	c, s := r.c, r.s
	list := s.view[g].list
	if !c.holders(s, list).has(g) || !c.warm(s, g, newHolderWaits) {
		return
	}
	for y := range c.n {
		if y == g || !c.lost(s, g).has(y) || s.seat[g].over[list].has(y) ||
			s.farewells.has(y) || s.seat[g].promise[y] > 0 && c.keeps(promiseRunsOut) {
			continue
		}
		t := r.fork()
		t.seat[g].over[list] |= only(y)
		r.take(t, note{"n%d says (list %d): the tenure of n%d is over for me", g, int(s.list[list].number), y})
	}
	sought := false
	for b := range c.n {
		sought = sought || s.reign[b].phase == asking
	}
	if !sought || !c.keeps(wordsNameOthers) || s.seat[g].others[list] != 0 {
		return
	}
	t := r.fork()
	named := s.view[g].members()
	for y := range c.n {
		if s.seat[g].promise[y] > 0 {
			named |= only(y)
		}
	}
	t.seat[g].others[list] = named
	r.take(t, note{"n%d says (list %d) which members it knows", g, int(s.list[list].number), 0})
}

// changes has the leader x empty seats, fill empty ones, or found the electorate anew.
func (r *turn) changes(x int) {
	c, s := r.c, r.s
	v := s.view[x]
	if !leads(v, x) || c.keeps(seenByAll) && !v.members().within(v.seen) {
		return
	}
	emptied, lost, empty := s.list[v.list].holder, 0, 0
	for i, h := range emptied[:c.seats] {
		switch {
		case h == nobody:
			empty++
		case v.down.has(int(h)) || c.leavers.has(int(h)) && h != uint8(x):
			emptied[i] = nobody
			lost++
		}
	}
	filled := c.fill(s, x, emptied)
	rest := c.seats - lost - empty
	w := writer{r, x}
	if s.writes > 0 && (rest >= c.quorum || !c.keeps(quorumStays)) {
		switch {
		case lost > 0 && c.keeps(emptiedFirst):
			w.writes(emptied, false, "n%d, leader, empties seats: list %d is %03d")
		case lost > 0:
			w.writes(filled, false, "n%d, leader, gives seats to others: list %d is %03d")
		case empty > 0:
			w.writes(filled, false, "n%d, leader, fills empty seats: list %d is %03d")
		}
	}
	if s.refounds > 0 && rest < c.quorum && lost > 0 && (!c.keeps(endedBeforeRefounding) || v.down&s.alive == 0) {
		w.writes(filled, true, "n%d, leader, founds the electorate anew: list %d is %03d")
	}
}

// fill gives empty seats to spare members.
func (c *compiled) fill(s *state, x int, holder [places]uint8) [places]uint8 {
	v := s.view[x]
	spare := v.up &^ v.down & c.spares &^ c.holders(s, v.list)
	for i, h := range holder[:c.seats] {
		if h == nobody && spare != 0 {
			holder[i] = uint8(spare.lowest())
			spare &= spare - 1
		}
	}
	return holder
}

// writer is a leader that writes a list.
type writer struct {
	r *turn
	x int
}

func (w writer) writes(holder [places]uint8, anew bool, text string) {
	s, x := w.r.s, w.x
	v := s.view[x]
	number := s.list[v.list].number + 1
	if s.written == lists || holder == s.list[v.list].holder {
		return
	}
	for m := range s.written {
		if s.list[m].number == number && s.list[m].writer == uint8(x) {
			return
		}
	}
	t := w.r.fork()
	if anew {
		t.refounds--
	} else {
		t.writes--
	}
	l := t.written
	t.written++
	t.list[l] = seatList{number, uint8(x), holder, v.in, v.up, v.down}
	w.r.c.merges(t, x, l, 0, 0, 0)
	digits := 0
	for _, h := range holder[:w.r.c.seats] {
		digits = digits*10 + min(int(h), 9)
	}
	w.r.take(t, note{text, x, int(number), digits})
}

// Coordinators: one that begins to allocate, when it is ready, which orders are followed.

// begins has x begin to coordinate; its term is its number.
func (r *turn) begins(x int) {
	s, c := r.s, r.c
	if s.reign[x].phase != notYet || s.reigns == 0 || !c.seekers.has(x) || s.promised[x] > uint8(x+1) {
		return
	}
	t := r.fork()
	t.reigns--
	t.reign[x] = reign{phase: asking}
	for g := range c.n { // it asks the seats anew
		t.seat[g].others = [lists]set{}
	}
	t.report(x, x)
	r.take(t, note{"n%d begins to coordinate, term %d", x, x + 1, 0})
}

// report has x promise the term of b, and say what it owns.
func (t *state) report(b, x int) {
	q := &t.reign[b]
	t.promised[x] = uint8(b + 1)
	q.reported |= only(x)
	if t.own[x].fence > q.fence {
		q.fence, q.home = t.own[x].fence, uint8(x)
	}
	if y := &t.reign[x]; x != b && (y.phase == asking || y.phase == ready) {
		*y = reign{phase: superseded, rests: y.rests}
	}
}

// reports has x report to any that coordinates and knows it.
func (r *turn) reports(x int) {
	s := r.s
	for b := range r.c.n {
		q := &s.reign[b]
		if b == x || q.phase != asking && q.phase != ready || !s.alive.has(b) || q.reported.has(x) ||
			!s.view[b].in.has(x) || s.promised[x] > uint8(b+1) && r.c.keeps(noLowerTerms) {
			continue
		}
		t := r.fork()
		t.report(b, x)
		r.take(t, note{"n%d reports to n%d (owns %d)", x, b, int(s.own[x].fence)})
	}
}

// hosts has x follow an order.
func (r *turn) hosts(x int) {
	c, s := r.c, r.s
	for b := range c.n {
		for e := uint8(1); e < epochs; e++ {
			fence := uint8(b+1)<<3 | e
			if s.orders[x][b]&(1<<e) == 0 || s.own[x].fence != 0 || fence <= s.own[x].top || !s.view[x].up.has(x) ||
				s.promised[x] > uint8(b+1) && c.keeps(noLowerTerms) || c.keeps(ordersOfMembers) && s.view[x].down.has(b) {
				continue
			}
			t := r.fork()
			t.own[x].fence, t.own[x].top = fence, fence
			for i := range b { // lower ones are refused from now on
				t.orders[x][i] = 0
			}
			t.orders[x][b] &= 255 << (e + 1)
			if c.keeps(ordersCarry) {
				t.view[x].in |= s.reign[b].rests[e]
				t.view[x].down |= s.reign[b].rests[e]
			}
			r.take(t, note{"n%d hosts the shard under fence %d.%d", x, b + 1, int(e)})
		}
	}
}

// coordinates has x become ready, and give the shard away.
func (r *turn) coordinates(x int) {
	c, s := r.c, r.s
	q := &s.reign[x]
	v := s.view[x]
	if q.phase == asking && c.accounted(s, x) {
		t := r.fork()
		t.reign[x].phase = ready
		for y := range c.n {
			if c.keeps(seekerMarks) && !q.reported.has(y) && !s.farewells.has(y) && v.in.has(y) && !v.gone.has(y) &&
				c.ended(s, x, y) {
				t.view[x].down |= only(y)
			}
		}
		r.take(t, note{"n%d is ready to allocate", x, 0, 0})
	}
	if q.phase != ready || q.fence != 0 && !c.ended(s, x, int(q.home)) || q.epoch+1 >= epochs {
		return
	}
	for y := range c.n {
		if !c.hosts.has(y) || !q.reported.has(y) || !s.alive.has(y) || c.ended(s, x, y) || !v.up.has(y) || v.down.has(y) {
			continue
		}
		t := r.fork()
		p := &t.reign[x]
		p.epoch++
		if c.keeps(seekerMarks) && q.fence != 0 && !s.farewells.has(int(q.home)) {
			t.view[x].down |= only(int(q.home))
		}
		if c.keeps(ordersCarry) {
			p.rests[p.epoch] = t.view[x].down
		}
		p.home, p.fence = uint8(y), uint8(x+1)<<3|p.epoch
		t.orders[y][x] |= 1 << p.epoch
		r.take(t, note{"n%d gives the shard to n%d, epoch %d", x, y, int(p.epoch)})
	}
}

// Time, and all steps of a state.

// take hands a step on, if it leads anywhere, with what a leader has seen of others brought up to date.
func (r *turn) take(t *state, w note) {
	c := r.c
	for x := range c.n {
		v := &t.view[x]
		if v.list != r.s.view[x].list || v.in != r.s.view[x].in || v.up != r.s.view[x].up || v.down != r.s.view[x].down {
			v.seen = 0
		}
		if !c.asksWhoHasSeen(t, x) {
			v.seen = 0
			continue
		}
		for y := range c.n {
			o := &t.view[y]
			if t.alive.has(y) && o.list == v.list && o.in == v.in && o.up == v.up && o.down == v.down {
				v.seen |= only(y)
			}
		}
	}
	if c.keeps(sameList) {
		c.unread(t)
	}
	if !c.Whole {
		c.unfollowed(t)
		c.unheard(t)
		c.unanswered(t)
	}
	if *t != *r.s {
		r.emit(t, w)
	}
}

// asksWhoHasSeen reports whether x leads and waits until all have been seen with its view. What it waits for is in that
// view: when it begins to wait the view is new, and nobody has been seen with it.
func (c *compiled) asksWhoHasSeen(t *state, x int) bool {
	v := t.view[x]
	if !t.alive.has(x) || !leads(v, x) || t.writes+t.refounds+t.prunes == 0 && c.joiners == 0 {
		return false
	}
	if c.Whole || t.prunes > 0 && v.down&^v.gone != 0 || c.joiners&v.members()&^v.up != 0 {
		return true
	}
	for _, h := range t.list[v.list].holder[:c.seats] {
		if t.writes+t.refounds > 0 && (h == nobody || (v.down | c.leavers).has(int(h))) {
			return true
		}
	}
	return false
}

// unread drops words under lists that no coordinator holds or will hold: nobody reads them.
func (c *compiled) unread(t *state) {
	least := uint8(255)
	for b := range c.n {
		p := t.reign[b].phase
		if t.alive.has(b) && (p == asking || p == ready || t.reigns > 0 && p == notYet && c.seekers.has(b)) {
			least = min(least, t.list[t.view[b].list].number)
		}
	}
	for m := range t.written {
		for g := range c.n {
			if t.list[m].number < least {
				t.seat[g].over[m], t.seat[g].others[m] = 0, 0
			}
			t.seat[g].over[m] &^= t.farewells
		}
	}
}

// unfollowed drops orders that nobody will follow, and what only these rest on.
func (c *compiled) unfollowed(t *state) {
	var open [nodes]uint8
	for x := range c.n {
		for b := range c.n {
			if t.own[x].fence != 0 || t.promised[x] > uint8(b+1) && c.keeps(noLowerTerms) || // both for good
				c.keeps(ordersOfMembers) && c.keeps(numbersRemember) && t.view[x].down.has(b) {
				t.orders[x][b] = 0
			}
			open[b] |= t.orders[x][b]
		}
	}
	for b := range c.n {
		for e := range t.reign[b].rests {
			if open[b]&(1<<e) == 0 {
				t.reign[b].rests[e] = 0
			}
		}
	}
}

// unheard drops the views of the dead that show nothing to any that lives.
func (c *compiled) unheard(t *state) {
	if c.Live || !c.keeps(numbersRemember) || !c.keeps(knownDown) {
		return
	}
	for y := range c.n {
		v := &t.view[y]
		if t.alive.has(y) || c.joiners.has(y) || v.in == 0 {
			continue
		}
		news := false
		for x := range c.n {
			o := &t.view[x]
			news = news || t.alive.has(x) && (!v.in.within(o.in) || !v.up.within(o.up) || !v.down.within(o.down) ||
				!v.gone.within(o.gone) || c.newer(t, v.list, o.list))
		}
		if !news {
			*v = view{}
		}
	}
}

// unanswered drops questions that nobody grants any more, grants that change nothing, and what only a coordinator that
// asks would read, where none does or will.
func (c *compiled) unanswered(t *state) {
	newest := uint8(0)
	for m := range t.written {
		if c.newer(t, m, newest) {
			newest = m
		}
	}
	sought := t.reigns > 0
	for b := range c.n {
		sought = sought || t.reign[b].phase == asking
	}
	last := t.writes == 0 && t.refounds == 0 && c.keeps(fromTheAsking|lowerWriter|namedHoldersOnly|listBeforeGrant)
	bars := c.keeps(membersOnly) && c.keeps(numbersRemember)
	for x := range c.n {
		o := &t.own[x]
		if !sought {
			t.seat[x].promise[x], t.seat[x].others = 0, [lists]set{}
		}
		named := c.holders(t, t.view[x].list)
		for g := range c.n {
			if bars && t.view[g].down.has(x) {
				o.asks[g] = 0
			}
			for left := uint8(1); left <= c.grant && last && t.view[x].list == newest; left++ {
				if o.until[g] >= left || !named.has(g) {
					o.got[g] &^= 1 << (left - 1)
				}
			}
			if o.got[g] == 0 {
				o.under[g] = 0
			}
		}
	}
}

// steps takes all steps of a state.
func (r *turn) steps() {
	for x := range r.c.n {
		if !r.s.alive.has(x) {
			continue
		}
		r.asks(x)
		r.doubts(x)
		r.ends(x)
		r.gossip(x)
		r.joins(x)
		r.forgets(x)
		r.speaks(x)
		r.changes(x)
		r.crashes(x)
		r.begins(x)
		r.reports(x)
		r.hosts(x)
		r.coordinates(x)
	}
	r.time()
}

func less(v *uint8, d uint8) { *v -= min(*v, d) }

// time lets real time go on by a tick: each clock by one, or by none or two where it is off.
func (r *turn) time() {
	c, s := r.c, r.s
	var runs set // clocks on which something runs
	for x := range c.n {
		o, g := &s.own[x], &s.seat[x]
		if s.alive.has(x) && (g.cold != 0 || g.promise != [nodes]uint8{} || o.until != [nodes]uint8{} ||
			o.asks != [nodes]ask{} || o.got != [nodes]ask{}) {
			runs |= only(x)
		}
	}
	if runs == 0 && s.fast == 0 {
		return
	}
	for off := set(0); off < 1<<c.n; off++ {
		if !off.within(runs & c.drifters) {
			continue
		}
		t := r.fork()
		for x := range c.n {
			if !s.alive.has(x) {
				continue
			}
			d := uint8(1)
			if off.has(x) {
				if d = 2; s.fast.has(x) {
					d = 0
				}
				t.fast ^= only(x)
			}
			t.passes(x, d)
		}
		r.take(t, note{"time goes on (clocks that gain or lose a tick: %03b)", int(off), 0, 0})
	}
}

// passes has the clock of x go on.
func (t *state) passes(x int, d uint8) {
	o, g := &t.own[x], &t.seat[x]
	less(&g.cold, d)
	for y := range nodes {
		less(&g.promise[y], d)
		less(&o.until[y], d)
		o.asks[y] >>= d
		if o.got[y] >>= d; o.got[y] == 0 {
			o.under[y] = 0
		}
	}
}
