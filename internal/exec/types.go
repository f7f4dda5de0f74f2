// Types: the types whose entities may live on this node, and their shards that do.

package exec

import (
	"sync/atomic"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/invariant"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Type is one registered type on this node: its shards that live here, and what is counted of it. Methods are safe for
// concurrent use unless said otherwise.
type Type struct {
	x      *Exec
	typ    entity.Type
	id     route.TypeID
	shards uint32
	rider  func(*Host) entity.Runtime
	keep   *entity.Keep           // nil: no entity is kept alive
	hosts  []atomic.Pointer[Host] // by shard; set while it lives here, its stop included. Dense: every message looks
	living atomic.Int32           // shards that live here, those that are being stopped included
	past   past
	told   incidentLimits

	refused      [route.Reasons]atomic.Uint64
	panics, slow atomic.Uint64
}

// NewType returns a type, whose defaults are filled in. runtime returns what the handlers of a host reach the world by:
// Host has all of entity.Runtime but Tell and Ask.
func (x *Exec) NewType(t entity.Type, rider func(*Host) entity.Runtime) *Type {
	return &Type{x: x, typ: t, id: route.TypeOf(t.Name), shards: t.Shards, rider: rider,
		hosts: make([]atomic.Pointer[Host], t.Shards)}
}

// Keep has an entity of each shard kept alive that begins to live here from now on; before the first of them.
func (t *Type) Keep(k *entity.Keep) { t.keep = k }

// SetTypes makes the types known to which messages may come; the map is not changed any more.
func (x *Exec) SetTypes(all map[route.TypeID]*Type) { x.types.Store(&all) }

// ID returns the type's number.
func (t *Type) ID() route.TypeID { return t.id }

// Host returns the host of a shard that lives here, its stop included, else nil. The shard is below Type.Shards.
func (t *Type) Host(shard route.ShardID) *Host { return t.hosts[shard].Load() }

// Living returns how many shards live here, those that are being stopped included.
func (t *Type) Living() int { return int(t.living.Load()) }

// Hosted counts the shards that live here, and those of them that are being stopped.
func (t *Type) Hosted() (all, stopping int) {
	for i := range t.hosts {
		if h := t.hosts[i].Load(); h != nil {
			all++
			if h.ending.Load() {
				stopping++
			}
		}
	}
	return all, stopping
}

// Refused counts the messages to entities here that were refused for a reason.
func (t *Type) Refused(reason route.Reason) uint64 {
	if int(reason) >= len(t.refused) {
		return 0
	}
	return t.refused[reason].Load()
}

// Incidents counts the calls into handlers that panicked, and that took too long.
func (t *Type) Incidents() (panics, slow uint64) { return t.panics.Load(), t.slow.Load() }

// Begin makes a shard live here under a fence, and returns its host. It did not before.
func (t *Type) Begin(shard route.ShardID, f route.Fence) *Host {
	invariant.Check(t.Host(shard) == nil, "exec: a shard is to live here twice")
	h := t.x.newHost(t, shard, f)
	t.hosts[shard].Store(h)
	if t.keep != nil {
		h.give(orderBegin)
	}
	return h
}

func (t *Type) countRefused(reason route.Reason) {
	if int(reason) < len(t.refused) {
		t.refused[reason].Add(1)
	}
}

// typeCache remembers the type of the last frame: most batches are of one type.
type typeCache struct {
	table *map[route.TypeID]*Type
	last  *Type
	id    uint32
}

// typeOf returns the type of an envelope, nil when it is not registered here.
func (c *typeCache) typeOf(x *Exec, env *wire.Envelope) *Type {
	t := x.types.Load()
	if c.table != t || c.id != env.Type || c.last == nil {
		c.table, c.id, c.last = t, env.Type, (*t)[route.TypeID(env.Type)]
	}
	return c.last
}
