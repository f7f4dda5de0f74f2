// Care: shards that nobody owns follow the disks as well: a node claims such a shard, under the fence that it has, to
// change its set.

package records

import (
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

// carer is what a node knows of shards that nobody may care for. An owner that serves changes the set of its shard
// itself, in half of the time that a suspect waits for.
type carer struct {
	*desk
	queue   []suspect // the time of each is not before that of the one ahead
	queued  map[Shard]struct{}
	under   []caring
	cursor  string // of a pass over the heads of this disk
	sweepAt time.Duration
	found   bool // by this pass
	pass    int
}

// begins has a pass over the heads of this disk begin, where a member is gone that was one.
func (c *carer) begins(all peer.Set) {
	if len(c.members) == 0 || slices.ContainsFunc(c.members, func(id peer.ID) bool { return !all.Has(id) }) {
		c.sweepAt, c.cursor = c.now, ""
	}
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
func (c *carer) suspects(sh Shard, sets *Sets) {
	if _, is := c.queued[sh]; is || len(c.queue) >= c.cfg.MaxShards {
		return
	}
	c.missing(sets.Now, 0) // its time begins
	c.queued[sh] = struct{}{}
	c.queue = append(c.queue, suspect{sh, c.now + 2*c.cfg.ReplaceAfter})
	c.wake(c.queue[0].at)
}

// tick asks the replicas of suspects when their time has come, some at a time.
func (c *carer) tick() {
	c.sweeps()
	c.under = slices.DeleteFunc(c.under, c.over)
	for len(c.queue) > 0 && c.expired(c.queue[0].at) {
		if len(c.under) >= c.cfg.MaxCopies || c.pending >= c.cfg.MaxRequests {
			c.wake(c.now + c.cfg.Again)
			return
		}
		sh := c.queue[0].shard
		c.queue = c.queue[1:]
		delete(c.queued, sh)
		if slices.ContainsFunc(c.owners, func(o *owner) bool { return o.shard == sh && o.phase >= serves }) {
			continue // it cares, or hears that it is none
		}
		r := &request{shard: sh, kind: reading, query: Query{Ask: AskFloor}, deadline: c.now + c.cfg.Timeout}
		c.under = append(c.under, caring{shard: sh, ask: r, until: r.deadline})
		c.pending++
		c.wake(r.deadline)
		c.asksAnybody(r)
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
	o := c.owners[i]
	if !o.idle() || o.phase != serves {
		c.wake(c.now + c.cfg.Again)
		return false
	}
	if !c.expired(x.until) {
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
	case c.found || err != nil:
		c.found, c.cursor, c.sweepAt = false, "", c.now+4*c.cfg.ReplaceAfter
		c.pass++
	default:
		c.cursor, c.sweepAt = "", never
		return
	}
	c.wake(c.sweepAt)
}

// sweep looks at one head.
func (c *carer) sweep(sh Shard) {
	h, err := c.own.peeked(sh)
	if err != nil {
		return // counted where it is asked for
	}
	sets := h.current()
	if !c.wants(sh, &sets, h.stamp.Number, c.absent(sets.Now)) {
		return
	}
	c.found = true
	var live peer.Set
	for _, id := range sets.Now {
		if c.up.Has(id) || id == c.ident.id {
			live.Add(id)
		}
	}
	if len(live) > 0 && live[c.pass%len(live)] == c.ident.id {
		c.suspects(sh, &sets)
	}
}

// hears takes what a majority has said of a shard to a request under no fence. Where its set names disks that are gone
// it is suspected, and where it was, claimed under the fence that it has.
func (c *carer) hears(r *request, best *message) {
	at := slices.IndexFunc(c.under, func(x caring) bool { return x.ask == r })
	if at < 0 {
		if c.wants(r.shard, &best.sets, best.stamp.Number, c.absent(best.sets.Now)) {
			c.suspects(r.shard, &best.sets)
		}
		return
	}
	gone := c.missing(best.sets.Now, 2*c.cfg.ReplaceAfter)
	fence := r.poll.fence()
	i, there := c.find(r.shard, fence)
	if there || len(c.owners) >= c.cfg.MaxShards || !c.wants(r.shard, &best.sets, best.stamp.Number, gone) {
		c.under = slices.Delete(c.under, at, at+1)
		return
	}
	c.stats.Cared++
	c.under[at] = caring{r.shard, nil, fence, true, c.now + 30*c.cfg.Timeout}
	claim := &request{shard: r.shard, fence: fence, kind: claiming, deadline: c.now + c.cfg.Timeout}
	c.pending++
	c.wake(claim.deadline)
	o := &owner{shard: r.shard, fence: fence, attempt: r.poll.attempt(fence), waiting: []*request{claim}}
	c.owners = slices.Insert(c.owners, i, o)
	c.claims(o)
}
