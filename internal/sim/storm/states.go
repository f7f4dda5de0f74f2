// States of a storm's entities: counts that move with them, and the law that holds for these (SHD-9, SHD-11).

package storm

import (
	"errors"
	"math/rand/v2"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// states is what a storm knows of the states that its entities hand over; nil: none has any.
type states struct {
	s     *storm
	rng   *rand.Rand
	given []given
	rows  map[stateKey]*stateRow

	told   map[toldKey]bool // with a reported loss, and not stopped yet
	stayed map[peer.ID]int  // states that a process kept since nobody could be given their shard
}

// toldKey is an entity at a process.
type toldKey struct {
	by peer.ID
	stateKey
}

type stateKey struct {
	typ route.TypeID
	id  string
}

// given is one state that was handed over.
type given struct {
	key   stateKey
	by    *world.Process
	shard route.ShardID
	fence route.Fence
	count int
	losses
	taken bool
}

// stateRow is what is known of one entity.
type stateRow struct {
	taken route.Fence // of the owner of the state taken up last
	under route.Fence // the highest of an owner that has begun, with a state or without
	last  int         // the state that was handed over last, from one
}

// begins notes an owner that begins; false: one with a higher fence has begun before.
func (r *stateRow) begins(f route.Fence) bool {
	if f.Compare(r.under) < 0 {
		return false
	}
	r.under = f
	return true
}

// losses says what has befallen the world until some moment: while it is the same no state is lost, unless its holder
// was lost before for those that the shard goes on among.
type losses struct{ gone, told int }

// drawLinks draws what the links carry, 8 to 100 Mbit/s, and how large states are: what is planned takes seconds there,
// and is no reason to take anybody for dead.
func drawLinks(s *storm, cfg *setup.Network, rng *rand.Rand) {
	cfg.Rate = []int{1_000_000, 2_500_000, 12_500_000}[rng.IntN(3)]
	s.pad = []int{0, 16 << 10, 128 << 10}[rng.IntN(3)]
}

// drawStates gives the entities of some types states.
func drawStates(s *storm) {
	rng, ok := s.draw(OffStates, 2)
	if !ok {
		return
	}
	s.states = &states{s: s, rng: rng, rows: map[stateKey]*stateRow{}, told: map[toldKey]bool{},
		stayed: map[peer.ID]int{}}
	for _, t := range s.types {
		open, typ := t.Open, route.TypeOf(t.Name)
		if rng.IntN(3) == 0 {
			continue
		}
		t.OnLost = func(p *world.Process, id string, why error) { s.states.lost(p, stateKey{typ, id}, why) }
		t.Open = func(c *entity.Context) (entity.Handler, error) {
			h, err := open(c)
			if err != nil {
				return nil, err
			}
			return &statefulEntity{stormEntity: h.(*stormEntity), key: stateKey{typ, c.ID}}, nil
		}
	}
}

// now returns what has befallen the world. One that has left in order is no loss: what it had moved, or was reported as
// lost.
func (b *states) now() (l losses) {
	l.told = b.s.w.Plane.StatesLost
	for _, p := range b.s.w.Processes {
		if left := world.HasLeft(p) && !b.s.check.Lost(p.ID); !left && (!p.Alive || p.Ended != nil || b.s.check.Lost(p.ID)) {
			l.gone++
		}
	}
	return l
}

// lost notes a state that was reported as lost.
func (b *states) lost(p *world.Process, k stateKey, why error) {
	b.told[toldKey{p.ID, k}] = true
	if errors.Is(why, entity.ErrStateNotMoved) {
		b.stayed[p.ID]++
	}
}

func (b *states) row(k stateKey) *stateRow {
	if b.rows[k] == nil {
		b.rows[k] = &stateRow{}
	}
	return b.rows[k]
}

// statefulEntity is a stormEntity that counts its messages; the count moves with it.
type statefulEntity struct {
	*stormEntity
	key   stateKey
	n     int
	began bool
	asked bool // for its state
}

// Receive implements entity.Handler.
func (h *statefulEntity) Receive(c *entity.Context, payload []byte) error {
	if c.StopReason() != entity.NotStopping { // it comes without a sender, also to an instance that had no message
		return h.stormEntity.Receive(c, payload)
	}
	if b := h.s.states; !h.began {
		h.began = true
		b.anew(h.p, h.key, c.Fence)
	}
	h.n++
	return h.stormEntity.Receive(c, payload)
}

// anew is the first message of an instance that has taken up nothing. That of a late owner, under an older fence than
// the one that the state was given under, takes nothing from the owner that it is for (storm 1142002915).
func (b *states) anew(p *world.Process, k stateKey, f route.Fence) {
	row := b.row(k)
	row.begins(f)
	if row.last == 0 {
		return
	}
	g := &b.given[row.last-1]
	if g.fence.Compare(f) >= 0 {
		return
	}
	if !g.taken && g.losses == b.now() && !b.excused(p, g) {
		b.s.check.Violate(p, "state", "%s/%s begins anew under %s, and its state of %s is lost without a fault",
			b.s.w.TypeName(k.typ), k.id, world.FenceName(f), world.FenceName(g.fence))
	}
	g.taken = true // the count goes on from here: it must not come later
	if row.taken.Compare(g.fence) < 0 {
		row.taken = g.fence
	}
}

// excused reports whether a state need not come to p though nothing has befallen the world since it was given: its
// owner, or its holder now, had been lost for the side of p before.
func (b *states) excused(p *world.Process, g *given) bool {
	return check.RestLost(b.s.check, p.ID, g.by.ID, world.ShardKey{Type: g.key.typ, Shard: g.shard}, g.fence)
}

// Stop implements entity.Handler. Where its shard goes, a process got the state, or the report that it is lost.
func (h *statefulEntity) Stop(c *entity.Context) {
	b, k := h.s.states, toldKey{h.p.ID, h.key}
	why := c.StopReason()
	if (why == entity.StopMoved || why == entity.StopLeaving) && !h.asked && !b.told[k] {
		h.s.check.Violate(h.p, "state", "%s/%s stops under %s for %v: it has not handed over, and nobody was told",
			h.s.w.TypeName(h.typ), h.id, world.FenceName(c.Fence), why)
	}
	delete(b.told, k)
	h.stormEntity.Stop(c)
}

// HandOver implements entity.Stateful.
func (h *statefulEntity) HandOver(c *entity.Context) ([]byte, error) {
	b := h.s.states
	h.asked = true
	h.lives(c, entity.StopMoved)
	if !h.s.ending {
		switch b.rng.IntN(40) {
		case 0:
			return nil, errors.New("as the dice fell")
		case 1:
			panic("as the dice fell")
		}
	}
	b.gave(h.p, given{key: h.key, shard: c.Shard, fence: c.Fence, count: h.n})
	return append(wire.AppendU64(nil, uint64(len(b.given))), make([]byte, b.rng.IntN(60)+h.s.pad)...), nil
}

// gave notes what an owner has handed over.
func (b *states) gave(p *world.Process, g given) {
	g.by, g.losses = p, b.now()
	b.given = append(b.given, g)
	b.row(g.key).last = len(b.given)
}

// takes judges that an owner under f takes up a state.
func (b *states) takes(p *world.Process, k stateKey, g *given, f route.Fence, began bool) {
	row := b.row(k)
	newest := row.begins(f)
	switch {
	case !newest && g.by.ID == p.ID && g.key == k && !began:
		return // a late owner, and what it kept itself: the one that has the shard went on without (storm 1142042101)
	case g.key != k || g.taken || g.fence.Compare(f) >= 0 || g.fence.Compare(row.taken) <= 0 || began:
		b.s.check.Violate(p, "state", "%s/%s takes up under %s what %s/%s gave under %s: taken before %t, after %s",
			b.s.w.TypeName(k.typ), k.id, world.FenceName(f), b.s.w.TypeName(g.key.typ), g.key.id,
			world.FenceName(g.fence), g.taken, world.FenceName(row.taken))
	}
	g.taken, row.taken = true, g.fence
}

// TakeUp implements entity.Stateful.
func (h *statefulEntity) TakeUp(c *entity.Context, state []byte) error {
	b := h.s.states
	r := wire.NewReader(0, state)
	g := &b.given[r.U64()-1]
	b.takes(h.p, h.key, g, c.Fence, h.began)
	h.began, h.n = true, g.count
	h.s.w.Plane.StatesTaken++
	if !h.s.ending && b.rng.IntN(60) == 0 {
		return errors.New("as the dice fell")
	}
	return nil
}
