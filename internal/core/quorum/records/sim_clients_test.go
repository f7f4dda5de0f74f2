// The clients of the simulation: they claim shards, write, read, move sets, and hold every answer to what was
// acknowledged before.

package records

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// client writes and reads one shard under one fence, at one node.
type client struct {
	node    int
	shard   Shard
	fence   route.Fence
	claimed bool
	knows   map[string]uint64
	loaded  bool
	busy    bool
	repeats []Write
}

// op is a request of a client.
type op struct {
	c      *client
	kind   string
	writes []Write
	set    peer.Set
	before int // how much was acknowledged when it began
}

// do begins a request of a client.
func (w *world) do(c *client, o *op, cmd func(number uint64) Command) {
	w.last++
	n := w.nodes[c.node]
	o.c, o.before = c, len(w.facts)
	if err := n.m.Do(w.now, cmd(w.last)); err != nil {
		w.counts[err.Error()]++
		return
	}
	c.busy = true
	w.ops[w.last] = o
	w.settle(c.node)
}

// acts has a client do something.
func (w *world) acts(c *client) {
	n := w.nodes[c.node]
	if n.m == nil || c.busy {
		return
	}
	switch k := w.rng.IntN(10); {
	case !c.claimed:
		w.do(c, &op{kind: "claim"}, func(x uint64) Command { return ClaimCommand{x, c.shard, c.fence} })
	case c.repeats != nil:
		w.commits(c, c.repeats)
	case k < 4 || !c.loaded:
		w.do(c, &op{kind: "load"}, func(x uint64) Command {
			return ReadCommand{x, c.shard, c.fence, Query{Ask: AskRecords, IDs: ids}}
		})
	case w.plan.changes && (k == 4 || w.plan.often && k > 6):
		set := w.draws()
		w.do(c, &op{kind: "change", set: set}, func(x uint64) Command { return ChangeCommand{x, c.shard, c.fence, set} })
	case k == 5:
		w.do(c, &op{kind: "due"}, func(x uint64) Command {
			return ReadCommand{x, c.shard, route.Fence{}, Query{Ask: AskDue, By: 1 << 40, First: true, Most: 100}}
		})
	default:
		w.commits(c, w.writes(c))
	}
}

// draws draws a set of disks that were not lost.
func (w *world) draws() (s peer.Set) {
	for len(s) < w.plan.members {
		if n := w.nodes[w.rng.IntN(len(w.nodes))]; !n.removed {
			s.Add(n.id)
		}
	}
	return s
}

// writes draws what a client writes, on top of what it knows.
func (w *world) writes(c *client) (list []Write) {
	for _, id := range ids {
		if w.rng.IntN(2) == 0 {
			continue
		}
		w.last++
		x := Write{New: c.knows[id] == 0,
			Record: Record{ID: id, Version: c.knows[id] + 1, State: fmt.Appendf(nil, "%d", w.last)}}
		x.Nonce[0], x.Nonce[1], x.Nonce[2], x.Nonce[3] = 1, byte(w.last), byte(w.last>>8), byte(w.last>>16)
		if x.New {
			x.Version = c.knows["floor"] + 1
		}
		if x.Delete = w.rng.IntN(6) == 0; x.Delete {
			x.State = nil
		}
		x.Alarm, x.Due = w.rng.IntN(2) == 0, int64(w.last)
		if w.rng.IntN(3) == 0 {
			x.Marks = []Mark{{From: "m", Number: w.last, At: int64(w.last)}}
		}
		w.issued[fmt.Sprint(c.shard, id, x.Version, string(x.State))] = true
		if x.Delete {
			key := fmt.Sprint(c.shard, id)
			w.gone[key] = max(w.gone[key], x.Version)
		}
		list = append(list, x)
	}
	return list
}

func (w *world) commits(c *client, list []Write) {
	if len(list) > 0 {
		w.do(c, &op{kind: "commit", writes: list}, func(x uint64) Command {
			return CommitCommand{x, c.shard, c.fence, list}
		})
	}
}

