// The parts "loss" and "frozen": how often a healthy member is held unreachable on a bad network, or beside members
// that stand still.

package sim

import (
	"fmt"
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

// FrozenResult is the part "frozen".
type FrozenResult struct {
	Nodes    int     `json:"nodes"`
	Frozen   int     `json:"frozen"`   // at a time
	Seconds  float64 `json:"seconds"`  // for how long
	Rounds   int     `json:"rounds"`   // how often
	Accused  int     `json:"accused"`  // healthy members held unreachable
	Detected int     `json:"detected"` // frozen members held unreachable, which is right
	Restored int     `json:"restored"` // of them, reachable again before the next round
}

// episodes follows who holds whom unreachable; began hears of each member that becomes unreachable to the first.
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
func grown(n int, seed uint64) (*crowd, error) {
	r := &scaleRun{cfg: ScaleConfig{Nodes: n, Seed: seed}}
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
			return out, c.steps, fmt.Errorf("%w: node %d ended under loss %v: %v", ErrScale, i, out.Loss, s.ended)
		}
	}
	return out, c.steps, nil
}

// freezing is the law of the part "frozen": an eighth of the nodes stands still for 16 s, again and again, with as long
// a time between.
const (
	frozenFor   = 16 * time.Second
	frozenRests = 16 * time.Second
)

func (r *scaleRun) frozen() error {
	out, steps, err := frozenRun(min(r.cfg.Nodes, healthNodes), r.cfg.Seed, r.cfg.Rounds)
	r.out.Frozen = &out
	r.out.Steps += steps
	return err
}

func frozenRun(nodes int, seed uint64, rounds int) (FrozenResult, uint64, error) {
	out := FrozenResult{Nodes: nodes, Frozen: max(nodes/8, 1), Seconds: frozenFor.Seconds(), Rounds: rounds}
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
	for range rounds {
		clear(still)
		clear(detected)
		picked := c.rng.Perm(nodes)[:out.Frozen]
		for _, i := range picked {
			still[c.nodes[i].id] = true
			c.freeze(i)
		}
		c.advance(frozenFor)
		for _, i := range picked {
			c.thaw(i)
		}
		c.advance(frozenRests)
		for _, i := range picked {
			if detected[c.nodes[i].id] && e.holders[c.nodes[i].id] == 0 {
				out.Restored++
			}
		}
	}
	return out, c.steps, nil
}
