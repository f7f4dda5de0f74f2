// Steps of owners: claims, decisions, batches and changes of set, reads; and what is judged when an owner serves.

package quorum

import "fmt"

// note says what a step does: {f} stands for its owner, {r} for its replica, {n} for a number.
type note struct {
	text           string
	shard, owner   int
	replica, other int // from 0
	number         uint8
}

// emits takes a state that one step leads to, and what is wrong with that, which is "" for nothing.
type emits func(to state, bad string, n note)

// turn is the steps of one owner in one state.
type turn struct {
	c    *compiled
	s    *state
	n, x int // its shard, its number from 0
	b    *bounds
	emit emits
}

// fence is the owner's.
func (t *turn) fence() uint8  { return uint8(t.x + 1) }
func (t *turn) shard() *shard { return &t.s.s[t.n] }
func (t *turn) owner() *owner { return &t.s.s[t.n].o[t.x] }
func (t *turn) note(text string, i int, number uint8) note {
	return note{text: text, shard: t.n, owner: t.x, replica: i, number: number}
}

// quorum reports whether those that said yes suffice for a history that ends with position n: a majority of the set in
// force, and one of the set that the last position proposes.
func (t *turn) quorum(yes set, h *history, n uint8) bool {
	c := t.c
	if !c.keeps(setsOfDisks) {
		for _, s := range t.b.tables[t.x] {
			if !s.majority(yes) {
				return false
			}
		}
		return true
	}
	old, next := c.inForce(h, n)
	if !c.keeps(proposedIsNone) && n > 0 && h[n-1].isChange() && h[n-1].maker() == t.fence() {
		before, _ := c.inForce(h, n-1) // the node that made the change asks both
		return before.majority(yes) && old.majority(yes)
	}
	if !c.keeps(ownSets) && t.x > 0 { // the first owner came before those of the other shards changed anything
		old = t.foreign(old)
	}
	switch {
	case old == 0 && next == 0: // broken: nothing is written down, and all that the table names have nothing
		return c.sets[t.b.wishes[t.x][0]]&^yes == 0
	case old == 0:
		return next&^yes == 0
	case next == 0 || !c.keeps(newMajority):
		return old.majority(yes)
	case !c.keeps(oldMajority):
		return next.majority(yes)
	}
	return old.majority(yes) && next.majority(yes)
}

// foreign returns what an owner takes for the set in force that believes the other shards of its group.
func (t *turn) foreign(old set) set {
	for n := range t.c.shards {
		told := &t.s.s[n].told
		if n != t.n && changes(told, positions) > 0 {
			return t.c.now(told, positions)
		}
	}
	return old
}

// claimed: the claim reaches a replica, at any time; the answer reaches the owner, or is late or lost.
func (t *turn) claimed() {
	f, o := t.fence(), t.owner()
	for i := range t.c.n {
		q := &t.shard().r[i]
		if t.s.gone.has(i) || q.promise > f || t.c.Near && !t.near(i) {
			continue
		}
		to := *t.s
		r := &to.s[t.n].r[i]
		r.promise = f
		if t.c.keeps(promiseOnDisk) {
			r.disk = f
		}
		if *r != *q {
			t.emit(to, "", t.note("the claim of {f} reaches {r}; the answer is late or lost", i, 0))
		}
		if o.phase == claims && !o.got.has(i) && q.fence < f {
			p := &to.s[t.n].o[t.x]
			p.got |= only(i)
			if q.fence > o.fence || q.fence == o.fence && q.number > o.n {
				p.fence, p.n, p.h = q.fence, q.number, q.h.upTo(q.number)
			}
			t.emit(to, "", t.note("{r} promises {f} and says that it has accepted number {n}", i, q.number))
		}
	}
}

// near reports whether a replica is of a set that the claimer has heard of.
func (t *turn) near(i int) bool {
	o := t.owner()
	n := o.n
	if o.phase != claims {
		n = o.first
	}
	old, next := t.c.inForce(&o.h, n)
	return (old | next | t.c.init).has(i)
}

// claims: the owner takes the newest history that it has heard of, when the promises suffice for that one.
func (t *turn) claims() {
	o := t.owner()
	h, n := &o.h, o.n
	if !t.c.keeps(answersTellSets) {
		h, n = &history{}, 0
	}
	if !t.quorum(o.got, h, n) {
		return
	}
	to := *t.s
	p := &to.s[t.n].o[t.x]
	p.phase, p.got, p.fence, p.first = rewrites, 0, 0, o.n
	bad := ""
	if !t.c.keeps(rewriteFirst) || o.n == 0 && t.c.init == 0 {
		p.phase = serves
		bad = t.c.tell(&to, t.n, t.x)
	}
	t.emit(to, bad, t.note("{f} has its claim; its history has {n} positions", 0, o.n))
}

