// Remembered entities in a storm: a store that never fails for long says which there are, and all of them must live.

package storm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
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

func newKeeps(rng *rand.Rand, s *storm) *keeps {
	return &keeps{s: s, rng: rng, lives: map[int][]life{}, paged: map[string]*page{}, crowded: map[string]life{},
		handled: map[*world.Process]int{}}
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
		k.crowds(p, c, err)
		return nil, err
	}
	g := &page{k, p, c.ID, c.Fence}
	g.begins()
	delete(k.crowded, c.ID)
	return g, nil
}

// crowds notes an entity that could not begin for want of room for its timer, in a budget that is used up.
func (k *keeps) crowds(p *world.Process, c *entity.Context, err error) {
	if !errors.Is(err, route.ErrBudgetFull) {
		delete(k.crowded, c.ID)
		return
	}
	k.crowded[c.ID] = life{p, c.Fence}
	if used, most := world.Mailboxes(p), k.s.w.Config.Data.MailboxBudget; used+turnSize <= most {
		k.s.check.Violate(p, "rejection", "%s has no room for a timer, though %d bytes of %d are used", c.ID, used, most)
	}
}

// worked notes that a process has handled a message that somebody sent.
func (k *keeps) worked(p *world.Process) {
	if k != nil {
		k.handled[p]++
	}
}

// begins notes an instance. That of a late owner, not notified yet, takes no other's place: it ends with its node,
// while its successor's lives. Found by storm 881196.
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

// turn calls an entity some time later.
func (k *keeps) turn(c *entity.Context) error {
	return c.SetTimer(turnName, between(k.rng, 100*time.Millisecond, 4*time.Second), []byte{timerMark})
}

const (
	turnName = "turn"
	turnSize = len(turnName) + 1 + entity.RecordOverhead // what it takes of the budget
)

// Stop implements entity.Handler.
func (g *page) Stop(*entity.Context) { g.end() }

func (g *page) end() {
	if g.k.paged[g.id] == g {
		delete(g.k.paged, g.id)
	}
}

// shardOf returns the shard of a remembered entity.
func (k *keeps) shardOf(id string) world.ShardKey {
	return world.ShardKey{Type: route.TypeOf(k.book.Name), Shard: route.ShardOf(id, k.book.Shards)}
}

// unpaged lists the entities that do not live where their shard does, if it may live anywhere.
func unpaged(k *keeps) (list []string) {
	if !k.s.hostable(route.TypeOf(k.book.Name), k.s.w.Running()) {
		return nil
	}
	for i := range pages {
		id := fmt.Sprint("page", i)
		homes, fence := k.s.check.Homes(k.shardOf(id))
		if g := k.paged[id]; g == nil || g.fence != fence || len(homes) != 1 || homes[0] != g.p {
			list = append(list, id)
		}
	}
	return list
}

// demandPages demands that every remembered entity lives. One on a node without room for its timer, because mail waits
// there, as for an entity that panics again and again and rests each time, may wait for as long as the node works that
// mail off: in each bound it must handle some. Found by storm 881126300295.
func demandPages(k *keeps, bound time.Duration) {
	w := k.s.w
	for {
		before := maps.Clone(k.handled)
		if w.Until(bound, func() bool { return len(unpaged(k)) == 0 }) {
			return
		}
		left := slices.DeleteFunc(unpaged(k), func(id string) bool {
			homes, fence := k.s.check.Homes(k.shardOf(id))
			return len(homes) == 1 && k.crowded[id] == life{homes[0], fence} && k.handled[homes[0]] > before[homes[0]]
		})
		if len(left) > 0 {
			k.s.check.Violate(nil, "remembered", "%v do not live %v after the last fault", left, bound)
			return
		}
	}
}
