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
	if err := r.awaitQuiet(); err != nil {
		return err
	}
	before := r.c.sent.gossip()
	took, err := r.joinMore(1)
	if err != nil {
		return err
	}
	r.out.JoinOneS = seconds(took)
	size := r.c.sent.largest[wire.KindWelcome]
	r.out.StateBytes = &size
	r.out.JoinOneBytes, err = r.untilQuiet(before)
	return err
}

// untilQuiet runs until the cluster is converged everywhere, and returns how much gossip each node has sent since then
// and since a count of it all.
func (r *scaleRun) untilQuiet(before uint64) (*float64, error) {
	err := r.awaitQuiet()
	each := float64(r.c.sent.gossip()-before) / float64(r.c.want)
	return &each, err
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
	switch {
	case r.cfg.Quiet > 0:
		span = r.cfg.Quiet
	case r.out.Built:
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
	if err := r.awaitQuiet(); err != nil {
		return err
	}
	c := r.c
	began, before := c.now, c.sent.gossip()
	for k := range r.cfg.Paths {
		r.defines(k, 3)
	}
	if !c.until(scaleLimit, func() bool { return r.shown(r.cfg.Paths-1, 3) }) {
		return fmt.Errorf("%w: not all nodes show %d partitions after %v", ErrRun, r.cfg.Paths, scaleLimit)
	}
	r.out.Paths, r.out.PlacedS = r.cfg.Paths, seconds(c.now-began)
	var err error
	if r.out.PlacedBytes, err = r.untilQuiet(before); err != nil {
		return err
	}
	return r.redefine()
}

// redefine gives one partition a fourth instance.
func (r *scaleRun) redefine() (err error) {
	c := r.c
	if c.want < 4 {
		return nil
	}
	began, before := c.now, c.sent.gossip()
	r.defines(0, 4)
	if !c.until(scaleLimit, func() bool { return r.shown(0, 4) }) {
		return fmt.Errorf("%w: not all nodes show a fourth instance after %v", ErrRun, scaleLimit)
	}
	r.out.ChangedS = seconds(c.now - began)
	r.out.ChangeBytes, err = r.untilQuiet(before)
	r.out.ConvergedS = seconds(c.now - began)
	return err
}

// defines makes the first node define the k-th partition.
func (r *scaleRun) defines(k, instances int) {
	r.c.do(0, membership.DefineCommand{Definition: cluster.PartitionDefinition{Path: fmt.Sprintf("market/prices/%04d", k),
		Count: cluster.Count{Kind: cluster.CountExactly, N: instances}}})
}

// shown reports whether all nodes show all partitions, and so many instances of the k-th placed. It looks now and then,
// and else says no.
func (r *scaleRun) shown(k, instances int) bool {
	c := r.c
	if c.steps%uint64(min(1024, len(c.nodes))) != 0 {
		return false
	}
	for _, s := range c.nodes {
		if s.alive && (len(s.view.Partitions) != r.cfg.Paths || s.view.Partitions[k].Has() != min(instances, c.want)) {
			return false
		}
	}
	return true
}
