// Remembered entities in a storm: a store that never fails for long says which there are, and all of them must live.

package storm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// pages is how many entities the store knows.
const pages = 12

// page is an instance of a remembered entity, until it is known to have ended.
type page struct {
	k     *keeps
	p     *world.Process
	id    string
	fence route.Fence
}

// remembered declares the type of the entities.
func remembered(k *keeps, resting func(entity.Type) entity.Type) *world.EntityType {
	shards := 1 + uint32(k.rng.IntN(6))
	t := entity.Type{Name: "book", Shards: shards, Mode: entity.Mode(k.rng.IntN(3)), Open: k.open}
	t.Remembered = func(_ context.Context, n route.ShardID, _ route.Fence) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for i := range pages {
				id := fmt.Sprint("page", i)
				if !k.s.ending && k.rng.IntN(40) == 0 {
					yield("", errors.New("as the dice fell"))
					return
				}
				if route.ShardOf(id, shards) == n && !yield(id, nil) {
					return
				}
			}
		}
	}
	return &world.EntityType{Type: resting(t)}
}

// open makes an instance, and now and then fails.
func (k *keeps) open(c *entity.Context) (entity.Handler, error) {
	s, p := k.s, k.s.w.Acting
	if !s.ending && k.rng.IntN(8) == 0 {
		return nil, errors.New("as the dice fell")
	}
	s.check.Write(p, route.TypeOf(k.book.Name), c.ID, c.Fence)
	if was := k.paged[c.ID]; was != nil && was.p == p && was.fence == c.Fence {
		s.check.Violate(p, "remembered", "%s begins, and lives here", c.ID)
	}
	if err := k.turn(c); err != nil {
		return nil, err // no room
	}
	g := &page{k, p, c.ID, c.Fence}
	g.begins()
	return g, nil
}

// begins notes an instance. That of an owner who is late, and has not been told, takes no other's place: it ends with
// its node, while its successor's lives. Found by storm 881196.
func (g *page) begins() {
	if was := g.k.paged[g.id]; was == nil || !was.p.Alive || g.fence.Compare(was.fence) >= 0 {
		g.k.paged[g.id] = g
	}
}

// Receive gets messages of timers alone, and now and then fails.
func (g *page) Receive(c *entity.Context, _ []byte) error {
	if k := g.k; !k.s.ending {
		if k.rng.IntN(6) == 0 {
			g.end()
			panic("as the dice fell")
		}
		return k.turn(c)
	}
	return nil
}

// turn has an entity called some time later.
func (k *keeps) turn(c *entity.Context) error {
	return c.SetTimer("turn", between(k.rng, 100*time.Millisecond, 4*time.Second), []byte{timerMark})
}

// Stop implements entity.Handler.
func (g *page) Stop(*entity.Context) { g.end() }

func (g *page) end() {
	if g.k.paged[g.id] == g {
		delete(g.k.paged, g.id)
	}
}

// unpaged lists the entities that do not live where their shard does, if it may live anywhere.
func unpaged(k *keeps) (list []string) {
	typ := route.TypeOf(k.book.Name)
	if !k.s.hostable(typ, k.s.w.Running()) {
		return nil
	}
	for i := range pages {
		id := fmt.Sprint("page", i)
		homes, fence := k.s.check.Homes(world.ShardKey{Type: typ, Shard: route.ShardOf(id, k.book.Shards)})
		if g := k.paged[id]; g == nil || g.fence != fence || len(homes) != 1 || homes[0] != g.p {
			list = append(list, id)
		}
	}
	return list
}
