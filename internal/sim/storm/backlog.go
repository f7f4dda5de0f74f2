// Moves by hand, and backlogs in front of them: far more than its handlers take waits for a shard, at its senders, on
// the way and at its owner, when it begins to move. The move gets its marker through all the same, and hands over what
// waits, in order (SHD-9).

package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

const (
	backlogged   = 3                // in place of the hops of a message: it is one of a backlog
	backlogIDs   = 3                // entities of a shard that has one
	backlogLong  = 4 * time.Second  // handlers of a backlog are slow for so long
	backlogBound = 15 * time.Second // how long a move takes at most, beyond what its owner may wait for by its settings
	markSoon     = 2 * time.Second  // markers are at the owner by then where nothing but a backlog is in their way
)

// askMove makes a process ask for a move; the answer is nobody's concern.
func askMove(p *world.Process, c shard.MoveCommand, nonce uint64) {
	if !p.Paused() && !p.Stuck() {
		_ = p.Command(shard.AskMoveCommand{Type: c.Type, Shard: c.Shard, To: c.To, Nonce: nonce})
	}
}

// moveOne makes the coordinator of a type move one of its shards.
func moveOne(s *storm, rng *rand.Rand, t *world.EntityType) {
	up := s.up()
	if len(up) == 0 {
		return
	}
	c := shard.MoveCommand{Type: route.TypeOf(t.Name), Shard: route.ShardID(rng.IntN(int(t.Shards))),
		To: up[rng.IntN(len(up))].ID}
	if s.strategies { // any node may want it, and the coordinator is asked
		check.MovedByHand(s.check, world.ShardKey{Type: c.Type, Shard: c.Shard}, c.To)
		askMove(up[rng.IntN(len(up))], c, rng.Uint64()|1)
		return
	}
	moveTo(s, up, c)
}

// moveTo tells these processes to move a shard, until one does that coordinates its type.
func moveTo(s *storm, up []*world.Process, c shard.MoveCommand) {
	check.MovedByHand(s.check, world.ShardKey{Type: c.Type, Shard: c.Shard}, c.To)
	for _, p := range up {
		if !p.Paused() && !p.Stuck() && p.Command(c) == nil {
			break
		}
	}
}

// backlogs is what a storm with backlogs draws; nil in others.
type backlogs struct {
	s    *storm
	rng  *rand.Rand
	deep int // messages of one sender, at most
	most int // bytes of one, at most
	slow int // backlogs of slow handlers

	moved int // shards with one behind their move, when all was well
}

// drawBacklogs draws them. In most of these seeds little may be on the way, so that most of a backlog waits in links,
// and the senders have room to take that back.
func drawBacklogs(s *storm, d *setup.DataConfig, rng *rand.Rand) *backlogs {
	x := &backlogs{s: s, rng: rng, deep: 20 << rng.IntN(5), most: 50 << rng.IntN(5)}
	if rng.IntN(4) > 0 {
		d.Window, d.ParkRecords = 512<<rng.IntN(4), 512
		d.ParkBytes, d.ParkTotal = 4*d.LinkBuffer, 16*d.LinkBuffer
	}
	return x
}

// plan makes a backlog build up in front of a move now and then, in the middle of whatever goes on.
func (x *backlogs) plan() {
	if x == nil {
		return
	}
	x.s.w.After(between(x.rng, 2*time.Second, 9*time.Second), func() {
		if x.s.quiet() {
			return
		}
		x.plan()
		if m := x.pick(x.s.types[x.rng.IntN(len(x.s.types))]); m != nil {
			x.put(m)
			x.s.w.After(between(x.rng, 0, 300*time.Millisecond), func() { moveTo(x.s, x.s.up(), m.command()) })
			x.s.w.After(between(x.rng, 0, time.Second), func() { x.put(m) })
			x.slowFor(backlogLong)
		}
	})
}

// slowFor has handlers of backlogs take their time for so long.
func (x *backlogs) slowFor(d time.Duration) {
	x.slow++
	x.s.w.After(d, func() { x.slow-- })
}

// backlog is a shard that is to move.
type backlog struct {
	t     *world.EntityType
	key   world.ShardKey
	owner *world.Process
	to    *world.Process
	ids   []string
	sent  int
}

// command is the order to move it.
func (m *backlog) command() shard.MoveCommand {
	return shard.MoveCommand{Type: m.key.Type, Shard: m.key.Shard, To: m.to.ID}
}

// pick draws a shard of a type that lives, and a process to which it could move; nil if there is none.
func (x *backlogs) pick(t *world.EntityType) *backlog {
	id := route.TypeOf(t.Name)
	key := world.ShardKey{Type: id, Shard: route.ShardID(x.rng.IntN(int(t.Shards)))}
	homes, _ := x.s.check.Homes(key)
	var to []*world.Process
	for _, p := range x.s.up() {
		if m, ok := p.View.SelfMember(); ok && takes(p, id) && m.HasRole(p.Region(id).Role()) && p != last(homes) {
			to = append(to, p)
		}
	}
	if len(homes) != 1 || !homes[0].Alive || len(to) == 0 {
		return nil
	}
	m := &backlog{t: t, key: key, owner: homes[0], to: to[x.rng.IntN(len(to))]}
	for i := 0; len(m.ids) < backlogIDs; i++ {
		if id := fmt.Sprintf("b%d", i); key.Shard == shardOf(t, id) {
			m.ids = append(m.ids, id)
		}
	}
	return m
}

