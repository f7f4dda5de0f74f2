// The law of states: none is lost without a fault, and what counts as one.

package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// statePlay is an entity with a state that one of four owns. An operator downs members at the third alone: before the
// world goes on nobody else has heard of it.
type statePlay struct {
	*states
	owner, next, chair, other *world.Process
	key                       stateKey
}

func (x *statePlay) downs(list ...*world.Process) {
	for _, p := range list {
		x.s.down(x.chair, p.ID)
	}
}

// gives makes the owner hand over a state under its fence.
func (x *statePlay) gives() {
	x.gave(x.owner, given{key: x.key, fence: route.MakeFence(1, 1, 1), count: 1})
}

// has tells that what was left under the fence of this epoch was handed over.
func (x *statePlay) has(from, to *world.Process, epoch uint32) {
	x.s.check.Shard(from, &shard.Event{Kind: shard.MoveHandedOver, Type: x.key.typ, Home: from.ID, To: to.ID, Term: 1,
		Fence: route.MakeFence(1, 1, epoch)})
}

// takes has an owner take up what was given last, under the fence of this term.
func (x *statePlay) takes(p *world.Process, term uint32) {
	x.states.takes(p, x.key, &x.given[0], route.MakeFence(1, term, 1), false)
}

func (x *statePlay) begins(p *world.Process) { x.anew(p, x.key, route.MakeFence(1, 4, 2)) }

// TestStatesOfTheLost: a state may be lost with its owner, or with its holder now, if that is lost for those that the
// shard goes on among; also if it was so before it handed over, without having heard of it. The loss of anybody else
// before that excuses nothing, and the lost are held to the rule among their own (SHD-9, SHD-11).
func TestStatesOfTheLost(t *testing.T) {
	for name, k := range map[string]struct {
		lost   bool // though the rule forbids it
		events func(x *statePlay)
	}{
		"nobody is lost": {true, func(x *statePlay) { x.gives(); x.begins(x.chair) }},
		"a late owner begins anew, too": {true, func(x *statePlay) {
			x.gives()
			x.anew(x.other, x.key, route.MakeFence(1, 1, 0))
			x.begins(x.chair)
		}},
		"its owner is":                {false, func(x *statePlay) { x.gives(); x.downs(x.owner); x.begins(x.chair) }},
		"its owner was before":        {false, func(x *statePlay) { x.downs(x.owner); x.gives(); x.begins(x.chair) }},
		"its owner was, for one side": {false, func(x *statePlay) { x.downs(x.owner); x.gives(); x.begins(x.other) }},
		"it goes on among the lost": {true, func(x *statePlay) {
			x.downs(x.owner, x.next)
			x.gives()
			x.begins(x.next)
		}},
		"somebody else was before": {true, func(x *statePlay) { x.downs(x.next); x.gives(); x.begins(x.chair) }},
		"who has it was before": {false, func(x *statePlay) {
			x.downs(x.next)
			x.gives()
			x.has(x.owner, x.next, 1)
			x.begins(x.chair)
		}},
		"who has something older was before": {true, func(x *statePlay) {
			x.downs(x.next)
			x.has(x.owner, x.next, 0)
			x.gives()
			x.begins(x.chair)
		}},
		"who had it was before, and has handed it on": {true, func(x *statePlay) {
			x.downs(x.next)
			x.gives()
			x.has(x.owner, x.next, 1)
			x.has(x.next, x.other, 2)
			x.begins(x.chair)
		}},
		"a late owner takes up what it kept": {false, func(x *statePlay) {
			x.downs(x.owner)
			x.gives()
			x.begins(x.chair)
			x.takes(x.owner, 3)
		}},
		"a late owner takes up what another gave": {true, func(x *statePlay) {
			x.downs(x.owner)
			x.gives()
			x.begins(x.chair)
			x.takes(x.next, 3)
		}},
		"the newest owner takes up what is taken": {true, func(x *statePlay) {
			x.downs(x.owner)
			x.gives()
			x.begins(x.chair)
			x.takes(x.owner, 5)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			typ := &world.EntityType{Type: entity.Type{Name: "t", Shards: 1, New: func(string, route.Fence) entity.Handler {
				return &stormEntity{}
			}}}
			w := formed(t, 4, setup.Config{}, typ)
			w.Advance(5 * time.Second)
			s := &storm{w: w, check: checks(w)}
			s.states = &states{s: s, rows: map[stateKey]*stateRow{}}
			x := &statePlay{s.states, w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process, w.Hosts[3].Process,
				stateKey{route.TypeOf("t"), "e"}}
			require.Empty(t, checks(w).Violations)
			k.events(x)
			var rules []string
			for _, v := range checks(w).Violations {
				rules = append(rules, v.Rule)
			}
			if k.lost {
				require.Equal(t, []string{"state"}, rules)
			} else {
				require.Empty(t, rules)
			}
		})
	}
}
