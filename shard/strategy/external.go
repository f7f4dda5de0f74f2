// External: homes that a program outside of the cluster's own wishes for.

package strategy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Errors of External.Update; match with errors.Is.
var (
	ErrStaleVersion = errors.New("strategy: wishes of this version or a newer one are known")
	ErrBadWish      = errors.New("strategy: bad wish")
)

// Wish is where a shard is to live: at a region's address, whatever its incarnation. The zero address takes the wish
// back.
type Wish struct {
	Shard route.ShardID
	Home  peer.Addr
}

// External gives shards the homes that were set by Update and moves those that live elsewhere, as soon as their home is
// a region that is eligible. A shard without a wish, or without an eligible home, is given one by LeastShards, and is
// not moved for balance. It holds at most one wish a shard. Make one with NewExternal. Its methods are for one
// goroutine: of one that a node uses the wishes are set by Region.SetHomes.
type External struct {
	Limit int // moves of one round at most; 0 means View.Room

	shards  uint32
	version uint64
	homes   map[route.ShardID]peer.Addr
}

// NewExternal returns a strategy without wishes, at version 0, for a type with so many shards.
func NewExternal(shards uint32) *External {
	return &External{shards: shards, homes: map[route.ShardID]peer.Addr{}}
}

// Version returns the version of the last update.
func (e *External) Version() uint64 { return e.version }

// Update adds, changes and takes back wishes, all of them or none. The version must be above that of the update before:
// ErrStaleVersion, so that updates that arrive twice or too late change nothing. A shard that the type does not have,
// or that is named twice, is ErrBadWish.
func (e *External) Update(version uint64, wishes []Wish) error {
	if version <= e.version {
		return fmt.Errorf("%w: %d, have %d", ErrStaleVersion, version, e.version)
	}
	if len(wishes) > int(e.shards) {
		return fmt.Errorf("%w: %d wishes for %d shards", ErrBadWish, len(wishes), e.shards)
	}
	named := make(map[route.ShardID]bool, len(wishes))
	for _, w := range wishes {
		if uint32(w.Shard) >= e.shards || named[w.Shard] {
			return fmt.Errorf("%w: shard %d of %d is not there, or named twice", ErrBadWish, w.Shard, e.shards)
		}
		named[w.Shard] = true
	}
	for _, w := range wishes {
		if w.Home.IsZero() {
			delete(e.homes, w.Shard)
			continue
		}
		e.homes[w.Shard] = w.Home
	}
	e.version = version
	return nil
}

// Wishes returns the wishes that stand, sorted by shard. They belong to the caller.
func (e *External) Wishes() []Wish {
	list := make([]Wish, 0, len(e.homes))
	for _, s := range slices.Sorted(maps.Keys(e.homes)) {
		list = append(list, Wish{s, e.homes[s]})
	}
	return list
}

// home returns the eligible region that a shard is wished to.
func (e *External) home(v *View, s route.ShardID) (id peer.ID, ok bool) {
	addr, ok := e.homes[s]
	if !ok {
		return id, false
	}
	i, _ := slices.BinarySearchFunc(v.Regions, peer.ID{Addr: addr}, func(r Region, id peer.ID) int {
		return r.ID.Compare(id)
	})
	for ; i < len(v.Regions) && v.Regions[i].ID.Addr == addr; i++ { // one for each incarnation
		if v.Regions[i].Eligible() {
			return v.Regions[i].ID, true
		}
	}
	return id, false
}

// Allocate returns the wished home, or what LeastShards says.
func (e *External) Allocate(v *View, s route.ShardID) (peer.ID, error) {
	if id, ok := e.home(v, s); ok {
		return id, nil
	}
	return LeastShards{}.Allocate(v, s)
}

// Rebalance returns moves of shards that live elsewhere than wished: region by region in the order of their identities,
// the oldest shards of each first. Others may move meanwhile.
func (e *External) Rebalance(v *View) ([]Move, error) {
	if v.Holds() != 0 {
		return nil, nil
	}
	room := v.Room()
	if e.Limit > 0 {
		room = min(room, e.Limit-len(v.Moving))
	}
	var moves []Move
	for _, r := range eligible(v) {
		for _, s := range r.Shards {
			if len(moves) >= room {
				return moves, nil
			}
			if to, ok := e.home(v, s); ok && to != r.ID && !v.IsMoving(s) {
				moves = append(moves, Move{s, r.ID, to})
			}
		}
	}
	return moves, nil
}
