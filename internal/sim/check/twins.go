// Twins: no two clusters of nodes that keep records live side by side, none takes over from an older one too early,
// and a process that is alone in a younger one, records or not, does not stay when the older one asks it.

package check

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
)

const (
	// twinLook is how often two clusters are looked for, twinSlack what a side that lost may take beyond its time.
	twinLook  = time.Second
	twinSlack = time.Second
	// lonerSlack is what a process that is alone may take to yield, beyond the time in which it is asked.
	lonerSlack = time.Minute
)

// outlives notes, at the first view of a process in a cluster, that those of older ones are lost for it: as it has seen
// nothing of them, they must have stopped handling messages before their shards live here. Among their own they stay
// bound by every rule, until one of them shows them Down: they are not gone by this.
func (c *Checker) outlives(p *world.Process, v *membership.View) {
	if !c.w.Config.Records || v.ClusterID == 0 || c.joined[p] {
		return
	}
	c.joined[p] = true
	for _, q := range c.w.Processes {
		if q.Alive && q.View != nil && q.View.Birth != 0 && q.View.Birth < v.Birth {
			c.pairs.loses(p, q.ID, c.w.Now)
		}
	}
}

// twins watches that nodes which keep records never make two clusters that both handle messages for long: a side that
// lost is stopped by its resolver within the takeover time.
func (c *Checker) twins() {
	w := c.w
	first, second := uint64(0), uint64(0)
	for _, p := range w.Running() {
		switch v := p.View; {
		case v == nil || v.ClusterID == 0 || p.Paused() || p.Stuck() || p.Held():
		case first == 0 || first == v.ClusterID:
			first = v.ClusterID
		default:
			second = v.ClusterID
		}
	}
	switch {
	case second == 0:
		c.twinSince = -1
	case c.twinSince < 0:
		c.twinSince = w.Now
	case w.Now-c.twinSince > w.Takeover()+twinSlack:
		c.Violate(nil, "twins", "clusters %x and %x both live since %v", first, second, c.twinSince)
		c.twinSince = w.Now
	}
	w.After(twinLook, c.twins)
}

// loners watches that no process stays alone in a cluster beside an older one with members that have it as a seed, and
// can reach it (JOIN-1, AVL-3). since is for each since when that is so.
func (c *Checker) loners(since map[*world.Process]time.Duration) func() {
	w := c.w
	limit := time.Duration(len(w.Hosts))*w.Config.Membership.WithDefaults().SeedCheckInterval + lonerSlack
	var look func()
	look = func() {
		for _, p := range w.Processes {
			switch began, known := since[p]; {
			case !sought(w, p):
				delete(since, p)
			case !known:
				since[p] = w.Now
			case w.Now-began > limit:
				c.Violate(p, "twins", "it stays alone in cluster %x since %v, though an older one has it as a seed",
					p.View.ClusterID, began)
				since[p] = w.Now
			}
		}
		w.After(twinLook, look)
	}
	return look
}

// acts reports whether a process is in a cluster and does something.
func acts(p *world.Process) bool {
	return p.Alive && p.View != nil && p.View.ClusterID != 0 && !p.Paused() && !p.Stuck() && !p.Held()
}

// sought reports whether a process is alone in its cluster, and one of an older cluster has it as a seed, and both
// reach each other.
func sought(w *world.World, p *world.Process) bool {
	at := func(m membership.Member) bool { return m.ID.Addr == p.ID.Addr }
	return acts(p) && len(p.View.Members) == 1 && slices.ContainsFunc(w.Processes, func(q *world.Process) bool {
		older := acts(q) && q.View.Birth < p.View.Birth && !slices.ContainsFunc(q.View.Members, at)
		return older && slices.Contains(w.Hosts[q.Index].Seeds, p.ID.Addr) && open(w.Net, q.Index, p.Index)
	})
}
