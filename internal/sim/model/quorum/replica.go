// Steps of replicas: what an owner has written reaches one, one gives another what it holds, and faults of disks.

package quorum

import "fmt"

// reaches: what an owner has written reaches a replica, any beginning of its history from the first that it sent.
func (t *turn) reaches() {
	o := t.owner()
	for p := o.first; p <= o.n; p++ {
		old, next := t.c.inForce(&o.h, p)
		to := old | next
		if !t.c.Near { // a future member may get the history before
			for _, w := range t.b.wishes[t.x] {
				to |= t.c.sets[w]
			}
		}
		if !t.c.keeps(ownSets) {
			to |= t.foreign(to)
		}
		for i := range t.c.n {
			q := &t.shard().r[i]
			switch {
			case !to.has(i), t.s.gone.has(i), q.promise > t.fence():
			case !t.c.keeps(fenceFirst) && changes(&q.h, q.number) > changes(&o.h, p):
			default:
				t.write(p, i, q)
			}
		}
	}
}

// write: number p of an owner reaches replica i, which holds q.
func (t *turn) write(p uint8, i int, q *replica) {
	o, f := t.owner(), t.fence()
	w := *q
	w.fence, w.number, w.h = f, p, o.h.upTo(p)
	switch first := p == o.first; {
	case q.fence == f && q.number >= p:
		t.put(p, i, *q, ", which has it")
		return
	case first && !t.c.keeps(beyondGoes) && q.number > p:
		w.number, w.h = q.number, q.h
		copy(w.h[:p], o.h[:p])
		t.put(p, i, w, ", which keeps what it holds beyond")
		return
	case first && !t.c.keeps(newFence) && q.number == p && q.h == w.h:
		t.put(p, i, *q, ", which has it under a lower fence")
		return
	case q.fence == f && q.number+1 == p:
		t.put(p, i, w, "")
	case t.c.keeps(wholeHistory), first && (q.h == w.h || q.number+1 == p && w.h.upTo(q.number) == q.h):
		t.put(p, i, w, ", which catches up")
	}
	if p > 0 {
		t.torn(p, i, *q)
		t.blind(p, i, q)
	}
}

// put stores what replica i makes of number p, and lets the owner know.
func (t *turn) put(p uint8, i int, w replica, how string) {
	if t.c.keeps(batchPromises) {
		w.promise = max(w.promise, t.fence())
		w.disk = w.promise
	}
	to, q := *t.s, &t.shard().r[i]
	to.s[t.n].r[i] = w
	if o := &to.s[t.n].o[t.x]; p == o.n && (o.phase == rewrites || o.phase == writes) {
		o.got |= only(i)
	}
	if to != *t.s {
		t.emit(to, t.c.undone(q, &w), t.note("number {n} of {f} reaches {r}"+how, i, p))
	}
}

// undone: what lies before the last entry is in a replica's state for good. With a rule off, what that means to callers
// is looked for instead.
func (c *compiled) undone(q, w *replica) string {
	if c.Broken&^oneUnderWay != 0 {
		return ""
	}
	for k := range int(q.number) - 1 {
		if w.h[k] != q.h[k] {
			return fmt.Sprintf("UNDONE: number %d, which the replica took for decided", k+1)
		}
	}
	return ""
}

// torn: broken, a new entry overwrites the last one where that lies, and power fails.
func (t *turn) torn(p uint8, i int, w replica) {
	if t.c.keeps(besideTheState) || t.s.crashes == t.c.Crashes || w.number == 0 {
		return
	}
	w.number--
	w.h[w.number] = 0
	w.promise = max(w.promise, t.fence())
	w.disk = w.promise
	to := *t.s
	to.crashes++
	to.s[t.n].r[i] = w
	t.emit(to, "", t.note("number {n} of {f} reaches {r}: a torn write, the last entry is gone", i, p))
}

// blind: broken, a replica takes an entry without the one before.
func (t *turn) blind(p uint8, i int, q *replica) {
	o, c := t.owner(), t.c
	old, _ := c.inForce(&o.h, p)
	gap := !c.keeps(noGap) && p > o.first
	lower := !c.keeps(sameFenceBefore) && q.number+1 == p
	newcomer := !c.keeps(newcomerCatchesUp) && o.h[p-1].isChange() && !old.has(i)
	if !gap && !lower && !newcomer {
		return
	}
	w := *q
	w.fence, w.number = t.fence(), p
	w.h[p-1] = o.h[p-1]
	w.h = w.h.upTo(p)
	if w.h != q.h {
		t.put(p, i, w, ", which does not look at the one before")
	}
}

// copies: a replica gives another one what it holds, as a history of the owner that wrote it. That owner may count it,
// as if it had sent it.
func (c *compiled) copies(s *state, n int, emit emits) {
	h := &s.s[n]
	for j := range c.n {
		from := &h.r[j]
		if from.fence == 0 || s.gone.has(j) {
			continue
		}
		for i := range c.n {
			if q := &h.r[i]; i != j && !s.gone.has(i) && c.takes(q, from) {
				c.copied(s, n, i, j, emit)
			}
		}
	}
}

// takes reports whether a replica that holds q takes a copy.
func (c *compiled) takes(q, from *replica) bool {
	if q.promise > from.fence && c.keeps(copyRefused) && c.keeps(copyStamped) {
		return false
	}
	return from.fence > q.fence || from.fence == q.fence && from.number > q.number
}

