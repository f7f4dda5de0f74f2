// The load of a storm: numbered messages to entities of every mode, with handlers that do what handlers may do; and
// what it keeps alive: a singleton, to which all send, and daemons, each in one place (SHD-9, SHD-12).

package storm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
)

// probeMark is the first byte of a message of the calm: answered, not in the ledger.
const probeMark = 1

// loadIDs is how many entities of a type get messages.
const loadIDs = 24

// loadTick sends a few messages from a host and comes back.
func (s *storm) loadTick(i int) {
	if s.ending {
		return
	}
	w := s.w
	if p := w.Hosts[i].Process; p != nil && p.Alive && !p.Paused() && len(plain(s, p)) > 0 {
		s.keeps.send(p)
		regions := plain(s, p)
		r := regions[s.load.IntN(len(regions))]
		id := fmt.Sprintf("e%d", s.load.IntN(loadIDs))
		burst, size := s.burst()
		for range burst {
			_ = s.send(r, id, 0, size)
		}
	}
	w.After(s.rest(), func() { s.loadTick(i) })
}

// burst draws how many messages a host sends at once, and how long they are at most.
func (s *storm) burst() (n, most int) {
	if s.heavy != nil {
		return s.heavy.burst()
	}
	n, most = 1+s.load.IntN(4), 60
	if s.load.IntN(30) == 0 {
		n, most = 40, 60+s.load.IntN(800) // fills links, parking queues and mailboxes
	}
	return n, most
}

// rest draws how long a host sends nothing then.
func (s *storm) rest() time.Duration {
	if s.heavy != nil {
		return s.heavy.rest()
	}
	pause := time.Duration(20+s.load.IntN(500)) * time.Millisecond
	if s.still || s.naps {
		pause *= 3 // long and quiet
	}
	return pause
}

// send writes one message of at most so many bytes, seldom more, into the ledger and sends it, now and then as an ask.
func (s *storm) send(r *world.Region, id string, hops byte, most int) error {
	p := r.Process
	size := world.LedgerSize + 1 + s.load.IntN(most)
	if s.load.IntN(40) == 0 {
		size += s.load.IntN(3000)
	}
	payload, nth := p.World.Book.Write(p, r.ID, id, size)
	payload[world.LedgerSize] = hops
	var err error
	if s.load.IntN(5) == 0 {
		told := false
		d, headers := s.limit(time.Duration(1+s.load.IntN(8))*time.Second, payload)
		err = p.AskWith(headers, d, r.Type.Name, id, payload, func(b []byte, err error) {
			if told {
				s.check.Violate(p, "asks", "an ask is told its end twice")
			}
			told = true
			p.World.Book.Answered(nth)
			s.reply(p, nth, b, err)
		})
	} else {
		_, err = r.Send(id, payload, 0)
	}
	if err != nil {
		s.rejected(p, nth, err)
	}
	return err
}

// limit returns how long an ask is waited for, and its headers: d and none, or little and the number of the message.
func (s *storm) limit(d time.Duration, payload []byte) (time.Duration, []byte) {
	if s.brief == nil || s.brief.IntN(3) == 0 {
		return d, nil
	}
	return time.Duration(1+s.brief.IntN(700)) * time.Millisecond, payload[:world.LedgerSize]
}

// stormEntity is the handler of all types. It writes to the store under its fence and to the ledger, and then does
// something that handlers may do.
type stormEntity struct {
	s    *storm
	p    *world.Process
	typ  route.TypeID
	id   string
	busy bool
	over bool

	lasts, said bool // its type has a stop message; it has come

	owes []owed          // asks that the next timer answers
	kept context.Context // of the last call
	own  ownTimers
}

// owed is an answer that its handler gives later.
type owed struct {
	token  entity.ReplyToken
	answer []byte
}

