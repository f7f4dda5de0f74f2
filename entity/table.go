// The table of a shard's entities, and the record of one.

package entity

import (
	"time"

	"github.com/kith-io/kith/internal/invariant"
)

// MaxEntities is the most entities that one shard holds.
const MaxEntities = 1 << 24

// Entity is one entity of a shard as its rider sees it: something that has messages and must be run, by Begin, Work and
// End. Only Blocking shards hand entities out. Idle ones hold nothing but this record and the user's handler.
type Entity struct {
	id       string
	h        Handler // nil until New has been called, and after the instance ended
	s        *Shard
	used     time.Duration // when it last handled a message
	timers   *timer        // its running timers, newest first
	act      *activity     // nil while idle
	index    uint32        // in the shard's dense list
	instance uint32        // counts the handlers that New made; timers belong to one of them
	running  uint8         // timers in the list
}

// ID returns the entity's id.
func (e *Entity) ID() string { return e.id }

// table finds entities by id and keeps them in an order that is the same in every run with the same input.
type table struct {
	byID  map[string]*Entity
	dense []*Entity
	peak  int // most entities since the map was made: maps never shrink
}

// find returns the entity with that id, or nil, without allocating.
func (t *table) find(id []byte) *Entity { return t.byID[string(id)] }

// add makes an entity.
func (t *table) add(s *Shard, id string) *Entity {
	if t.byID == nil {
		t.byID = make(map[string]*Entity)
	}
	e := &Entity{id: id, s: s, index: uint32(len(t.dense))}
	t.byID[id] = e
	t.dense = append(t.dense, e)
	t.peak = max(t.peak, len(t.dense))
	return e
}

// remove forgets e. The last entity of the dense list takes its place.
func (t *table) remove(e *Entity) {
	last := len(t.dense) - 1
	invariant.Check(int(e.index) <= last && t.dense[e.index] == e, "entity: table and entity disagree")
	t.dense[e.index] = t.dense[last]
	t.dense[e.index].index = e.index
	t.dense[last] = nil
	t.dense = t.dense[:last]
	delete(t.byID, e.id)
	const worth = 1024
	if t.peak > worth && last < t.peak/4 {
		t.shrink()
	}
}

// shrink makes map and list anew at their present size.
func (t *table) shrink() {
	t.dense = append(make([]*Entity, 0, len(t.dense)+len(t.dense)/4), t.dense...)
	t.byID = make(map[string]*Entity, len(t.dense))
	for _, e := range t.dense {
		t.byID[e.id] = e
	}
	t.peak = len(t.dense)
}
