// The parts "loss" and "frozen": how often a healthy member is held unreachable on a bad network, or beside members
// that stand still.

package scale

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// healthNodes is the size of the cluster of these parts, unless the run's own is smaller.
const healthNodes = 128

// LossResult is one run of the part "loss".
type LossResult struct {
	Loss             float64 `json:"loss"`      // chance that a packet is lost
	Datagrams        bool    `json:"datagrams"` // lost for good; otherwise late, as on TCP
	Hours            float64 `json:"hours"`     // virtual
	FalseUnreachable int     `json:"false_unreachable"`
}

// FrozenResult is the part "frozen" under one law.
type FrozenResult struct {
	Nodes    int     `json:"nodes"`
	Frozen   int     `json:"frozen"`   // at a time
	Seconds  float64 `json:"seconds"`  // for how long
	Rests    float64 `json:"rests_s"`  // how long all run in between
	Rounds   int     `json:"rounds"`   // how often
	Accused  int     `json:"accused"`  // healthy members held unreachable
	Detected int     `json:"detected"` // frozen members that became unreachable, which is right
}

// episodes follows which member holds which unreachable; began hears of each member that becomes unreachable to the
// first.
type episodes struct {
	holders map[peer.ID]int // how many nodes hold it unreachable
	began   func(id peer.ID)
}

func (e *episodes) event(_ int, ev *membership.Event) {
	id := ev.Member.ID
	switch ev.Kind {
	case membership.UnreachableMember:
		if e.holders[id]++; e.holders[id] == 1 {
			e.began(id)
		}
	case membership.ReachableMember:
		e.holders[id]--
	}
}

// grown returns a converged cluster of n nodes on perfect lines.
func grown(n int, seed uint64) (*swarm, error) {
	r := &scaleRun{cfg: Config{Nodes: n, Seed: seed}}
	if err := r.bulkJoin(); err != nil {
		return nil, err
	}
	return r.c, nil
}

// lossCases are the networks of the part "loss".
var lossCases = []LossResult{{Loss: 0.01}, {Loss: 0.05}, {Loss: 0.2}, {Loss: 0.01, Datagrams: true},
	{Loss: 0.05, Datagrams: true}, {Loss: 0.2, Datagrams: true}}

// lossy runs each case on a cluster of its own, side by side; each has its own seed, so the results do not depend on
// the order.
func (r *scaleRun) lossy() error {
	var all sync.WaitGroup
	results := make([]LossResult, len(lossCases))
	errs := make([]error, len(lossCases))
	steps := make([]uint64, len(lossCases))
	for i, c := range lossCases {
		all.Go(func() {
			results[i], steps[i], errs[i] = lossRun(c, min(r.cfg.Nodes, healthNodes), r.cfg.Seed, r.cfg.Hours)
		})
	}
	all.Wait()
	promised := 0
	for i, l := range results {
		if errs[i] != nil {
			return errs[i]
		}
		r.out.Steps += steps[i]
		if !l.Datagrams && l.Loss <= 0.05 {
			promised += l.FalseUnreachable
		}
	}
	r.out.Loss, r.out.FalseUnreachable = results, &promised
	return nil
}

func lossRun(out LossResult, nodes int, seed uint64, hours float64) (LossResult, uint64, error) {
	c, err := grown(nodes, seed)
	if err != nil {
		return out, 0, err
	}
	c.lines = newLines(Lines{Loss: out.Loss, Datagrams: out.Datagrams}, seed)
	e := episodes{holders: map[peer.ID]int{}, began: func(peer.ID) { out.FalseUnreachable++ }}
	c.onEvent = e.event
	out.Hours = hours
	c.advance(time.Duration(hours * float64(time.Hour)))
	for i, s := range c.nodes {
		if !s.alive {
			return out, c.steps, fmt.Errorf("%w: node %d ended under loss %v: %v", ErrRun, i, out.Loss, s.ended)
		}
	}
	return out, c.steps, nil
}

// frozenFor is how long an eighth of the nodes stands still in the part "frozen".
const frozenFor = 16 * time.Second

// freezing is a law of the part "frozen": for how long all nodes run before the next round, and whether the same nodes
// stand still each time: these then hardly run at all.
type freezing struct {
	rests time.Duration
	same  bool
}

// freezings are the laws: time to recover and others each time, or the same ones with half a second in between.
var freezings = []freezing{{rests: 16 * time.Second}, {rests: 500 * time.Millisecond, same: true}}

// pick returns the nodes that stand still in this round, given those of the last.
func (f freezing) pick(rng *rand.Rand, nodes, round int, last []int) []int {
	if f.same && round > 0 {
		return last
	}
	return rng.Perm(nodes)[:max(nodes/8, 1)]
}

func (r *scaleRun) frozen() error {
	for _, law := range freezings {
		nodes := min(r.cfg.Nodes, healthNodes)
		out, steps, err := frozenRun(law, nodes, r.cfg.Seed, r.cfg.Rounds)
		if err != nil {
			return err
		}
		r.out.Frozen = append(r.out.Frozen, out)
		r.out.Steps += steps
	}
	return nil
}

func frozenRun(law freezing, nodes int, seed uint64, rounds int) (FrozenResult, uint64, error) {
	out := FrozenResult{Nodes: nodes, Frozen: max(nodes/8, 1), Seconds: frozenFor.Seconds(), Rests: law.rests.Seconds(),
		Rounds: rounds}
	c, err := grown(nodes, seed)
	if err != nil {
		return out, 0, err
	}
	still := map[peer.ID]bool{}
	detected := map[peer.ID]bool{}
	e := episodes{holders: map[peer.ID]int{}, began: func(id peer.ID) {
		switch {
		case !still[id]:
			out.Accused++
		case !detected[id]:
			detected[id] = true
			out.Detected++
		}
	}}
	c.onEvent = e.event
	var picked []int
	for round := range rounds {
		picked = law.pick(c.rng, nodes, round, picked)
		clear(still)
		clear(detected)
		for _, i := range picked {
			still[c.nodes[i].id] = true
			c.freeze(i)
		}
		c.advance(frozenFor)
		for _, i := range picked {
			c.thaw(i)
		}
		c.advance(law.rests)
	}
	return out, c.steps, nil
}
