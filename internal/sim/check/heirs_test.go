// The checker of which node gets what is left of a shard though it is not ready.

package check

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

// heirPlay is a shard that lives at one of two, neither of which is ready, as the coordinator in the chair knows.
type heirPlay struct {
	c           *Checker
	key         world.ShardKey
	chair       *world.Process
	owner, next *world.Process
	epoch       uint32
}

// says makes a process report a step of the move under this term.
func (x *heirPlay) says(p *world.Process, k shard.EventKind, term uint32) {
	x.c.Shard(p, &shard.Event{Kind: k, Type: x.key.Type, Shard: x.key.Shard, Term: term, Home: x.owner.ID, To: x.next.ID,
		Fence: route.MakeFence(1, 2, 1)})
}

// gives makes the coordinator give the shard away under this term, and says under which fence.
func (x *heirPlay) gives(to *world.Process, term uint32) route.Fence {
	x.epoch++
	f := route.MakeFence(1, term, x.epoch)
	given(x.c, x.chair, &shard.Event{Type: x.key.Type, Shard: x.key.Shard, Term: term, Home: to.ID, Fence: f})
	return f
}

func (x *heirPlay) begins(p *world.Process, f route.Fence) {
	x.c.owner(x.key).placing.heirs.begins(p, f)
}
func (x *heirPlay) keeps() { x.c.Keeps(x.owner, x.key) }
func (x *heirPlay) loses() { x.c.gone[x.owner.ID] = x.c.w.Now }

// heirCases are those of TestHeirsNeedNotBeReady. Each begins with a move of term 3 that all have marked.
var heirCases = map[string]struct {
	play   func(x *heirPlay)
	broken bool
}{
	"back to the owner, that has what is left": {func(x *heirPlay) { x.keeps(); x.gives(x.owner, 3) }, false},
	"back to the owner, that has nothing":      {func(x *heirPlay) { x.gives(x.owner, 3) }, true},
	"back to the owner, that has handed over": {func(x *heirPlay) {
		x.keeps()
		x.says(x.owner, shard.MoveHandedOver, 3)
		x.gives(x.owner, 3)
	}, true},
	"to whom it was handed over": {func(x *heirPlay) {
		x.keeps()
		x.says(x.owner, shard.MoveHandedOver, 3)
		x.gives(x.next, 3)
	}, false},
	"to whom nothing was handed over":   {func(x *heirPlay) { x.gives(x.next, 3) }, true},
	"to who may have it":                {func(x *heirPlay) { x.loses(); x.gives(x.next, 3) }, false},
	"to who may have it, in a new term": {func(x *heirPlay) { x.loses(); x.gives(x.next, 4) }, false},
	"to whom a move was for that nobody has marked": {func(x *heirPlay) {
		x.says(x.chair, shard.MoveBegan, 3)
		x.loses()
		x.gives(x.next, 4)
	}, true},
	"to whom a move was for that was given up": {func(x *heirPlay) {
		x.says(x.chair, shard.MoveAborted, 3)
		x.loses()
		x.gives(x.next, 3)
	}, true},
	"to whom the move before was for": {func(x *heirPlay) {
		x.c.Shard(x.chair, &shard.Event{Kind: shard.MoveBegan, Type: x.key.Type, Shard: x.key.Shard, Term: 3,
			Home: x.owner.ID, To: x.chair.ID})
		x.loses()
		x.gives(x.next, 3)
	}, true},
	"twice in a term": {func(x *heirPlay) { x.keeps(); x.gives(x.owner, 3); x.gives(x.owner, 3) }, true},
	"again by the next term, as it has not begun": {func(x *heirPlay) {
		x.keeps()
		x.gives(x.owner, 3)
		x.gives(x.owner, 4)
	}, false},
	"again by the next term, though it has begun": {func(x *heirPlay) {
		x.keeps()
		x.begins(x.owner, x.gives(x.owner, 3))
		x.gives(x.owner, 4)
	}, true},
	"to one that has begun in the very step": {func(x *heirPlay) {
		x.keeps()
		x.begins(x.owner, route.MakeFence(1, 3, 1))
		x.gives(x.owner, 3)
	}, false},
	"by a coordinator that has not heard of the next one": {func(x *heirPlay) {
		x.says(x.owner, shard.MoveHandedOver, 3)
		x.begins(x.next, x.gives(x.next, 4))
		x.gives(x.next, 3)
	}, false},
	"twice by a coordinator that has not heard of the next one": {func(x *heirPlay) {
		x.says(x.owner, shard.MoveHandedOver, 3)
		x.begins(x.next, x.gives(x.next, 4))
		x.gives(x.next, 3)
		x.gives(x.next, 3)
	}, true},
	"to who has what is old in this term": {func(x *heirPlay) {
		x.keeps()
		x.begins(x.chair, route.MakeFence(1, 3, 9))
		x.gives(x.owner, 3)
	}, true},
	"to who has it from an owner of whom that is heard late": {func(x *heirPlay) {
		x.loses()
		x.begins(x.next, x.gives(x.next, 3))
		x.says(x.owner, shard.MoveHandedOver, 3)
		x.gives(x.next, 4)
	}, true},
}

// TestHeirsNeedNotBeReady: a node that has what the last owner did not work off, or may have it since the owner was
// lost, is given the shard ready or not, once in a coordinator term and until it begins with it; nobody else that is
// not ready is (SHD-6).
func TestHeirsNeedNotBeReady(t *testing.T) {
	id := route.TypeOf("t")
	for name, tc := range heirCases {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, setup.Config{}, &world.EntityType{Type: entity.Type{Name: "t", Shards: 4, New: silent}})
			w.Advance(5 * time.Second)
			x := &heirPlay{c: checks(w), key: world.ShardKey{Type: id, Shard: 1}, chair: w.Hosts[0].Process,
				owner: w.Hosts[1].Process, next: w.Hosts[2].Process}
			x.says(x.chair, shard.MoveBegan, 3)
			x.says(x.owner, shard.MoveMarked, 3)
			for _, p := range []*world.Process{x.owner, x.next} {
				checks(w).stream(p.ID, x.chair.ID).words.set(w.Now-1, id, true)
			}
			tc.play(x)
			require.Equal(t, tc.broken, len(x.c.Violations) > 0, "%v", x.c.Violations)
			for _, v := range x.c.Violations {
				require.Equal(t, "readiness", v.Rule)
			}
		})
	}
}
