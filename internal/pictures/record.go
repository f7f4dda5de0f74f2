// The recorder: a watcher of a simulated world that fills a picture, beside the checkers that hold the promises.

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/check"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/internal/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// recorder is told everything by the world, and passes it on to the checkers.
type recorder struct {
	*check.Checker
	w         *world.World
	pic       *picture
	suspended map[*world.Process]bool
	sent      map[string]message
}

// record returns a world of n hosts, and the recorder of what happens there.
func record(n int, seed uint64, pic *picture, cfg setup.Config) *recorder {
	r := &recorder{pic: pic, suspended: map[*world.Process]bool{}, sent: map[string]message{}}
	for i := range n {
		pic.lanes = append(pic.lanes, lane{name: fmt.Sprintf("n%d", i+1), shards: map[uint32][]span{}})
	}
	r.w = world.New(n, seed, cfg, func(w *world.World) world.Watcher {
		r.Checker = check.New(w)
		return r
	})
	return r
}

func (r *recorder) lane(p *world.Process) *lane { return &r.pic.lanes[p.Index] }

// look notes what a process is now.
func (r *recorder) look(p *world.Process) {
	state := "starting"
	if m, ok := p.View.SelfMember(); ok && p.View != nil {
		state = m.Status.String()
	}
	if r.suspended[p] {
		state = "suspended"
	}
	r.lane(p).enter(r.w.Now, state)
}

// Starts is told of a new process.
func (r *recorder) Starts(p *world.Process) {
	r.Checker.Starts(p)
	r.lane(p).enter(r.w.Now, "starting")
}

// View is told of each view of a process.
func (r *recorder) View(p *world.Process, v *membership.View) {
	r.Checker.View(p, v)
	if m, ok := v.SelfMember(); ok && !r.suspended[p] {
		r.lane(p).enter(r.w.Now, m.Status.String())
	}
}

// Event is told of each event of the membership.
func (r *recorder) Event(p *world.Process, e *membership.Event) {
	r.Checker.Event(p, e)
	switch e.Kind {
	case membership.NodeSuspended, membership.NodeResumed:
		r.suspended[p] = e.Kind == membership.NodeSuspended
		r.look(p)
	case membership.UnreachableMember:
		r.pic.note(r.w.Now, p.Index, "members are unreachable; nothing is decided yet")
	}
}

// Decided is told of a decision of the resolver.
func (r *recorder) Decided(p *world.Process, d *node.Decision) {
	r.Checker.Decided(p, d)
	text := "the resolver decides: this side lives on"
	if !d.Lives {
		text = "the resolver decides: this side ends; no message is handled here any more"
	}
	r.pic.note(r.w.Now, p.Index, text)
}

// Shard is told of each event of sharding.
func (r *recorder) Shard(p *world.Process, e *shard.Event) {
	r.Checker.Shard(p, e)
	if e.Kind == shard.ShardsWait {
		r.pic.note(r.w.Now, p.Index, "the shards that were lost wait until their owners must have stopped")
	}
	if !r.pic.moves {
		return
	}
	switch e.Kind {
	case shard.MoveBegan:
		r.pic.note(r.w.Now, p.Index, fmt.Sprintf("a move begins, from %s to %s", r.w.Name(e.Home), r.w.Name(e.To)))
	case shard.MoveMarked:
		r.pic.note(r.w.Now, p.Index, "all senders have marked: the owner works off what it has, and stops")
	case shard.MoveDone:
		r.pic.note(r.w.Now, p.Index, "the move is done")
	}
}

// Hosts is told of a shard that lives, Stopped of one that does no more.
func (r *recorder) Hosts(p *world.Process, key world.ShardKey, f route.Fence) {
	r.Checker.Hosts(p, key, f)
	r.lane(p).live(r.w.Now, uint32(key.Shard))
}

// Stopped is told of it.
func (r *recorder) Stopped(p *world.Process, key world.ShardKey, confirmed bool) {
	r.Checker.Stopped(p, key, confirmed)
	r.lane(p).gone(r.w.Now, uint32(key.Shard))
}

// Died is told of a process that runs no more.
func (r *recorder) Died(p *world.Process) {
	r.Checker.Died(p)
	r.lane(p).dead(r.w.Now)
	r.pic.note(r.w.Now, p.Index, "the process ends")
}

// tell sends a message, and remembers from where and when. Texts of one picture differ.
func (r *recorder) tell(from int, typ route.TypeID, id, text string) error {
	r.sent[text] = message{sent: r.w.Now, from: from}
	_, err := r.w.Hosts[from].Process.Region(typ).Send(id, []byte(text), 0)
	return err
}

// declare lets all nodes know a type whose entities note what they handle.
func (r *recorder) declare(name string, shards uint32) route.TypeID {
	t := entity.Type{Name: name, Shards: shards, Mode: entity.Worker,
		New: func(string, route.Fence) entity.Handler { return (*reader)(r) }}
	r.w.AddType(&world.EntityType{Type: t.WithDefaults()})
	return route.TypeOf(name)
}

// done ends the run: what is open ends with it, and a broken promise is an error.
func (r *recorder) done() error {
	r.pic.to = r.w.Now
	for i := range r.pic.lanes {
		r.pic.lanes[i].dead(r.w.Now)
	}
	var broken []string
	for _, v := range r.Violations {
		broken = append(broken, fmt.Sprint(v))
	}
	if len(broken) > 0 {
		return fmt.Errorf("broken promises: %s", strings.Join(broken, "; "))
	}
	return nil
}

// every calls do with 0, 1, ... at intervals, n times.
func (r *recorder) every(d time.Duration, n int, do func(i int)) {
	for i := range n {
		r.w.After(time.Duration(i)*d, func() { do(i) })
	}
}

// reader is the entity of all pictures.
type reader recorder

// Receive notes where and when a message was handled.
func (e *reader) Receive(_ *entity.Context, payload []byte) error {
	l, ok := e.sent[string(payload)]
	if !ok || !e.pic.moves {
		return nil
	}
	l.handled, l.to = e.w.Now, e.w.Acting.Index
	e.pic.messages = append(e.pic.messages, l)
	return nil
}

// Stop has nothing to do: these entities know nothing.
func (*reader) Stop(*entity.Context) {}
