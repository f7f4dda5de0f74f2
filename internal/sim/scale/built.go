// Clusters of a scale run that are made at once, because joining that many one by one says nothing new and takes long.

package scale

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// builtAbove is the size above which a cluster is built unless the part "join" is asked for.
const builtAbove = 3000

// builtQuiet is how long a built cluster runs before anything is measured: heartbeats have found their rhythm then.
const builtQuiet = 30 * time.Second

// build makes a converged cluster; its nodes begin spread over a second, so that their timers do not beat as one.
func (r *scaleRun) build() error {
	c := newSwarm(r.cfg.Seed, membership.Config{}, Lines{})
	r.c = c
	n := r.room()
	var members []membership.Member
	for i := range n {
		c.place()
		members = append(members, membership.Member{ID: peer.ID{Addr: swarmAddr(i), Inc: c.rng.Uint64() | 1},
			Roles: c.cfg.Roles, AppVersion: c.cfg.AppVersion})
	}
	g, err := membership.NewGrown(c.rng.Uint64()|1, wallBase<<20, members)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRun, err)
	}
	c.want = n
	for i := range members {
		c.advance(time.Second / time.Duration(n))
		s := c.begin(i, members[i].ID)
		if err := s.m.Begin(0, g); err != nil {
			return fmt.Errorf("%w: %w", ErrRun, err)
		}
		c.after(int32(i), s)
		s.m.Tick(0) // nothing is due; it lets go of the first view's events, two for each member, a kilobyte together
		if i%500 == 0 {
			r.say("%d of %d nodes are built", i, n)
		}
	}
	r.out.Built = true
	c.advance(builtQuiet)
	if c.full != n {
		return fmt.Errorf("%w: built %d nodes, but only %d see all Up", ErrRun, n, c.full)
	}
	return r.awaitQuiet()
}

// room returns how many nodes are built, so that later joiners still find a place in the largest cluster.
func (r *scaleRun) room() int {
	n := MaxNodes
	for _, p := range r.parts() {
		switch p.name {
		case "one":
			n--
		case "twenty":
			n -= 20
		}
	}
	return min(n, r.cfg.Nodes)
}

// place makes room for the node of the next index.
func (c *swarm) place() int {
	i := len(c.nodes)
	c.nodes = append(c.nodes, nil)
	c.byAddr[swarmAddr(i)] = int32(i)
	return i
}

// begin puts a new process at the address of index i.
func (c *swarm) begin(i int, id peer.ID) *swarmNode {
	s := &swarmNode{id: id, origin: c.now, stepped: c.now, wake: -1, alive: true}
	s.m = membership.New(id, c.cfg, rand.New(rand.NewPCG(c.rng.Uint64(), uint64(i))))
	c.nodes[i] = s
	return s
}