// Receive implements entity.Handler.
func (h *stormEntity) Receive(c *entity.Context, payload []byte) error {
	s, w := h.s, h.s.w
	if held := h.p.Held(); h.busy || h.over || held || h.p != w.Acting {
		s.check.Violate(h.p, "handler", "%s/%s: called before it returned (%t), after its end (%t), on a node that is "+
			"suspended (%t), or elsewhere (%t)", w.TypeName(h.typ), h.id, h.busy, h.over, held, h.p != w.Acting)
	}
	h.busy = true
	defer func() { h.busy = false }()
	if len(payload) > 0 && payload[0] == lastMark {
		return h.last(c)
	}
	h.lives(c, entity.NotStopping)
	s.check.Write(h.p, h.typ, h.id, c.Fence)
	s.keeps.holds(c, h.p)
	switch {
	case len(payload) > 0 && payload[0] == probeMark:
		return c.Reply(payload)
	case len(payload) > 0 && payload[0] == timerMark:
		for i := range h.owes {
			_ = h.owes[i].token.Reply(h.owes[i].answer)
		}
		h.owes = nil
		h.own.came(&s.timers, h.p, c, payload)
		return nil
	case len(payload) <= world.LedgerSize || !world.Numbered(payload):
		s.check.Violate(h.p, "delivery", "%s got a message that nobody sent", h.id)
		return nil
	}
	w.Delivered(h.p, h.typ, h.id, payload)
	s.keeps.worked(h.p)
	if got := c.Headers(); len(got) > 0 && !bytes.Equal(got, payload[:world.LedgerSize]) {
		s.check.Violate(h.p, "headers", "%s got the headers of another message: %x", h.id, got)
	}
	if c.Type() == entity.Blocking.String() {
		s.heavy.dawdles(h.p)
		s.waits.dawdles(h.p, h.id)
	}
	hops := payload[world.LedgerSize]
	if hops == backlogged {
		s.backlogs.take(h.p, c, payload)
		return nil
	}
	h.own.play(&s.timers, h.p, c)
	switch {
	case !c.Asked():
	case s.load.IntN(4) == 0 && h.own.set(&s.timers, h.p, c, "", time.Duration(s.load.IntN(4000))*time.Millisecond):
		h.owes = append(h.owes, owed{c.Detach(), slices.Clone(payload[:world.LedgerSize])})
	case s.load.IntN(8) > 0:
		_ = c.Reply(payload[:world.LedgerSize])
	}
	return h.act(c, hops)
}

// last is the stop message, which every instance of a type that has one gets once, behind all others.
func (h *stormEntity) last(c *entity.Context) error {
	if h.said {
		h.s.check.Violate(h.p, "handler", "%s/%s gets its stop message twice", h.s.w.TypeName(h.typ), h.id)
	}
	h.said = true
	h.lives(c, entity.StopMoved)
	h.s.check.Write(h.p, h.typ, h.id, c.Fence)
	if c.Asked() || len(c.Headers()) > 0 || c.SetTimer("", 0, nil) == nil {
		h.s.check.Violate(h.p, "handler", "%s/%s: its stop message has what messages of senders have", h.s.w.TypeName(h.typ),
			h.id)
	}
	return nil
}

// lives: a called entity is none of a suspended node, nor of a shard that is lost, and its context says so. Only the
// time of a stop may be over.
func (h *stormEntity) lives(c *entity.Context, why entity.StopReason) {
	ctx := c.Context()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, route.ErrTimeout) {
		h.s.check.Violate(h.p, "context", "%s/%s is called with a context that has ended: %v", h.s.w.TypeName(h.typ), h.id,
			cause)
	}
	if _, limited := ctx.Deadline(); !limited {
		if h.kept != nil && h.kept != ctx && h.kept.Err() == nil {
			h.s.check.Violate(h.p, "context", "%s/%s has two contexts that live", h.s.w.TypeName(h.typ), h.id)
		}
		h.kept = ctx
	}
	if stops := why != entity.NotStopping; h.said != (stops && h.lasts) {
		h.s.check.Violate(h.p, "handler", "%s/%s is called for %v and had its stop message (%t)", h.s.w.TypeName(h.typ), h.id,
			why, h.said)
	}
	if (c.StopReason() == entity.NotStopping) != (why == entity.NotStopping) {
		h.s.check.Violate(h.p, "handler", "%s/%s: the reason of its stop is %v", h.s.w.TypeName(h.typ), h.id, c.StopReason())
	}
}

// act is the random part.
func (h *stormEntity) act(c *entity.Context, hops byte) error {
	s := h.s
	s.crashes.panics(s)
	switch s.load.IntN(24) {
	case 0:
		return errors.New("as the dice fell")
	case 1:
		if s.crashes.tumbles(s) {
			panic("as the dice fell")
		}
	case 2:
		c.Passivate()
	case 3:
		h.own.set(&s.timers, h.p, c, "", time.Duration(s.load.IntN(2000))*time.Millisecond)
	case 4, 5:
		if hops < 2 {
			regions := plain(s, h.p)
			r := regions[s.load.IntN(len(regions))]
			_ = s.send(r, fmt.Sprintf("e%d", s.load.IntN(loadIDs)), hops+1, 60)
		}
	case 6, 7, 8, 9:
		if c.Type() == entity.Blocking.String() && hops < 2 {
			s.askFrom(h.p, c, hops+1)
		}
	}
	return nil
}

