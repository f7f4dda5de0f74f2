// Surveys: what all members have of a type, asked by this node, and answered by it; and what a program wants of the
// balance of a type.

package driver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/survey"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
)

// Survey asks all members what they have of a type, this node included. It returns when all have answered or ctx ends,
// which is no error: the result names the members that have not answered. One that is unreachable, or lost its
// connection, is not waited for, and has not answered. Members of a version that knows no surveys never do. However
// many ask at a time, each member is asked once (package survey).
func Survey(ctx context.Context, r *Region) (survey.Result, error) {
	d := r.d
	if err := d.Err(); err != nil {
		return survey.Result{}, err
	}
	if err := cmp.Or(ctx.Err(), d.inbox.mayWait()); err != nil {
		return survey.Result{}, err
	}
	var ids, dead []peer.ID
	for v, i := d.View(), 0; i < len(v.Members); i++ {
		switch m := &v.Members[i]; {
		case m.Status == membership.Down:
		case m.ID != d.self && (!v.Reachable(m.ID) || transport.Cut(m.ID, d.wires)):
			dead = append(dead, m.ID)
		default:
			ids = append(ids, m.ID)
		}
	}
	result := d.surveys.Ask(ctx, r.id, ids, d.surveys.Put)
	for _, id := range dead {
		result.Missing.Add(id)
	}
	return result, nil
}

// Found is where an entity lives, as this node knows it.
type Found struct {
	Shard   route.ShardID
	Node    peer.ID // zero: it is not known; nor are Fence and Since
	Fence   route.Fence
	Since   time.Duration // how long this node has known that
	Waiting int           // messages of this node that wait for the home of its shard

	Here     bool
	Entities uint64 // of its shard, if it is Here, and the rest
	Handled  uint64
	Doing    entity.Doing
	Looked   bool // Doing says something
}

// Find says where an entity lives as far as this node knows. It asks nobody and steps nothing.
func Find(id string, r *Region) (f Found, err error) {
	if err := cmp.Or(route.CheckID(id), r.Refused(), r.d.Err()); err != nil {
		return f, err
	}
	if f.Shard, err = r.typ.ShardOf(id); err != nil {
		return f, err
	}
	s := known(r, f.Shard)
	if s == nil {
		return f, nil
	}
	s.mu.Lock()
	f.Waiting, _ = s.slot.Parked()
	e := s.route.Load()
	if e == nil {
		e = s.next
	}
	if s.slot.State() >= flow.Local && e != nil {
		f.Node, f.Fence, f.Here, f.Since = s.slot.Home(), s.slot.Fence(), s.slot.IsLocal(), max(r.d.now()-e.since, 0)
	}
	s.mu.Unlock()
	if !f.Here {
		return f, nil
	}
	f.Node = r.d.self
	if h := e.host; h != nil {
		f.Entities, f.Handled = exec.Entities(h), exec.Handled(h)
		f.Doing, f.Looked = exec.Look(id, h)
	}
	return f, nil
}

// look says what this node has of a type. Of the control goroutine it wants only what moves.
func look(ctx context.Context, d *Driver, typ route.TypeID) (*survey.Picture, bool) {
	p := &survey.Picture{}
	r := d.regions.Load().byID.At(typ)
	if r == nil {
		return p, true
	}
	_, err := asked(ctx, d, func(n *node.Node) bool {
		p.Moves, p.Term = node.Moves(n, typ)
		return true
	})
	if err != nil {
		return nil, false
	}
	p.Known, p.Shards = true, r.shards
	for h := range exec.Hosts(r.hosts) { // what lives here, not what the type has
		live := exec.Entities(h)
		p.Entities += live
		p.List = append(p.List, survey.Shard{ID: h.Shard(), Stopping: h.Ending(),
			Entities: uint32(min(live, math.MaxUint32))})
	}
	slices.SortFunc(p.List, func(x, y survey.Shard) int { return cmp.Compare(x.ID, y.ID) })
	return p, true
}

// Regions lists the types of a node in the order of their registration.
func Regions(d *Driver) []*Region { return slices.Clone(d.regions.Load().list) }

// Move asks the coordinator of a type to move a shard, and waits until the move has begun, or ctx ends.
func Move(ctx context.Context, r *Region, s route.ShardID, to peer.ID) error {
	d, answer := r.d, make(chan error, 1)
	nonce := d.wanted.add(answer)
	defer d.wanted.take(nonce)
	err := d.call(ctx, shard.AskMoveCommand{Type: r.id, Shard: s, To: to, Nonce: nonce})
	if err == nil {
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = ctx.Err()
		case <-d.done:
			err = d.ended()
		}
	}
	if err != nil {
		return fmt.Errorf("kith: move shard %d of type %q to %s: %w", s, r.typ.Name, to, err)
	}
	return nil
}

// moveAnswered hands an answer to the caller of a move, if it still waits.
func moveAnswered(d *Driver, a shard.MoveAnswer) {
	if answer := d.wanted.take(a.Nonce); answer != nil {
		answer <- a.Err
	}
}

// SetReady declares whether this node may be given shards of a type.
func SetReady(ctx context.Context, r *Region, ready bool) error {
	if err := r.d.call(ctx, shard.ReadyCommand{Type: r.id, Ready: ready}); err != nil {
		return fmt.Errorf("kith: readiness of type %q: %w", r.typ.Name, err)
	}
	return nil
}

// Linger has the shards of a type stay while this node drains, or go: see shard.LingerCommand.
func Linger(ctx context.Context, r *Region, on bool) error {
	if err := r.d.call(ctx, shard.LingerCommand{Type: r.id, On: on}); err != nil {
		return fmt.Errorf("kith: shards of type %q in a drain: %w", r.typ.Name, err)
	}
	return nil
}

// SetHomes updates the wishes of a type that goes by strategy.External.
func SetHomes(ctx context.Context, r *Region, version uint64, wishes []strategy.Wish) error {
	cmd := shard.WishesCommand{Type: r.id, Version: version, Wishes: slices.Clone(wishes)}
	if err := r.d.call(ctx, cmd); err != nil {
		return fmt.Errorf("kith: homes of type %q: %w", r.typ.Name, err)
	}
	return nil
}
