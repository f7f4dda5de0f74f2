// Pools: a message goes to any worker that has room, here first. The workers follow from the homes of the shards in
// which they live.

package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// Pool is a type: any of its entities may handle a message.
type Pool struct {
	typ     entity.Type
	r       *Region
	perNode int
	names   *plane.Names // of the control goroutine
	crew    atomic.Pointer[crew]
}

// crew are the workers that this node knows, and until when each of the other nodes is given nothing: it had no room.
type crew struct {
	plane.Crew
	shy []atomic.Int64
}

// NewPool returns a pool with entities of the type as workers, so many on each node that hosts it.
func NewPool(t entity.Type, perNode int) *Pool {
	p := &Pool{typ: t, perNode: perNode, names: plane.NewNames(t.Shards)}
	p.crew.Store(&crew{})
	return p
}

// Register makes the pool known on a node, once. The homes of all shards of its type are known wherever it is.
func (p *Pool) Register(d *Driver) error {
	_, err := RegisterKept(d, p.typ, &Keep{crew: p})
	return err
}

// of implements crewed.
func (p *Pool) of(r *Region) { p.r = r }

// muster makes the crew of a pool of the homes and the members that are known now.
func (p *Pool) muster() {
	r, v, old := p.r, p.r.d.View(), p.crew.Load()
	usable := func(id peer.ID) bool {
		m, ok := v.Member(id)
		return ok && m.Status != membership.Down && v.Reachable(id)
	}
	next := &crew{Crew: *plane.MakeCrew(r.d.self, p.names, p.perNode, r.Home, usable)}
	next.shy = make([]atomic.Int64, len(next.There))
	for i := range next.There {
		if at := old.team(next.There[i].Node); at >= 0 {
			next.shy[i].Store(old.shy[at].Load())
		}
	}
	p.crew.Store(next)
}

// team returns the place of a node among the others, -1 if it has no worker.
func (c *crew) team(id peer.ID) int {
	return slices.IndexFunc(c.There, func(t plane.Team) bool { return t.Node == id })
}

// refused notes that a node had no room for a message of the pool.
func (p *Pool) refused(by peer.ID, why route.Reason) {
	if !errors.Is(why.Err(), route.ErrMailboxFull) {
		return
	}
	c := p.crew.Load()
	if at := c.team(by); at >= 0 {
		c.shy[at].Store(int64(p.r.d.now() + plane.ShyTime))
	}
}

// offer gives a message to workers by send until one takes it, and returns the last error.
func (p *Pool) offer(send func(id string) error, next func(error) bool) (err error) {
	c, r := p.crew.Load(), p.r
	load := func(team int) int {
		l := r.cells.Find(c.There[team].Workers[0].Shard).link.Load()
		switch {
		case time.Duration(c.shy[team].Load()) > r.d.now():
			return shyLoad
		case l == nil:
			return 0
		}
		l.Lock()
		defer l.Unlock()
		_, all := l.Backlog()
		return all
	}
	draw := rand.Uint64()
	some := c.Offer(draw, load, func(w *plane.Worker) bool {
		err = send(w.ID)
		return err != nil && next(err)
	})
	switch {
	case some:
		return err
	case shard.NoHost(r.d.View(), r.typ.Role):
		return route.NotRun(route.ErrNoHost)
	}
	return send(plane.AnyWorker(draw % uint64(r.shards))) // no home is known yet: it waits for that of some shard
}

// shyLoad is more than any link holds.
const shyLoad = 1 << 40

// TellWith gives payload to a worker: accepted or a typed error, without blocking.
func (p *Pool) TellWith(h *Headers, payload []byte) error {
	return p.offer(func(id string) error { return p.r.TellWith(h, id, payload) }, plane.NextWorker)
}

