// The table of a shard's entities, and the record of one.

package entity

import (
	"encoding/binary"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/base/invariant"
)

// MaxEntities is the most entities that one shard holds.
const MaxEntities = 1 << indexBits

// Entity is one entity of a shard as its runtime sees it: something that has messages and must be run, by Begin, Work
// and End. Only Blocking shards hand entities out. Idle ones hold nothing but this record and the user's handler.
//
// There may be millions: the record is one line of memory, 64 bytes.
type Entity struct {
	id       string
	h        Handler       // nil until New has been called, and after the instance ended
	used     time.Duration // when it last handled a message
	timers   *timer        // its running timers, newest first
	act      *activity     // nil while idle
	place    uint32        // its index in the shard's dense list; above it how many timers it has running; seen, hurt
	instance uint32        // counts the handlers that New made; timers and watches belong to one of them
}

// The parts of Entity.place.
const (
	indexBits = 24
	indexMask = 1<<indexBits - 1
	oneTimer  = 1 << indexBits
	seen      = 1 << 30 // it is watched, or watches
	hurt      = 1 << 31 // there is a crash record of it
)

func (e *Entity) index() int { return int(e.place & indexMask) }

func (e *Entity) setIndex(i int) { e.place = e.place&^indexMask | uint32(i) }

// running is how many timers are in the list.
func (e *Entity) running() int { return int(e.place &^ (hurt | seen) >> indexBits) }

// ID returns the entity's id.
func (e *Entity) ID() string { return e.id }

// Is reports whether id is the entity's.
func (e *Entity) Is(id []byte) bool {
	n := len(id)
	if n != len(e.id) {
		return false
	}
	if n < 8 || n > 16 {
		return e.id == string(id)
	}
	own := []byte(e.id) // not a copy; two words in place of a call
	return binary.LittleEndian.Uint64(own) == binary.LittleEndian.Uint64(id) &&
		binary.LittleEndian.Uint64(own[n-8:]) == binary.LittleEndian.Uint64(id[n-8:])
}

// window is in how many slots, from the one that its hash names on, an entity may lie.
const window = 8

// minSlots is the size of a table that holds anything.
const minSlots = 16

// table finds entities by id and keeps them in an order that is the same in every run with the same input.
//
// An entity lies within a few slots of the one that its id's hash names, so that a look-up touches a slot, the entity
// and its id, and nothing else; a slot that is left is simply empty. The only entity that there has been needs no slot:
// of a hundred thousand shards most have one, and each message waits for its line of memory. The hash is the
// protocol's, and a user who chooses ids can foresee it: entities that find their window full in a table that is not
// lie in a map, with a hash that nobody can foresee.
type table struct {
	slots []slot  // a power of two, or none
	sole  *Entity // without slots: the only one
	*entities
}

// entities is the part of a table that a look-up does not touch.
type entities struct {
	more  map[string]*Entity // entities that found their window full
	dense []*Entity
}

func newTable() table { return table{entities: &entities{}} }

type slot struct {
	hash uint64
	e    *Entity
}

// HashID returns the hash of an id by which a shard finds its entity, for Message.Hash.
func HashID(id []byte) uint64 { return xxhash.Sum64(id) }

// likely returns the first entity with that hash, which is nearly always the only one, or nil; of a table with one
// entity perhaps that, whatever its hash.
func (t *table) likely(h uint64) *Entity {
	if len(t.slots) == 0 {
		return t.sole
	}
	mask := uint64(len(t.slots) - 1)
	for i := range uint64(window) {
		if s := &t.slots[(h+i)&mask]; s.hash == h {
			return s.e // nil in an empty slot, which has the hash zero
		}
	}
	return nil
}

// find returns the entity with that id, which has the hash h, or nil, without allocating.
func (t *table) find(h uint64, id []byte) *Entity {
	if len(t.slots) == 0 {
		if t.sole != nil && t.sole.Is(id) {
			return t.sole
		}
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := range uint64(window) {
		if s := &t.slots[(h+i)&mask]; s.hash == h && s.e != nil && s.e.Is(id) {
			return s.e
		}
	}
	if len(t.more) > 0 {
		return t.more[string(id)]
	}
	return nil
}

// add makes an entity.
func (t *table) add(id string) *Entity {
	e := &Entity{id: id, place: uint32(len(t.dense))}
	t.dense = append(t.dense, e)
	if len(t.slots) == 0 && len(t.dense) == 1 {
		t.sole = e
		return e
	}
	if t.put(e) {
		return e
	}
	if size := t.size(); size > len(t.slots) {
		t.rebuild(size)
	} else {
		t.overflow(e)
	}
	return e
}

// put finds a slot for e and reports whether there was one.
func (t *table) put(e *Entity) bool {
	if len(t.slots) == 0 {
		return false
	}
	h, mask := xxhash.Sum64String(e.id), uint64(len(t.slots)-1)
	for i := range uint64(window) {
		if s := &t.slots[(h+i)&mask]; s.e == nil {
			*s = slot{h, e}
			return true
		}
	}
	return false
}

// size is how many slots the entities deserve: two to four for each.
func (t *table) size() int {
	size := minSlots
	for size < 2*len(t.dense) {
		size *= 2
	}
	return size
}

// rebuild makes the slots anew. Entities that find none even then go to the map.
func (t *table) rebuild(size int) {
	t.slots, t.sole, t.more = make([]slot, size), nil, nil
	for _, e := range t.dense {
		if !t.put(e) {
			t.overflow(e)
		}
	}
}

func (t *table) overflow(e *Entity) {
	if t.more == nil {
		t.more = make(map[string]*Entity)
	}
	t.more[e.id] = e
}

// remove forgets e. The last entity of the dense list takes its place.
func (t *table) remove(e *Entity) {
	last := len(t.dense) - 1
	invariant.Check(e.index() <= last && t.dense[e.index()] == e, "entity: table and entity disagree")
	t.dense[e.index()] = t.dense[last]
	t.dense[e.index()].setIndex(e.index())
	t.dense[last] = nil
	t.dense = t.dense[:last]
	t.clear(e)
	const worth = 4096 // slots; smaller tables are not made smaller
	if len(t.slots) > worth && last < len(t.slots)/16 {
		t.dense = append(make([]*Entity, 0, last+last/4), t.dense...)
		t.rebuild(t.size())
	}
}

// clear empties the place of e.
func (t *table) clear(e *Entity) {
	if len(t.slots) == 0 {
		t.sole = nil
		return
	}
	h, mask := xxhash.Sum64String(e.id), uint64(len(t.slots)-1)
	for i := range uint64(window) {
		if s := &t.slots[(h+i)&mask]; s.e == e {
			*s = slot{}
			return
		}
	}
	delete(t.more, e.id)
}