// askFrom is a Blocking handler that waits for another entity's answer.
func (s *storm) askFrom(p *world.Process, c *entity.Context, hops byte) {
	regions := plain(s, p)
	r := regions[s.load.IntN(len(regions))]
	id := fmt.Sprintf("e%d", s.load.IntN(loadIDs))
	if id == c.ID && r.Type.Name == c.Type() {
		return
	}
	payload, nth := p.World.Book.Write(p, r.ID, id, world.LedgerSize+1)
	payload[world.LedgerSize] = hops
	d, headers := s.limit(time.Duration(1+s.load.IntN(3))*time.Second, payload)
	b, err := c.With(headers).Ask(d, r.Type.Name, id, payload)
	if errors.Is(err, route.ErrShardStopping) && !p.World.Book.Sends(nth) {
		p.World.Book.Reject(nth) // the handler's own shard leaves, and waits for it: it learns so at once
		return
	}
	s.reply(p, nth, b, err)
	var link *flow.LinkFullError
	var park *route.ParkFullError
	var bulk *route.BulkFullError
	p.World.Book.Answered(nth)
	if !p.World.Book.Open(nth) { // it was accepted: this is its answer
		return
	}
	if errors.As(err, &link) || errors.As(err, &park) || errors.As(err, &bulk) || errors.Is(err, world.ErrDeadEnd) ||
		errors.Is(err, route.ErrSuspended) || errors.Is(err, route.ErrAsksFull) ||
		errors.Is(err, route.ErrMailboxFull) || errors.Is(err, route.ErrCrashed) || errors.Is(err, route.ErrNoHost) ||
		errors.Is(err, shard.ErrSettingsDiffer) {
		s.rejected(p, nth, err)
	}
}

// Stop implements entity.Handler.
func (h *stormEntity) Stop(c *entity.Context) {
	w := h.s.w
	if h.busy || h.over || h.p != w.Acting {
		h.s.check.Violate(h.p, "handler", "%s/%s stopped while busy (%t), twice (%t), or elsewhere (%t)", w.TypeName(h.typ),
			h.id, h.busy, h.over, h.p != w.Acting)
	}
	h.lives(c, entity.StopMoved)
	h.over = true
	h.s.check.Write(h.p, h.typ, h.id, c.Fence)
}

// keeps are the singleton and the daemons of a storm; nil: it has none.
type keeps struct {
	s     *storm
	rng   *rand.Rand
	lone  *world.EntityType
	crowd *world.EntityType
	book  *world.EntityType // its entities are remembered
	lives map[int][]life    // by daemon: the calls of its function that go on
	paged map[string]*page
	runs  int

	crowded map[string]life        // by remembered entity: where it could not begin last time, for want of room
	handled map[*world.Process]int // messages that somebody sent

	called int // of the singleton, with a lease
}

// life is one call of a daemon's function.
type life struct {
	p     *world.Process
	fence route.Fence
}

const (
	loneID     = "lone"
	keepsBound = 30 * time.Second // beyond the takeover time and the longest rest, every daemon runs
	daemonLook = 100 * time.Millisecond
)