// TellWaitWith is TellWith that waits for room at a worker until ctx ends, where none has any.
func (p *Pool) TellWaitWith(ctx context.Context, h *Headers, payload []byte) error {
	last := ""
	err := p.offer(func(id string) error {
		last = id
		return p.r.TellWith(h, id, payload)
	}, plane.NextWorker)
	if err == nil || !plane.NextWorker(err) {
		return err
	}
	return p.r.TellWaitWith(ctx, h, last, payload)
}

// AskWith asks a worker, and the next one when that has certainly not handled it, until ctx ends.
func (p *Pool) AskWith(ctx context.Context, h *Headers, payload []byte) (b []byte, err error) {
	err = p.offer(func(id string) (err error) {
		b, err = p.r.AskWith(ctx, h, id, payload)
		return err
	}, func(err error) bool { return ctx.Err() == nil && p.next(err) })
	return b, err
}

// AskWithinWith is AskWith with a time limit; the reply is appended to into[:0].
func (p *Pool) AskWithinWith(d time.Duration, h *Headers, payload, into []byte) (b []byte, err error) {
	return p.askFor(nil, d, h, payload, into)
}

// askFor is AskWithinWith for a handler of a shard here, nil for none, as Region.askFor is.
func (p *Pool) askFor(by *exec.Host, d time.Duration, h *Headers, payload, into []byte) (b []byte, err error) {
	began := p.r.d.now()
	err = p.offer(func(id string) (err error) {
		b, err = p.r.askFor(by, d-(p.r.d.now()-began), h, id, payload, into)
		return err
	}, p.next)
	return b, err
}

// AskFuncWith is AskWith with an answer that calls f. One that a worker elsewhere refuses is answered so.
func (p *Pool) AskFuncWith(d time.Duration, h *Headers, payload []byte, f func(reply []byte, err error)) error {
	return p.offer(func(id string) error { return p.r.AskFuncWith(d, h, id, payload, f) }, plane.NextWorker)
}

// next reports whether an ask that failed so goes to another worker, and remembers the worker that had no room.
func (p *Pool) next(err error) bool {
	if route.MayHaveRun(err) || !plane.NextWorker(err) {
		return false
	}
	var full *RefusedError
	if errors.As(err, &full) {
		p.refused(full.Peer, full.Reason)
	}
	return true
}

// TellAt gives payload to a worker of that node, always the same one while its shard is there. ErrNoHost: this node
// knows none there yet.
func (p *Pool) TellAt(node peer.ID, payload []byte) error {
	c := p.crew.Load()
	at := c.team(node)
	if at < 0 {
		return route.NotRun(route.ErrNoHost)
	}
	return p.r.TellWith(nil, c.There[at].Workers[0].ID, payload)
}

// Workers returns how many workers this node knows on each node, itself included.
func (p *Pool) Workers() map[peer.ID]int {
	c, all := p.crew.Load(), map[peer.ID]int{}
	if len(c.Here) > 0 {
		all[p.r.d.self] = len(c.Here)
	}
	for _, t := range c.There {
		all[t.Node] = len(t.Workers)
	}
	return all
}

// Region returns the region of the pool's type.
func (p *Pool) Region() *Region { return p.r }

// ShardAt returns a shard of the pool's type on a node, this one included, always the same one while it is there;
// false: this node knows none there yet, or cannot reach it.
func (p *Pool) ShardAt(node peer.ID) (route.ShardID, bool) {
	c := p.crew.Load()
	if node == p.r.d.self {
		if len(c.Here) == 0 {
			return 0, false
		}
		return c.Here[0].Shard, true
	}
	at := c.team(node)
	if at < 0 {
		return 0, false
	}
	return c.There[at].Workers[0].Shard, true
}

// Load returns how many bytes wait here for the node, 0 for this one, and more than any link holds where none leads.
func (p *Pool) Load(node peer.ID) int {
	if node == p.r.d.self {
		return 0
	}
	s, ok := p.ShardAt(node)
	if !ok {
		return shyLoad
	}
	l := p.r.cells.Find(s).link.Load()
	if l == nil {
		return 0
	}
	l.Lock()
	defer l.Unlock()
	_, all := l.Backlog()
	return all
}
