// Care: shards that nobody owns follow the disks as well: a node claims such a shard, under the fence that it has, to
// change its set. A disk that leaves asks whether its shards are all elsewhere.

package records

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// sweepAtOnce is how many heads of the disk one tick looks at.
const sweepAtOnce = 64

// suspect is a shard that nobody may care for.
type suspect struct {
	shard Shard
	at    time.Duration // when to ask its replicas
}

// caring is the work on one shard: its replicas are asked, then it is claimed.
type caring struct {
	shard   Shard
	ask     *request
	fence   route.Fence
	claimed bool
	until   time.Duration
}

// lack is how long a shard is short of something, while its newest entry stays the same.
type lack struct {
	since time.Duration
	stamp Stamp
}

// carer is what a node knows of shards that nobody may care for. An owner that serves changes the set of its shard
// itself, in half of the time that a suspect waits for.
type carer struct {
	*desk
	queue   []suspect // the time of each is not before that of the one ahead
	queued  map[Shard]struct{}
	under   []caring
	cursor  string // of a pass over the heads of this disk
	sweepAt time.Duration
	open    bool // this pass has found one
	pass    int
	clean   map[Shard]struct{} // that need none of those that are gone, as a majority has said
	unused  map[Shard]struct{} // that were asked for here, and hold nothing: no replica knows of them
	since   time.Duration      // when this disk began to leave
	lent    int                // shards of this disk that the last whole pass did not find elsewhere
	lending int                // by this pass
	thin    map[Shard]lack     // shards of this disk, which leaves, that are not whole elsewhere
}

// leaves reports whether this disk is about to go.
func (c *carer) leaves() bool { return len(c.members) > 0 && !c.members.Has(c.ident.id) }

// begins has a pass over the heads of this disk begin, where a member is gone that was one. Shards that were never used
// are suspected where they were asked for.
func (c *carer) begins(was peer.Set) {
	if len(was) > 0 && !slices.ContainsFunc(was, func(id peer.ID) bool { return !c.members.Has(id) }) {
		return
	}
	c.sweepAt, c.cursor, c.open, c.lending, c.pass = c.now, "", false, 0, 0
	c.clean = map[Shard]struct{}{}
	if c.leaves() {
		c.since, c.lent, c.thin = c.now, max(c.own.shards, 1), map[Shard]lack{}
	}
	for _, sh := range slices.SortedFunc(maps.Keys(c.unused), Shard.compare) {
		if sets := (Sets{Now: c.core.found.setOf(sh)}); len(c.absent(sets.Now)) > 0 {
			c.suspects(sh, &sets, 2*c.cfg.ReplaceAfter)
		}
	}
}

// again has this disk, which leaves, ask once more for all shards.
func (c *carer) again() {
	if c.leaves() {
		c.sweepAt, c.cursor, c.open, c.lending, c.lent = c.now, "", false, 0, max(c.own.shards, 1)
		c.clean, c.thin = map[Shard]struct{}{}, map[Shard]lack{}
		c.wake(c.now)
	}
}

// busy reports whether there is anything to do, or to find out, for disks that are gone.
func (c *carer) busy() bool { return c.sweepAt != never || len(c.queue)+len(c.under) > 0 }

// live returns the replicas of a set that stay, and answer.
func (c *carer) live(set peer.Set) (live peer.Set) {
	for _, id := range set {
		if c.members.Has(id) && (c.up.Has(id) || id == c.ident.id) {
			live = append(live, id)
		}
	}
	return live
}

// whole reports whether all replicas of a set that answer hold what is behind its last change.
func (c *carer) whole(r *request, s *Sets) bool {
	return !slices.ContainsFunc(c.live(s.Now), func(id peer.ID) bool {
		return !slices.ContainsFunc(r.poll.heard, func(h heard) bool {
			return h.from == id && h.yes && (s.At == 0 || h.x.stamp.Number > s.At)
		})
	})
}

// wants reports whether the set of a history of that length has to change, or an entry is missing behind a change.
func (c *carer) wants(sh Shard, sets *Sets, number uint64, gone []peer.ID) bool {
	return sets.At == number && number > 0 || !replaced(sh, sets.Now, gone, c.members).Equal(sets.Now)
}

// absent returns those of these that are no members now.
func (c *carer) absent(set peer.Set) (gone []peer.ID) {
	for _, id := range set {
		if !c.members.Has(id) && len(c.members) > 0 {
			gone = append(gone, id)
		}
	}
	return gone
}