// drawKeeps gives entities states, and declares a singleton and a few daemons.
func drawKeeps(s *storm) {
	drawStates(s)
	rng, ok := s.draw(OffKeeps, 2)
	if !ok {
		return
	}
	k := newKeeps(rng, s)
	role := []string{"", "store"}[rng.IntN(2)]
	resting := func(t entity.Type) entity.Type {
		t.Role = role
		t.RestartBackoff = between(rng, 20*time.Millisecond, time.Second)
		t.RestartWindow = t.RestartBackoff + between(rng, 0, 4*time.Second)
		return t.WithDefaults()
	}
	lone := route.TypeOf(loneID)
	k.lone = &world.EntityType{Keep: &entity.Keep{ID: func(route.ShardID) string { return loneID }}, Type: resting(
		entity.Type{Name: loneID, Shards: 1, Mode: entity.Mode(rng.IntN(3)), MailboxBytes: 1 << 10 << rng.IntN(5),
			Strategy: strategy.Oldest{},
			Open: func(c *entity.Context) (entity.Handler, error) {
				if !s.ending && rng.IntN(10) == 0 {
					return nil, errors.New("as the dice fell")
				}
				k.holds(c, s.w.Acting)
				s.check.Write(s.w.Acting, lone, c.ID, c.Fence)
				return &stormEntity{s: s, typ: lone, id: c.ID, p: s.w.Acting}, nil
			}})}
	k.crowd = &world.EntityType{Keep: &entity.Keep{Run: k.live,
		ID: func(n route.ShardID) string { return strconv.Itoa(int(n)) }}, Type: resting(
		entity.Type{Name: "crowd", Shards: 1 + uint32(rng.IntN(8)),
			New: func(string, route.Fence) entity.Handler { return &stormEntity{} }})}
	k.book = remembered(k, resting)
	k.drawLease()
	s.w.AddType(k.lone)
	s.w.AddType(k.crowd)
	s.w.AddType(k.book)
	s.keeps = k
	k.move()
}

// move has their shards moved now and then, in the middle of whatever goes on.
func (k *keeps) move() {
	s := k.s
	s.w.After(between(k.rng, time.Second, 8*time.Second), func() {
		if !s.quiet() {
			moveOne(s, k.rng, k.lone)
			moveOne(s, k.rng, k.crowd)
			moveOne(s, k.rng, k.book)
			k.move()
		}
	})
}

// live is the function of all daemons: it looks now and then whether it is to end, and now and then fails.
func (k *keeps) live(ctx context.Context, c *entity.Context) error {
	s, p, i := k.s, k.s.w.Acting, int(c.Shard)
	if ctx.Err() != nil || p.Held() {
		s.check.Violate(p, "daemon", "%d begins though it is to end (%v), or its node is suspended (%t)", i, ctx.Err(),
			p.Held())
	}
	me := life{p, c.Fence}
	for _, was := range k.lives[i] {
		if !mayBegin(s, me, was) {
			s.check.Violate(p, "daemon", "%d begins under %s, and goes on at n%d under %s", i, world.FenceName(c.Fence),
				was.p.Index+1, world.FenceName(was.fence))
		}
	}
	s.check.Write(p, route.TypeOf(k.crowd.Name), c.ID, c.Fence)
	k.runs++
	defer k.begins(i, me)()
	for ctx.Err() == nil {
		p.Dawdle(daemonLook)
		switch {
		case s.ending:
		case k.rng.IntN(80) == 0:
			return errors.New("as the dice fell")
		case k.rng.IntN(80) == 0:
			return nil
		case k.rng.IntN(160) == 0:
			panic("as the dice fell")
		}
	}
	return ctx.Err()
}

// begins notes a call of a daemon's function, until the function that it returns is called. A late owner, not notified
// yet, has one of its own beside that of its successor. Found by storm 1128400746.
func (k *keeps) begins(i int, me life) (ends func()) {
	k.lives[i] = append(k.lives[i], me)
	return func() {
		if at := slices.Index(k.lives[i], me); at >= 0 {
			k.lives[i] = slices.Delete(k.lives[i], at, at+1)
		}
	}
}

// idle lists the daemons that do not run in one place, where their shard lives, if they may live anywhere.
func idle(k *keeps) (list []int) {
	typ := route.TypeOf(k.crowd.Name)
	if !k.s.hostable(typ, k.s.w.Running()) {
		return nil
	}
	for i := range int(k.crowd.Shards) {
		homes, fence := k.s.check.Homes(world.ShardKey{Type: typ, Shard: route.ShardID(i)})
		if len(homes) != 1 || !slices.Contains(k.lives[i], life{homes[0], fence}) {
			list = append(list, i)
		}
	}
	return list
}

// mayBegin reports whether a call of a daemon's function may begin though an earlier one has not ended: its process is
// dead or Down, or sleeps or is suspended while others have formed a cluster anew, in which nobody knows of it.
func mayBegin(s *storm, l, was life) bool {
	// Without a resolver an operator downs some that live: until they learn of it they go on, and stores refuse them.
	unaware := !s.resolves() && s.check.Lost(l.p.ID)
	bygone := was.fence.Birth() != l.fence.Birth() && was.p.Held()
	return !was.p.Alive || s.check.Lost(was.p.ID) || unaware || bygone
}
