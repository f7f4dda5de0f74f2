// Senders that wait: every host sends more to a few slow Blocking entities than they can take, by TellWait. What that
// has accepted no mailbox refuses, and nobody waits for an entity that has room.

package storm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

const (
	waitIDs     = 3  // slow entities of a type
	mostWaiting = 10 // callers that wait on one host
)

// waits is what a storm with senders that wait draws; nil in others.
type waits struct {
	s       *storm
	rng     *rand.Rand
	slow    int           // one call of a slow entity in so many takes its time,
	longest time.Duration // up to this
	most    int           // bytes of a message
}

// drawWaits draws them.
func (s *storm) drawWaits() {
	rng, ok := s.draw(OffWaits, 2)
	if !ok {
		return
	}
	s.waits = &waits{s: s, rng: rng, slow: 1 + rng.IntN(8), longest: between(rng, 20*time.Millisecond, 3*time.Second),
		most: 64 << rng.IntN(5)}
}

// start makes all hosts send.
func (x *waits) start() {
	if x == nil {
		return
	}
	for i := range x.s.w.Hosts {
		x.s.w.After(between(x.rng, 0, 3*time.Second), func() { x.tick(i) })
	}
	x.look()
}

// look holds both ends to what they promise, four times a second.
func (x *waits) look() {
	x.s.w.CheckPressure()
	x.s.w.After(250*time.Millisecond, x.look)
}

// tick makes a host send a burst to one slow entity, unless many wait there already.
func (x *waits) tick(i int) {
	s := x.s
	if s.ending {
		return
	}
	if p := s.w.Hosts[i].Process; p != nil && p.Alive && !p.Paused() {
		if r := x.region(p); r != nil {
			id := fmt.Sprintf("e%d", x.rng.IntN(waitIDs))
			for range 1 + x.rng.IntN(20) {
				if n, _ := p.Waiting(); n >= mostWaiting {
					break
				}
				size := world.LedgerSize + 1 + x.rng.IntN(x.most)
				size = min(size, s.w.Config.Data.MaxPayload) // no mailbox refuses larger ones
				r.TellWait(id, func() error { return x.send(r, id, size) })
			}
		}
	}
	if p := s.w.Hosts[i].Process; p != nil && p.Alive && !s.quiet() && x.rng.IntN(12) == 0 {
		p.BreakSome(func() bool { return x.rng.IntN(4) == 0 }, "reset under those who wait")
	}
	s.w.After(between(x.rng, 20*time.Millisecond, 600*time.Millisecond), func() { x.tick(i) })
}

// region returns the Blocking type on a process.
func (x *waits) region(p *world.Process) *world.Region {
	for _, r := range p.Regions {
		if r.Type.Mode == entity.Blocking && !r.Kept() {
			return r
		}
	}
	return nil
}

// send is one attempt: each has an entry of its own, so that waiters need not keep their turns.
func (x *waits) send(r *world.Region, id string, size int) error {
	p := r.Process
	payload, nth := p.World.Book.Write(p, r.ID, id, size)
	payload[world.LedgerSize] = 2 // handlers send nothing on
	err := r.SendWait(id, payload)
	if err != nil {
		x.s.rejected(p, nth, err)
	}
	return err
}

// dawdles makes the handler of a slow entity take its time.
func (x *waits) dawdles(p *world.Process, id string) {
	if x != nil && !x.s.quiet() && len(id) == 2 && id[1] < '0'+waitIDs && x.rng.IntN(x.slow) == 0 {
		p.Dawdle(between(x.rng, time.Millisecond, x.longest))
	}
}

// demandRoom demands that every waiter for room gets it, now that all is well and no handler dawdles. Where no running
// node may host the type, the parking queue has room only when what is in it has waited too long: so as many as it
// holds get on in each bound, and some must.
func (s *storm) demandRoom() {
	var who *world.Process
	var why error
	waiting := func() (n int) {
		for _, p := range s.w.Running() {
			if m, first := p.Waiting(); m > 0 {
				who, why = p, first
				n += m
			}
		}
		return n
	}
	before := waiting()
	for !s.w.Until(fatesBound, func() bool { return waiting() == 0 }) {
		n := waiting()
		if n >= before || s.hostable(s.waits.region(who).ID, s.w.Running()) {
			s.check.Violate(who, "liveness", "%d callers wait for room though there is some: %v", n, why)
			return
		}
		before = n
	}
}

// rejected: what is not accepted must be said with a reason that names a bound or an end.
func (s *storm) rejected(p *world.Process, nth int, err error) {
	s.w.Book.Reject(nth)
	s.w.Denied(p, nth, err)
	var link *flow.LinkFullError
	var park *route.ParkFullError
	var bulk *route.BulkFullError
	if !errors.As(err, &link) && !errors.As(err, &park) && !errors.As(err, &bulk) && !errors.Is(err, route.ErrStopped) &&
		!errors.Is(err, world.ErrDeadEnd) && !errors.Is(err, route.ErrAsksFull) && !errors.Is(err, route.ErrMailboxFull) &&
		!errors.Is(err, route.ErrCrashed) && !errors.Is(err, route.ErrNoHost) &&
		!errors.Is(err, shard.ErrSettingsDiffer) &&
		!(errors.Is(err, route.ErrSuspended) && p.Held()) {
		s.check.Violate(p, "rejection", "a message was rejected without a good reason: %v", err)
	}
}

// reply is the end of an ask: an answer is that to what was asked, and an error which says that it was not executed is
// right.
func (s *storm) reply(p *world.Process, nth int, b []byte, err error) {
	s.w.Denied(p, nth, err)
	if err == nil && (len(b) != world.LedgerSize || world.NumberOf(b) != nth) {
		s.check.Violate(p, "asks", "the answer to message %d is %x", nth, b)
	}
}

// demandKept demands that the singleton answers, and that every daemon runs in one place, when all is well.
func demandKept(s *storm) {
	k, w := s.keeps, s.w
	if k == nil {
		return
	}
	bound := w.Takeover() + keepsBound
	if !w.Until(bound, func() bool { return len(idle(k)) == 0 }) {
		s.check.Violate(nil, "daemon", "%v do not run %v after the last fault", idle(k), bound)
	}
	demandPages(k, bound)
	key := world.ShardKey{Type: route.TypeOf(loneID)}
	lives := func() bool { homes, _ := s.check.Homes(key); return len(homes) == 1 }
	if s.hostable(key.Type, w.Running()) && !w.Until(bound, lives) {
		s.check.Violate(nil, "singleton", "it lives nowhere %v after the last fault", bound)
	}
}
