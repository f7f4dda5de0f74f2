// Twins: no two clusters of nodes that keep records live side by side, and none takes over from an older one too early.

package check

import (
	"time"

	"github.com/kith-io/kith/internal/world"
	"github.com/kith-io/kith/membership"
)

const (
	// twinLook is how often two clusters are looked for, twinSlack what a side that lost may take beyond its time.
	twinLook  = time.Second
	twinSlack = time.Second
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