// suspects has a shard be looked at when its owner, if it has one, has had the time to change its set.
func (c *carer) suspects(sh Shard, sets *Sets, after time.Duration) {
	if _, is := c.queued[sh]; is || len(c.queue) >= c.cfg.MaxShards {
		return
	}
	c.missing(sets.Now, 0) // its time begins
	c.queued[sh] = struct{}{}
	i, _ := slices.BinarySearchFunc(c.queue, c.now+after+1, func(x suspect, at time.Duration) int {
		return cmp.Compare(x.at, at)
	})
	c.queue = slices.Insert(c.queue, i, suspect{sh, c.now + after})
	c.wake(c.queue[0].at)
}

// tick asks the replicas of suspects when their time has come, some at a time.
func (c *carer) tick() {
	c.sweeps()
	for i := range c.under {
		c.waited(&c.under[i])
	}
	c.under = slices.DeleteFunc(c.under, c.over)
	for len(c.queue) > 0 && c.expired(c.queue[0].at) {
		if len(c.under) >= c.cfg.MaxCopies || c.pending >= c.cfg.MaxRequests {
			c.wake(c.now + c.cfg.Again)
			return
		}
		sh := c.queue[0].shard
		c.queue = c.queue[1:]
		delete(c.queued, sh)
		owned := func(o *owner) bool { return o.shard == sh && o.phase >= serves }
		if !c.leaves() && slices.ContainsFunc(c.owners, owned) {
			continue // it cares, or hears that it is none
		}
		r := &request{shard: sh, kind: reading, query: Query{Ask: AskFloor}, deadline: c.now + c.cfg.Timeout}
		if c.leaves() {
			r.enough = c.whole
		}
		c.under = append(c.under, caring{shard: sh, ask: r, until: r.deadline})
		c.pending++
		c.wake(r.deadline)
		c.asksAnybody(r)
	}
}

// overdue reports whether nothing has changed of a shard of this disk, which leaves and is not whole elsewhere, for the
// time of a pass of others. An owner that writes, or feeds a newcomer behind a claim, needs no other one beside it.
func (c *carer) overdue(sh Shard, newest Stamp) bool {
	x, is := c.thin[sh]
	if !is || x.stamp != newest {
		x = lack{c.now, newest}
		c.thin[sh] = x
	}
	return c.now-x.since >= 4*c.cfg.ReplaceAfter
}

// waited has this disk, which leaves, care for a shard of which others hold too little for too long, as all of them
// say: the node that had cared for it is gone, or gave up a newcomer that was silent.
func (c *carer) waited(x *caring) {
	if x.claimed || !c.leaves() || !c.expired(x.until) || len(c.owners) >= c.cfg.MaxShards {
		return
	}
	best, enough := x.ask.poll.newest()
	silent := func(id peer.ID) bool { return !x.ask.poll.said(id) }
	if !enough || slices.ContainsFunc(c.live(best.sets.Now), silent) || !c.overdue(x.shard, best.stamp) {
		return
	}
	if i, there := c.find(x.shard, x.ask.poll.fence()); !there {
		*x = c.proposes(i, x.ask)
	}
}

// over ends the care for a shard where there is nothing more to do: all members that answer hold the history.
func (c *carer) over(x caring) bool {
	if !x.claimed {
		return c.expired(x.until)
	}
	i, there := c.find(x.shard, x.fence)
	if !there {
		return true
	}
	o, late := c.owners[i], c.expired(x.until)
	another := o.phase == rests && o.idle() // under the same fence cares, or the owner itself
	if !another && (!o.idle() || o.phase != serves && !late) {
		c.wake(c.now + c.cfg.Again)
		return false
	}
	if !another && !late {
		for k := range o.reps {
			if r := &o.reps[k]; c.up.Has(r.id) && (!r.has || r.acked < o.stamp.Number) {
				c.wake(c.now + c.cfg.Again)
				return false
			}
		}
	}
	c.drop(o)
	return true
}