// decides: what the owner writes is decided, and it serves.
func (t *turn) decides() {
	o := t.owner()
	if o.phase != rewrites && o.phase != writes || !t.quorum(o.got, &o.h, o.n) {
		return
	}
	to := *t.s
	p := &to.s[t.n].o[t.x]
	p.phase, p.got = serves, 0
	bad := t.c.tell(&to, t.n, t.x)
	t.emit(to, bad, t.note("{f} holds that number {n} is decided, and serves", 0, o.n))
}

// begins: an owner that serves begins a batch or a change of set.
func (t *turn) begins() {
	o := t.owner()
	if o.phase != serves && (t.c.keeps(oneUnderWay) || o.phase != writes) || o.n == positions {
		return
	}
	now := t.c.now(&o.h, o.n)
	if o.mine < t.b.batches[t.x] && now != 0 {
		to := *t.s
		to.s[t.n].o[t.x].begin(value(t.fence())).mine++
		t.emit(to, "", t.note("{f} begins a batch, number {n}", 0, o.n+1))
	}
	if wishes := t.b.wishes[t.x]; int(o.sets) < len(wishes) && t.c.sets[wishes[o.sets]] != now {
		to := *t.s
		to.s[t.n].o[t.x].begin(changeTo(wishes[o.sets], t.fence())).sets++
		t.emit(to, "", t.note("{f} begins a change of set, number {n}", 0, o.n+1))
	}
}

func (o *owner) begin(v value) *owner {
	o.phase, o.got, o.h[o.n] = writes, 0, v
	o.n++
	return o
}

// reads: an owner asks a majority whether its fence holds, and then answers from what it has.
func (t *turn) reads() {
	o, f := t.owner(), t.fence()
	if t.c.Reads && o.phase == serves {
		to := *t.s
		p := &to.s[t.n].o[t.x]
		p.phase, p.got, p.before = reads, 0, t.shard().told.length()
		t.emit(to, "", t.note("{f} begins a read", 0, 0))
	}
	if o.phase != reads {
		return
	}
	for i := range t.c.n {
		if !t.s.gone.has(i) && t.shard().r[i].promise <= f && !o.got.has(i) {
			to := *t.s
			to.s[t.n].o[t.x].got |= only(i)
			t.emit(to, "", t.note("{r} says that it knows no fence above that of {f}", i, 0))
		}
	}
	if !t.c.now(&o.h, o.n).majority(o.got) && t.c.keeps(readsAsk) {
		return
	}
	to := *t.s
	p := &to.s[t.n].o[t.x]
	p.phase, p.got, p.before = serves, 0, 0
	bad := ""
	if o.n < o.before {
		bad = fmt.Sprintf("STALE: a read without number %d, which was told before it began", o.before)
	}
	t.emit(to, bad, t.note("{f} answers the read", 0, 0))
}

// length returns the last position that is taken.
func (h *history) length() (n uint8) {
	for p, v := range h {
		if v != 0 {
			n = uint8(p + 1)
		}
	}
	return n
}

// tell notes that an owner holds all of its history to be decided, and may show it. It returns what is wrong with that.
func (c *compiled) tell(s *state, n, x int) string {
	h := &s.s[n]
	o := &h.o[x]
	for p := range uint8(positions) {
		was, v := h.told[p], value(0)
		if p < o.n {
			v = o.h[p]
			if bad := c.judge(h, n, x, p, v); bad != "" {
				return bad
			}
		}
		switch {
		case was != 0 && v != 0 && was != v:
			return fmt.Sprintf("CONFLICT: position %d is %s for f%d, and was %s for f%d",
				p+1, c.text(v), x+1, c.text(was), h.by[p])
		case was != 0 && v == 0 && h.by[p] <= uint8(x+1):
			return fmt.Sprintf("LOST: f%d serves without position %d, %s, of which f%d was told",
				x+1, p+1, c.text(was), h.by[p])
		case was == 0 && v != 0:
			h.told[p], h.by[p] = v, uint8(x+1)
		}
	}
	return ""
}

// judge returns what is wrong with one value of a history that is served.
func (c *compiled) judge(h *shard, n, x int, p uint8, v value) string {
	if v == 0 {
		return fmt.Sprintf("HOLE: f%d serves a history without position %d", x+1, p+1)
	}
	if !v.isChange() && (int(v) > c.shards[n].owners || h.o[v-1].mine == 0) {
		return fmt.Sprintf("NOWHERE: f%d serves a value that nobody wrote at position %d", x+1, p+1)
	}
	return ""
}

// text names a value.
func (c *compiled) text(v value) string {
	if v.isChange() {
		return fmt.Sprintf("set %s by f%d", c.sets[v&15], v.maker())
	}
	return fmt.Sprintf("a batch of f%d", v)
}
