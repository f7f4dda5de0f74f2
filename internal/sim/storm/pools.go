// The pool of a storm: hosts give messages to whichever worker takes them, and in the end some worker answers everybody
// (SHD-12).

package storm

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// pools is the pool of a storm.
type pools struct {
	s    *storm
	rng  *rand.Rand
	typ  *world.EntityType
	sent [2]int // messages that a worker took at once: of the sender's node, and elsewhere
}

// poolsBound is how long after the last fault and the takeover time a worker answers every process.
const poolsBound = 30 * time.Second

// newPools declares a pool with shards that are moved and workers that fail now and then; all hosts send to it.
func newPools(rng *rand.Rand, s *storm) *pools {
	x := &pools{s: s, rng: rng}
	t := entity.Type{Name: "crew", Shards: 1 + uint32(rng.IntN(8)), Mode: entity.Mode(rng.IntN(3)),
		MailboxBytes: 1 << 10 << rng.IntN(3), Role: []string{"", "store"}[rng.IntN(2)]}
	if rng.IntN(2) == 0 {
		t.IdleAfter = between(rng, time.Second, 10*time.Second)
	}
	typ := route.TypeOf(t.Name)
	t.Open = func(c *entity.Context) (entity.Handler, error) {
		if !s.ending && rng.IntN(60) == 0 {
			return nil, errors.New("as the dice fell")
		}
		return &stormEntity{s: s, typ: typ, id: c.ID, p: s.w.Acting}, nil
	}
	x.typ = &world.EntityType{Type: t.WithDefaults(), PerNode: 1 + rng.IntN(4)}
	s.w.AddType(x.typ)
	x.move()
	for i := range s.w.Hosts {
		s.w.After(between(rng, 0, time.Second), func() { x.tick(i) })
	}
	return x
}

// tick makes a host send, and comes back.
func (x *pools) tick(host int) {
	s := x.s
	if s.ending {
		return
	}
	if p := s.w.Hosts[host].Process; p != nil && p.Alive && !p.Paused() {
		x.send(p)
	}
	s.w.After(between(x.rng, 100*time.Millisecond, 2*time.Second), func() { x.tick(host) })
}

// move has shards of the pool moved now and then.
func (x *pools) move() {
	x.s.w.After(between(x.rng, time.Second, 8*time.Second), func() {
		if !x.s.quiet() {
			moveOne(x.s, x.rng, x.typ)
			x.move()
		}
	})
}

// send gives messages of a process to the pool, seldom more than its own workers have room for.
func (x *pools) send(p *world.Process) {
	r := p.Region(route.TypeOf(x.typ.Name))
	n := 1 + x.rng.IntN(4)
	if x.rng.IntN(10) == 0 {
		n = 60
	}
	for range n {
		here := world.CrewOf(r).Here
		err := world.Offer(r, x.rng.Uint64(), func(id string) error {
			err := x.s.send(r, id, 2, 60)
			if err == nil {
				elsewhere := 1
				if slices.ContainsFunc(here, func(w plane.Worker) bool { return w.ID == id }) {
					elsewhere = 0
				}
				x.sent[elsewhere]++
			}
			return err
		})
		if errors.Is(err, route.ErrNoHost) && x.s.hostable(r.ID, []*world.Process{p}) {
			x.s.check.Violate(p, "pool", "a message has no host, and its own node is one")
		}
	}
}

// demand demands that a worker answers each process that lives on, when all is well.
func (x *pools) demand() {
	s, w := x.s, x.s.w
	id, bound := route.TypeOf(x.typ.Name), w.Takeover()+poolsBound
	answered, asks := map[*world.Process]bool{}, map[*world.Process]bool{}
	done := func() bool {
		all := true
		for _, p := range w.Running() {
			r := p.Region(id)
			if answered[p] || r == nil || r.Refused != nil || !s.hostable(id, w.Running()) {
				continue
			}
			if all = false; !asks[p] {
				asks[p] = true
				x.probe(r, func(ok bool) { answered[p] = ok; delete(asks, p) })
			}
		}
		return all
	}
	if !w.Until(bound, done) {
		s.check.Violate(nil, "pool", "no worker answers some process %v after the last fault", bound)
	}
}

// probe asks a worker, and says later whether it has answered.
func (x *pools) probe(r *world.Region, end func(ok bool)) {
	p := r.Process
	err := world.Offer(r, x.rng.Uint64(), func(id string) error {
		return p.Ask(5*time.Second, x.typ.Name, id, []byte{probeMark}, func(_ []byte, err error) {
			p.Later(100*time.Millisecond, func() { end(err == nil) })
		})
	})
	if err != nil {
		p.Later(500*time.Millisecond, func() { end(false) })
	}
}