// sweeps looks at some heads of this disk, as long as members of any are gone. The first of the members that answer
// suspects a shard; in the next pass the second one.
func (c *carer) sweeps() {
	if c.sweepAt == never || !c.expired(c.sweepAt) {
		return
	}
	var list []Shard
	n := 0
	err := c.own.disk.Each([]byte(headKey), []byte(headKey+c.cursor), func(key, _ []byte) bool {
		c.cursor = string(key[len(headKey):])
		if sh, ok := shardOf(c.cursor); ok {
			list = append(list, sh)
		}
		n++
		return n < sweepAtOnce
	})
	for _, sh := range list {
		c.sweep(sh)
	}
	switch {
	case err == nil && n == sweepAtOnce:
		c.sweepAt = c.now + 1
		c.wake(c.sweepAt)
		return
	case c.open || err != nil:
		c.open, c.cursor, c.sweepAt = false, "", c.now+4*c.cfg.ReplaceAfter
		if c.leaves() {
			c.sweepAt = c.now + c.cfg.ReplaceAfter/2
		}
		c.wake(c.sweepAt)
		c.pass++
	default:
		c.cursor, c.sweepAt = "", never
	}
	if c.leaves() && err == nil {
		c.lent = c.lending
	}
	c.lending = 0
}

// sweep looks at one head.
func (c *carer) sweep(sh Shard) {
	if _, is := c.clean[sh]; is {
		return
	}
	h, err := c.own.peeked(sh)
	if err != nil {
		return // counted where it is asked for
	}
	sets := h.current()
	if c.leaves() { // its owner has ReplaceAfter, and a moment
		c.open = true
		c.lending++
		c.suspects(sh, &sets, max(c.since+c.cfg.ReplaceAfter+8*c.cfg.Again-c.now, 0))
		return
	}
	if !sets.members(h.stamp.Number).Has(c.ident.id) {
		return // it has promised something, or was a replica once: those that are one now care
	}
	if !c.wants(sh, &sets, h.stamp.Number, c.absent(sets.Now)) {
		return
	}
	c.open = true
	live, is := c.live(sets.Now), sets.Now.Has(c.ident.id) // one that was until the last change hears what came behind
	if !is || len(live) > 0 && live[c.pass%len(live)] == c.ident.id {
		c.suspects(sh, &sets, 2*c.cfg.ReplaceAfter)
	}
}

// notes keeps in mind that a shard was asked for here, and holds nothing.
func (c *carer) notes(sh Shard, never bool) {
	switch {
	case !never:
		delete(c.unused, sh)
	case len(c.unused) < c.cfg.MaxShards:
		c.unused[sh] = struct{}{}
	}
}

// hears takes what a majority has said of a shard to a request under no fence. Where its set names disks that are gone
// it is suspected, and where it was, claimed under the fence that it has.
func (c *carer) hears(r *request, best *message) {
	at := slices.IndexFunc(c.under, func(x caring) bool { return x.ask == r })
	if at < 0 {
		c.notes(r.shard, best.stamp.Number == 0)
		if c.wants(r.shard, &best.sets, best.stamp.Number, c.absent(best.sets.Now)) {
			c.suspects(r.shard, &best.sets, 2*c.cfg.ReplaceAfter)
		}
		return
	}
	follows := r.poll.followed(&best.sets)
	if follows && len(c.absent(best.sets.Now)) == 0 && (!c.leaves() || c.whole(r, &best.sets)) {
		c.clean[r.shard] = struct{}{}
		delete(c.thin, r.shard)
	}
	gone := c.missing(best.sets.Now, 2*c.cfg.ReplaceAfter)
	fence := r.poll.fence()
	i, there := c.find(r.shard, fence)
	wants := !follows || !replaced(r.shard, best.sets.Now, gone, c.members).Equal(best.sets.Now)
	if there || len(c.owners) >= c.cfg.MaxShards || !wants ||
		c.leaves() && len(c.live(best.sets.Now)) > 0 && !c.overdue(r.shard, best.stamp) {
		c.under = slices.Delete(c.under, at, at+1)
		return
	}
	c.under[at] = c.proposes(i, r)
}

// proposes claims a shard under the highest fence that was promised, at that place among the owners.
func (c *carer) proposes(at int, r *request) caring {
	c.stats.Cared++
	fence, until := r.poll.fence(), c.now+30*c.cfg.Timeout
	claim := &request{shard: r.shard, fence: fence, kind: claiming, deadline: until}
	c.pending++
	c.wake(until)
	o := &owner{shard: r.shard, fence: fence, attempt: r.poll.attempt(fence), waiting: []*request{claim}}
	c.owners = slices.Insert(c.owners, at, o)
	c.claims(o)
	return caring{r.shard, nil, fence, true, until}
}
