// Open: a partition is made known on a node.

package partition

import (
	"context"
	"fmt"
	"sync"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/footing"
)

// hubs are those of the nodes of this process.
var hubs registry

type registry struct {
	mu sync.Mutex
	of map[*driver.Driver]*opening
}

// opening is the hub of a node, which the first caller that opens a partition makes while the others wait.
type opening struct {
	once sync.Once
	hub  *hub
	err  error
}

// opening returns that of a node.
func (r *registry) opening(d *driver.Driver) *opening {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[*driver.Driver]*opening{}
	}
	if r.of[d] == nil {
		r.of[d] = &opening{}
	}
	return r.of[d]
}

// forget forgets the one of a node, if it is still that one.
func (r *registry) forget(d *driver.Driver, o *opening) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[d] == o {
		delete(r.of, d)
	}
}

// hubOf returns the hub of a node, made if need be.
func hubOf(node *kith.Node, of func(footing.Node) door) (*hub, error) {
	d := driver.Of(node)
	o := hubs.opening(d)
	o.once.Do(func() {
		ctx, end := context.WithCancel(context.Background())
		if o.hub, o.err = newHub(ctx, &realNode{node: node, d: d}, of); o.err != nil {
			end()
			hubs.forget(d, o) // the next one tries again
			return
		}
		go func() {
			<-node.Done()
			end()
			hubs.forget(d, o)
		}()
	})
	return o.hub, o.err
}

// newHub returns a hub, which works until ctx or the node ends.
func newHub(ctx context.Context, node footing.Node, of func(footing.Node) door) (h *hub, err error) {
	h = &hub{node: node, self: node.ID(), log: node.Log(), askTimeout: node.AskTimeout(), began: node.Now(),
		wake: make(chan struct{}, 1), open: map[string]*Partition{}}
	if h.pool, err = node.Lane(earsOf(h)); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	h.door = of(node)
	if err := node.OnLeave(h.leave); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	spawn(node, func() { node.Follow(ctx, h.ping) })
	spawn(node, func() { h.run(ctx) })
	return h, nil
}

// Open makes a partition known on this node, which may host an instance of it from then on and sends messages to all.
// Every node of the cluster that sends, or may host, opens it. It does not wait: Known does. The node, once it is Up,
// defines the partition for the cluster as cfg says. It stays open as long as the node runs. Errors: those of
// Config.Validate, ErrOpen, ErrTooMany, and why the node has ended.
func Open(node *kith.Node, cfg Config) (*Partition, error) {
	return open(node, cfg, doorOf)
}

// On is Open on a node that is none of package kith's: one of a simulated cluster, as this module's own tests run them.
// Errors are those of Open.
func On(node any, cfg Config) (*Partition, error) {
	n, ok := node.(footing.Node)
	if !ok {
		return nil, fmt.Errorf("%w: %T is no node", ErrBadConfig, node)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	kept := n.Kept()
	if *kept == nil {
		h, err := newHub(context.Background(), n, doorOf)
		if err != nil {
			return nil, err
		}
		*kept = h
	}
	return openAt((*kept).(*hub), cfg)
}

func open(node *kith.Node, cfg Config, of func(footing.Node) door) (*Partition, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := node.Err(); err != nil {
		return nil, err
	}
	h, err := hubOf(node, of)
	if err != nil {
		return nil, err
	}
	return openAt(h, cfg)
}

func openAt(h *hub, cfg Config) (*Partition, error) {
	p := &Partition{hub: h, path: cfg.Path, cfg: cfg, tasks: tasks{on: h.node, busy: map[task]bool{}},
		held: held{here: map[int]*instance{},
			known: known{over: map[int]stamp{}, asked: map[int]stamp{}, seen: map[int]seen{}}}}
	p.row.Store(&row{})
	if err := h.add(p); err != nil {
		return nil, err
	}
	h.ping()
	return p, nil
}

func (h *hub) add(p *Partition) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.open[p.path] != nil:
		return fmt.Errorf("%w: %q", ErrOpen, p.path)
	case len(h.open) >= MaxOpen:
		return fmt.Errorf("%w: %d", ErrTooMany, MaxOpen)
	}
	h.open[p.path] = p
	return nil
}

// Path returns the path.
func (p *Partition) Path() string { return p.path }

// Table returns the partition as this node's table has it; false: nobody has defined it, as far as this node knows.
// State.Wanted above State.Has says that too few nodes may host it. The lists must not be changed.
func (p *Partition) Table() (State, bool) {
	r := p.row.Load()
	return r.State, r.ok
}

// Err returns why the partition is not as this node has defined it: a *DiffersError, ErrNoRules, ErrUndefined, what its
// definition was refused for, or nil.
func (p *Partition) Err() error {
	if e := p.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Undefine takes the definition of the partition back: its instances end, on all nodes. It stays open, and messages to
// it are refused.
func (p *Partition) Undefine(ctx context.Context) error { return p.hub.door.Undefine(ctx, p.path) }

// Stats are what a node has done with one partition.
type Stats struct {
	Sent      uint64 // messages and asks that were accepted here
	Handled   uint64 // calls of instances here
	Forwarded uint64 // sent on from here, since the instance is elsewhere
	Refused   uint64 // refused here, of any sender
	Returned  uint64 // of this node's own that came back: Config.Refused
	Moved     uint64 // instances that this node has handed over
	Instances int    // here
	Load      int    // messages a second that all instances handled, as this node measured it last: see Scaled
}

// Stats returns the counters of this partition on this node.
func (p *Partition) Stats() Stats {
	c := &p.count
	n := 0
	p.held.mu.Lock()
	n = len(p.held.here)
	p.held.mu.Unlock()
	if r := p.room.Load(); r != nil {
		n += r.living()
	}
	return Stats{c.sent.Load(), c.all(p.room.Load()), c.forwarded.Load(), c.refused.Load(), c.returned.Load(),
		c.moved.Load(), n, int(p.gauge.load.Load())}
}