// done judges an outcome.
func (w *world) done(out Outcome) {
	p := w.ops[out.Number]
	delete(w.ops, out.Number)
	fmt.Fprintf(w.trace, "%d %v %v %d", out.Number, out.Err, out.Last, len(out.Answer.Records))
	if p == nil {
		w.fault("TWICE: an outcome of number %d", out.Number)
		return
	}
	c := p.c
	c.busy = false
	if out.Err != nil {
		w.counts[p.kind+": "+out.Err.Error()]++
		w.failed(p, out.Err)
		return
	}
	w.counts[p.kind]++
	switch p.kind {
	case "claim":
		if c.claimed = true; out.Last.Compare(c.fence) >= 0 {
			w.fault("LAST: %v follows %v", c.fence, out.Last)
		}
		c.knows["floor"] = out.Answer.Floor
	case "load":
		w.hasRead(p, out)
	case "commit":
		c.repeats = nil
		for _, x := range p.writes {
			w.acknowledged(c, x)
		}
	}
}

// failed: a client goes on after an error.
func (w *world) failed(p *op, err error) {
	c := p.c
	switch {
	case errors.Is(err, ErrFenced), errors.Is(err, ErrUnclaimed):
		if errors.Is(err, ErrUnclaimed) && c.claimed {
			w.fault("LOST: the claim of %v", c.fence)
		}
		w.clients = slices.DeleteFunc(w.clients, func(x *client) bool { return x == c })
	case errors.Is(err, ErrVersion):
		c.loaded, c.repeats = false, nil
	case errors.Is(err, ErrTimeout) && p.kind == "commit":
		c.repeats = p.writes
	}
}

// acknowledged notes a write.
func (w *world) acknowledged(c *client, x Write) {
	for _, f := range w.facts {
		if f.shard == c.shard && f.w.ID == x.ID && f.w.Version == x.Version && f.w.Nonce != x.Nonce &&
			!f.w.Delete && !x.Delete {
			w.fault("CONFLICT: %s of %v has two writes of version %d", x.ID, c.shard, x.Version)
		}
	}
	w.facts = append(w.facts, fact{c.shard, c.fence, x})
	c.knows[x.ID] = x.Version
	if x.Delete {
		c.knows[x.ID] = 0
		c.knows["floor"] = max(c.knows["floor"], x.Version)
	}
}

// hasRead holds a read against what was acknowledged before it began.
func (w *world) hasRead(p *op, out Outcome) {
	c := p.c
	c.loaded = true
	for _, id := range ids[:out.Answer.Done] {
		i := slices.IndexFunc(out.Answer.Records, func(r Record) bool { return r.ID == id })
		var is Record
		if i >= 0 {
			is = out.Answer.Records[i]
			if !w.issued[fmt.Sprint(c.shard, id, is.Version, string(is.State))] {
				w.fault("NOWHERE: %s has %d %q", id, is.Version, is.State)
			}
		}
		c.knows[id] = is.Version
		for _, f := range w.facts[:p.before] {
			gone := w.gone[fmt.Sprint(c.shard, id)]
			if f.shard != c.shard || f.w.ID != id || is.Version >= f.w.Version || i < 0 && gone >= f.w.Version {
				continue
			}
			law := "LOST"
			if f.fence.Compare(c.fence) > 0 {
				law = "STALE"
			}
			w.fault("%s: %v reads version %d of %s in %v, and %d of %v was acknowledged", law, c.fence, is.Version, id,
				c.shard, f.w.Version, f.fence)
		}
	}
}

// claims gives a shard another owner. The one before goes on until it is fenced.
func (w *world) claim(sh Shard) *client {
	w.epoch++
	at := w.rng.IntN(len(w.nodes))
	for w.nodes[at].removed {
		at = w.rng.IntN(len(w.nodes))
	}
	c := &client{node: at, shard: sh, fence: route.MakeFence(1, 1, w.epoch),
		knows: map[string]uint64{}}
	w.clients = append(w.clients, c)
	if w.plan.twins {
		d := *c
		d.node, d.knows = (c.node+1)%len(w.nodes), map[string]uint64{}
		w.clients = append(w.clients, &d)
	}
	return c
}