// copied: replica i takes what j holds.
func (c *compiled) copied(s *state, n, i, j int, emit emits) {
	to, from, q := *s, &s.s[n].r[j], &s.s[n].r[i]
	w := &to.s[n].r[i]
	*w = *from
	w.promise = max(q.promise, from.fence)
	w.disk = w.promise
	if !c.keeps(copyStamped) {
		w.fence = w.promise
	}
	x := int(from.fence) - 1
	if o := &to.s[n].o[x]; w.fence == from.fence && from.number == o.n && (o.phase == rewrites || o.phase == writes) {
		o.got |= only(i)
	}
	emit(to, c.undone(q, w), note{text: "{o} gives {r} what it holds, number {n} of {f}", shard: n, owner: x,
		replica: i, other: j, number: from.number})
}

// faults: crashes with the disk, power that fails everywhere, disks that go, disks that are wiped.
func (c *compiled) faults(s *state, emit emits) {
	for i := range c.n {
		if s.gone.has(i) {
			continue
		}
		if s.crashes < c.Crashes {
			to := *s
			to.crashes++
			to.restart(i)
			if to.s != s.s {
				emit(to, "", note{text: "{r} crashes and starts with its disk", replica: i})
			}
		}
		if s.losses < c.Losses && s.holds(i) {
			to := *s
			to.losses++
			to.wipe(i, c.keeps(diskIsIdentity))
			emit(to, "", note{text: "{r} loses its disk", replica: i})
		}
		if c.Release && c.released(s, i) {
			to := *s
			to.wipe(i, true)
			to.wiped |= only(i)
			emit(to, "", note{text: "{r}, no longer a member, is wiped", replica: i})
		}
		if c.Leaves && c.leaves(s, i) {
			to := *s
			to.wipe(i, true)
			to.wiped |= only(i)
			emit(to, "", note{text: "{r} has handed on what it holds, and leaves", replica: i})
		}
	}
	if s.crashes < c.Crashes {
		to := *s
		to.crashes++
		for i := range c.n {
			to.restart(i)
		}
		if to.s != s.s {
			emit(to, "", note{text: "power fails everywhere"})
		}
	}
}

// restart makes a replica forget what it has not on disk.
func (s *state) restart(i int) {
	for n := range s.s {
		q := &s.s[n].r[i]
		q.promise = max(q.disk, q.fence)
		q.disk = q.promise
	}
}

// holds reports whether anything is on a disk.
func (s *state) holds(i int) bool {
	for n := range s.s {
		if q := &s.s[n].r[i]; q.promise != 0 || q.number != 0 {
			return true
		}
	}
	return false
}

// wipe empties a disk, of all shards. Its id never answers again, unless that rule is off.
func (s *state) wipe(i int, gone bool) {
	for n := range s.s {
		s.s[n].r[i] = replica{}
	}
	if gone {
		s.gone |= only(i)
	}
}

// lastChange returns the position, from 1, of the last change that anybody got an answer of, its set, and all members
// before.
func (c *compiled) lastChange(h *shard) (at uint8, now, before set) {
	now = c.init
	for p, v := range h.told {
		if v.isChange() {
			before |= now
			at, now = uint8(p+1), c.sets[v&15]
		}
	}
	return at, now, before
}

// released reports whether a removed replica may be wiped: one more entry was decided under the set without it, in
// every shard that it held.
func (c *compiled) released(s *state, i int) bool {
	held, freed := 0, 0
	for n := range c.shards {
		h := &s.s[n]
		at, now, before := c.lastChange(h)
		if !(before | now).has(i) {
			continue
		}
		held++
		if at > 0 && !now.has(i) && (!c.keeps(lateRelease) || at < positions && h.told[at] != 0) {
			freed++
		}
	}
	return freed > 0 && (freed == held || !c.keeps(everyShardReleases))
}

// leaves reports whether a disk may leave, by what the others say alone: of each shard that it held, all members that
// live, and a majority, of a set without it hold an entry behind the change, under one fence. So that entry is decided,
// whenever each has said so.
func (c *compiled) leaves(s *state, i int) bool {
	held := false
	for n := range c.shards {
		h := &s.s[n]
		named := c.init
		for j := range c.n {
			for p := range h.r[j].number {
				if v := h.r[j].h[p]; v.isChange() {
					named |= c.sets[v&15]
				}
			}
		}
		if !named.has(i) {
			continue
		}
		held = true
		if !c.follows(s, n, i) {
			return false
		}
	}
	return held
}

// follows reports whether an entry was decided in a shard behind a change to a set without a replica.
func (c *compiled) follows(s *state, n, i int) bool {
	said := map[[2]uint8]set{} // by fence and set
	for j := range c.n {
		q := &s.s[n].r[j]
		if s.gone.has(j) || q.number == 0 || q.h[q.number-1].isChange() {
			continue
		}
		now := c.now(&q.h, q.number)
		at := [2]uint8{q.fence, uint8(now)}
		said[at] |= only(j)
		if now.has(i) {
			continue
		}
		if now.majority(said[at]) && now&^s.gone&^said[at] == 0 || !c.keeps(leaveIsDecided) {
			return true
		}
	}
	return false
}
