// The parts of a scale run on lossless links: joining, quiet, crashes.

package scale

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	scaleSeeds  = 3                      // contact points of every node
	startWithin = 100 * time.Millisecond // "at once" for those started at once
	scaleLimit  = 10 * time.Minute       // the longest that anything may take, in virtual time
)

func (r *scaleRun) seeds() []peer.Addr {
	var list []peer.Addr
	for i := range min(scaleSeeds, r.cfg.Nodes) {
		list = append(list, swarmAddr(i))
	}
	return list
}

// launch starts n nodes spread at random over startWithin, and runs until all live nodes have published want Up
// members. It returns how long that took from the first start.
func (r *scaleRun) launch(n, want int) (time.Duration, error) {
	c := r.c
	began := c.now
	starts := make([]time.Duration, n)
	for i := range starts[1:] {
		starts[i+1] = time.Duration(c.rng.Int64N(int64(startWithin)))
	}
	slices.Sort(starts)
	for _, at := range starts {
		c.advance(began + at - c.now)
		c.join(c.start(), r.seeds())
	}
	c.expect(want)
	shown := c.now
	ok := c.until(scaleLimit, func() bool {
		if c.now-shown >= time.Second {
			shown = c.now
			r.say("%v: %d of %d nodes see %d Up", c.now-began, c.full, want, want)
		}
		return c.full == want
	})
	if !ok {
		return 0, fmt.Errorf("%w: after %v only %d of %d nodes see %d Up", ErrRun, scaleLimit, c.full, want, want)
	}
	return c.now - began, nil
}

func (r *scaleRun) bulkJoin() error {
	r.c = newSwarm(r.cfg.Seed, membership.Config{}, Lines{})
	took, err := r.launch(r.cfg.Nodes, r.cfg.Nodes)
	if err == nil {
		r.out.BulkJoinS = seconds(took)
		err = r.awaitQuiet()
	}
	return err
}

// awaitQuiet runs until the cluster is converged everywhere.
func (r *scaleRun) awaitQuiet() error {
	c := r.c
	ok := c.until(scaleLimit, func() bool {
		if c.steps%1024 != 0 {
			return false
		}
		for _, s := range c.nodes {
			if s.alive && (s.view == nil || !s.view.Converged) {
				return false
			}
		}
		return true
	})
	if !ok {
		return fmt.Errorf("%w: not converged after %v", ErrRun, scaleLimit)
	}
	return nil
}

func (r *scaleRun) joinMore(n int) (time.Duration, error) {
	if err := r.awaitQuiet(); err != nil {
		return 0, err
	}
	r.c.sent.largest[wire.KindWelcome] = 0
	return r.launch(n, r.c.want+n)
}

func (r *scaleRun) joinOne() error {
	took, err := r.joinMore(1)
	if err == nil {
		r.out.JoinOneS = seconds(took)
		size := r.c.sent.largest[wire.KindWelcome]
		r.out.StateBytes = &size
	}
	return err
}

func (r *scaleRun) joinTwenty() error {
	took, err := r.joinMore(20)
	if err == nil {
		r.out.JoinTwentyS = seconds(took)
	}
	return err
}

// quiet measures what the converged state costs.
func (r *scaleRun) quiet() error {
	if err := r.awaitQuiet(); err != nil {
		return err
	}
	span := time.Minute
	if r.out.Built {
		span = 10 * time.Minute
	}
	c := r.c
	c.sent = traffic{}
	for end := c.now + span; c.now < end; {
		c.advance(min(time.Second, end-c.now))
		r.say("quiet, %v to go", end-c.now)
	}
	per := span.Seconds() * float64(c.want)
	status := c.sent.largest[wire.KindStatus]
	rate := float64(c.sent.gossip()) / per
	beats := float64(c.sent.bytes[wire.KindHeartbeat]+c.sent.bytes[wire.KindHeartbeatAck]) / per
	r.out.StatusBytes, r.out.GossipRate, r.out.HeartbeatRate = &status, &rate, &beats
	return nil
}

// define makes one node define all partitions at once, and waits until all nodes show them placed and nothing moves.
func (r *scaleRun) define() error {
	if r.cfg.Paths == 0 || r.c == nil {
		return nil
	}
	c := r.c
	began := c.now
	for k := range r.cfg.Paths {
		c.do(0, membership.DefineCommand{Definition: cluster.PartitionDefinition{Path: fmt.Sprintf("market/prices/%04d", k),
			Count: cluster.Count{Kind: cluster.CountExactly, N: 3}}})
	}
	placed := func() bool {
		if c.steps%1024 != 0 {
			return false
		}
		for _, s := range c.nodes {
			if s.alive && (len(s.view.Partitions) != r.cfg.Paths || s.view.Partitions[r.cfg.Paths-1].Epoch == 0) {
				return false
			}
		}
		return true
	}
	if !c.until(scaleLimit, placed) {
		return fmt.Errorf("%w: not all nodes show %d partitions after %v", ErrRun, r.cfg.Paths, scaleLimit)
	}
	r.out.Paths, r.out.PlacedS = r.cfg.Paths, seconds(c.now-began)
	return r.awaitQuiet()
}
