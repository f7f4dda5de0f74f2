// Asked: the answers of the embedder's own strategy are inputs of the node. They are recorded, and given again.

package flight

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Asked stands in the node for a strategy that is not one of ours.
type Asked struct {
	Type  string // of the strategy, for people
	Reads bool   // it reads loads
	ask   func(v *strategy.View, s *route.ShardID) answer
}

// answer is what a strategy said, or did.
type answer struct {
	To       peer.ID
	Moves    []strategy.Move
	NoRegion bool
	Err      string
	Panic    string
}

// ours reports whether a strategy is kept whole in the state of the node.
func ours(s strategy.Strategy) bool {
	_, ok := boxedTypes.number[reflect.TypeOf(s)]
	return s == nil || ok
}

// listen returns what stands for s, and reports each answer.
func listen(s strategy.Strategy, tell func(answer)) *Asked {
	return &Asked{Type: fmt.Sprintf("%T", s), Reads: strategy.ReadsLoads(s),
		ask: func(v *strategy.View, shard *route.ShardID) (a answer) {
			defer func() {
				if p := recover(); p != nil {
					a.Panic = fmt.Sprintf("%.1000v", p)
				}
				tell(a)
			}()
			var err error
			if shard != nil {
				a.To, err = s.Allocate(v, *shard)
			} else {
				a.Moves, err = s.Rebalance(v)
			}
			if a.NoRegion = errors.Is(err, strategy.ErrNoRegion); err != nil && !a.NoRegion {
				a.Err = err.Error()
			}
			return a
		}}
}

// given passes an answer on as the strategy gave it.
func given(a answer) (answer, error) {
	switch {
	case a.Panic != "":
		panic(a.Panic) // the guard around every strategy takes it
	case a.NoRegion:
		return a, strategy.ErrNoRegion
	case a.Err != "":
		return a, errors.New(a.Err)
	}
	return a, nil
}

// Allocate passes on what the strategy says.
func (q *Asked) Allocate(v *strategy.View, s route.ShardID) (peer.ID, error) {
	a, err := given(q.ask(v, &s))
	return a.To, err
}

// Rebalance passes on what the strategy says.
func (q *Asked) Rebalance(v *strategy.View) ([]strategy.Move, error) {
	a, err := given(q.ask(v, nil))
	return a.Moves, err
}

// ReadsLoads passes on whether the strategy does.
func (q *Asked) ReadsLoads() bool { return q.Reads }
