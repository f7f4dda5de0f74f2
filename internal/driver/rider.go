// Riders: what the handlers of a hosted shard reach the world by, and which calls into them are under way.

package driver

import (
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// regionRider is what the handlers of a type reach the world by.
type regionRider struct{ r *Region }

func (x regionRider) region(typ string) (*Region, error) {
	if typ == x.r.typ.Name {
		return x.r, nil
	}
	if r := x.r.d.regions.Load().byName[typ]; r != nil {
		return r, nil
	}
	return nil, route.ErrNotRegistered
}

// Tell sends as Region.Tell does.
func (x regionRider) Tell(typ, id string, payload []byte) error {
	r, err := x.region(typ)
	if err != nil {
		return err
	}
	return r.Tell(id, payload)
}

// Ask asks as Region.AskWithin does.
func (x regionRider) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	r, err := x.region(typ)
	if err != nil {
		return nil, err
	}
	return r.AskWithin(d, id, payload, nil)
}

// Report passes on what operators want to know.
func (x regionRider) Report(i entity.Incident) { x.r.d.report(x.r, i) }

// Suspended reports whether the node has suspended itself.
func (x regionRider) Suspended() bool { return x.r.d.gate.bits.Load() != 0 }

// Now is the slewed clock: it moves by small steps, so that a step between two looks does not make a call look slow.
func (x regionRider) Now() time.Duration { return time.Duration(x.r.d.coarse.Load()) }

// Shards returns how many shards of the type live here.
func (x regionRider) Shards() int { return max(1, int(x.r.living.Load())) }

// hostRider is the rider of one shard.
type hostRider struct {
	regionRider
	h *host
}

// Calling notes a call into a handler of a type that gives SlowAfter.
func (x hostRider) Calling(e *entity.Entity) { x.h.calls.begin(e, x.Now()) }

// Returned forgets it.
func (x hostRider) Returned(e *entity.Entity) { x.h.calls.end(e) }

// calls are those under way into one shard's handlers, of a type that gives SlowAfter. Each writes here twice, under a
// lock that calls of this shard alone share.
type calls struct {
	mu   sync.Mutex
	list map[*entity.Entity]underway
}

type underway struct {
	since time.Duration // by the coarse clock
	named bool
}

func (c *calls) begin(e *entity.Entity, now time.Duration) {
	c.mu.Lock()
	if c.list == nil {
		c.list = map[*entity.Entity]underway{}
	}
	c.list[e] = underway{since: now}
	c.mu.Unlock()
}

func (c *calls) end(e *entity.Entity) {
	c.mu.Lock()
	delete(c.list, e)
	c.mu.Unlock()
}

// late adds the incidents of calls that have taken longer than limit and were not named yet.
func (h *host) late(now, limit time.Duration, found []entity.Incident) []entity.Incident {
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	for e, c := range h.calls.list {
		if took := now - c.since; took > limit && !c.named {
			c.named = true
			h.calls.list[e] = c
			found = append(found, entity.Incident{Type: h.r.typ.Name, ID: e.ID(), Shard: h.shard, Mode: h.r.typ.Mode,
				Kind: entity.Slow, Took: took, Running: true})
		}
	}
	return found
}

// watchCalls names calls that still run after their type's limit. Ticker.
func (d *Driver) watchCalls() {
	now := time.Duration(d.coarse.Load())
	for _, r := range d.regions.Load().list {
		if r.typ.SlowAfter <= 0 || r.living.Load() == 0 {
			continue
		}
		var found []entity.Incident
		for i := range r.hosts {
			if h := r.hosts[i].Load(); h != nil {
				found = h.late(now, r.typ.SlowAfter, found)
			}
		}
		for _, i := range found {
			d.report(r, i)
		}
	}
}