// shardOf returns the shard of an id of a type with a function, if any, that always gives one.
func shardOf(t *world.EntityType, id string) route.ShardID {
	n, _ := t.ShardOf(id)
	return n
}

func last(list []*world.Process) *world.Process {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// takes reports whether a process may use a type.
func takes(p *world.Process, id route.TypeID) bool {
	r := p.Region(id)
	return r != nil && r.Refused == nil
}

// put makes every process send to the shard until it has no room, or a backlog is deep.
func (x *backlogs) put(m *backlog) {
	for _, p := range x.s.w.Running() {
		if !takes(p, m.key.Type) || p.Paused() {
			continue
		}
		for range x.deep/2 + x.rng.IntN(x.deep/2) {
			if !x.send(p.Region(m.key.Type), m.ids[x.rng.IntN(len(m.ids))]) {
				break
			}
			m.sent++
		}
	}
}

// send sends one message and reports whether there was room for it.
func (x *backlogs) send(r *world.Region, id string) bool {
	p := r.Process
	size := min(world.LedgerSize+1+x.rng.IntN(x.most), x.s.w.Config.Data.MaxPayload) // larger ones have no backlog
	payload, nth := p.World.Book.Write(p, r.ID, id, size)
	payload[world.LedgerSize] = backlogged
	var err error
	if x.rng.IntN(8) == 0 {
		err = p.Ask(time.Duration(1+x.rng.IntN(8))*time.Second, r.Type.Name, id, payload, func(b []byte, err error) {
			p.World.Book.Answered(nth)
			x.s.reply(p, nth, b, err)
		})
	} else {
		_, err = r.Send(id, payload, 0)
	}
	if err != nil {
		x.s.rejected(p, nth, err)
	}
	return err == nil
}

// take is the handler of a message of a backlog: it takes its time, as it may in its mode.
func (x *backlogs) take(p *world.Process, c *entity.Context, payload []byte) {
	if x.slow > 0 {
		switch c.Type() {
		case entity.Blocking.String():
			p.Dawdle(between(x.rng, 10*time.Millisecond, time.Second))
		case entity.Worker.String():
			world.Toil(p, between(x.rng, 10*time.Millisecond, 200*time.Millisecond))
		default:
			world.Toil(p, between(x.rng, 100*time.Microsecond, inlineCall))
		}
	}
	if c.Asked() {
		_ = c.Reply(payload[:world.LedgerSize])
	}
}

// inlineCall is how long a call of an Inline handler takes, at most.
const inlineCall = 10 * time.Millisecond

// longestStick is for how long a fault stops a control loop, at most: longer than a calm may take to come right, and
// no process with a stopped loop says that it has sent its last message to an owner.
const longestStick = 12 * time.Second

// moveBesideBacklogs moves a shard of each mode when all is well but that it has a backlog.
func moveBesideBacklogs(s *storm) {
	x := s.backlogs
	if x == nil {
		return
	}
	s.w.Until(longestStick, func() bool { return !slices.ContainsFunc(s.w.Running(), (*world.Process).Stuck) })
	for _, t := range s.types {
		if s.check.Total > 0 {
			return
		}
		if m := x.pick(t); m != nil {
			x.move(m)
		}
	}
}

// move demands that the shard moves, or that a node says why it does not, within a bound.
func (x *backlogs) move(m *backlog) {
	s, w := x.s, x.s.w
	name := w.ShardName(m.key.Type, m.key.Shard)
	x.slow++
	defer func() { x.slow-- }()
	x.put(m)
	w.Advance(between(x.rng, 0, 300*time.Millisecond))
	told, fits := w.Now, x.fits(m)
	moveTo(s, s.up(), m.command())
	w.Advance(markSoon)
	began, end := check.LastMove(s.check, m.key)
	if began < told {
		return // another move of it goes on, or its coordinator has to wait
	}
	x.put(m)
	x.moved++
	bound := x.bound()
	over := func() bool { _, end = check.LastMove(s.check, m.key); return end != 0 }
	switch ended := w.Until(bound, over); {
	case slices.ContainsFunc(w.Running(), suspends):
	case !ended:
		s.check.Violate(m.owner, "liveness", "%s has not moved %v after it was told to, behind %d messages", name, bound,
			m.sent)
	case end == shard.MoveAborted && fits:
		s.check.Violate(m.owner, "liveness", "%s does not move for want of a marker, which waits behind %d messages", name,
			m.sent)
	}
}

// suspends reports whether a process has suspended itself, as it does when its tenure has run out: all may be well
// without it, but it sends no marker and stops no entity. A move that waits for it is given up, or does not end before
// the electorate is founded anew (storm seeds 13100007813, 13400003429).
func suspends(p *world.Process) bool { return p.Held() && !p.Stuck() }

// fits reports whether no marker may wait for the backlog until the move is given up.
func (x *backlogs) fits(m *backlog) bool {
	w := x.s.w
	for _, p := range w.Running() {
		if p == m.owner || !takes(p, m.key.Type) {
			continue
		}
		if !world.MarkFits(p, m.owner.ID, m.key) {
			return false
		}
	}
	c := &w.Config.Shard
	return c.MarkTime == 0 || c.MarkTime >= markSoon
}

// bound is how long a move may take: a backlog adds nothing to it.
func (x *backlogs) bound() time.Duration {
	c := &x.s.w.Config.Shard
	return backlogBound + max(c.MarkTime, shard.DefaultMarkTime) + max(c.DrainTime, shard.DefaultDrainTime)
}
