// The checkers of where shards may be given and moved to.

package check

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// TestPlacingCheckersCryOut: a coordinator that gives a shard, or moves one, to a region of which it has heard that it
// is not ready, or moves one for balance while it sees that paused, is named; and none that has yet to hear of it,
// carries out a move by hand, or takes a shard from a member that drains or leaves (SHD-6).
func TestPlacingCheckersCryOut(t *testing.T) {
	typ := &world.EntityType{Type: entity.Type{Name: "t", Shards: 4, New: silent}}
	id := route.TypeOf("t")
	key := world.ShardKey{Type: id, Shard: 1}
	type at struct {
		w       *world.World
		c       *Checker
		a, b, d *world.Process // a coordinates
	}
	unready := func(x at) {
		Declares(x.c, x.b, id, false, func() error { return x.b.Command(shard.ReadyCommand{Type: id}) })
	}
	heard := func(x at) { unready(x); x.w.Advance(time.Second) }
	paused := func(x at) {
		x.b.Do(membership.SetMetadataCommand{Key: shard.PauseKey, Value: []byte("x")})
		x.w.Advance(2 * time.Second)
	}
	byHand := func(x at, to *world.Process) { MovedByHand(x.c, key, to.ID) }
	gives := func(x at, to peer.ID) {
		given(x.c, x.a, &shard.Event{Kind: shard.ShardAllocated, Type: id, Shard: 1, Home: to})
	}
	moves := func(x at, from, to *world.Process) {
		x.c.Shard(x.a, &shard.Event{Kind: shard.MoveBegan, Type: id, Shard: 1, Home: from.ID, To: to.ID})
	}
	done := func(x at, from, to *world.Process) {
		x.c.Shard(x.a, &shard.Event{Kind: shard.MoveDone, Type: id, Shard: 1, Home: from.ID, To: to.ID})
	}
	drains := func(x at, p *world.Process) { Drains(x.c, p, func() error { return nil }) }
	for name, tc := range map[string]struct {
		play func(x at)
		rule string
	}{
		"given to one that is not ready":   {func(x at) { heard(x); gives(x, x.b.ID) }, "readiness"},
		"given to the coordinator itself":  {func(x at) { x.b = x.a; heard(x); gives(x, x.a.ID) }, "readiness"},
		"moves to one that is not ready":   {func(x at) { heard(x); moves(x, x.a, x.b) }, "readiness"},
		"moved to where it was":            {func(x at) { done(x, x.a, x.a) }, "moved"},
		"moved":                            {func(x at) { done(x, x.a, x.b) }, ""},
		"given to another":                 {func(x at) { heard(x); gives(x, x.d.ID) }, ""},
		"given before the word has come":   {func(x at) { unready(x); gives(x, x.b.ID) }, ""},
		"given to one that is ready again": {func(x at) { heard(x); again(x.w, x.b, id); gives(x, x.b.ID) }, ""},
		"given in the step in which the word comes": {func(x at) {
			checks(x.w).stream(x.b.ID, x.a.ID).words.set(x.w.Now, id, true)
			gives(x, x.b.ID)
		}, ""},
		"given after a word that was refused": {func(x at) {
			Declares(x.c, x.a, id, false, func() error { return errors.New("no") })
			gives(x, x.a.ID)
		}, ""},
		"moves though it is paused":          {func(x at) { paused(x); moves(x, x.a, x.d) }, "paused"},
		"moves before the pause":             {func(x at) { moves(x, x.a, x.d) }, ""},
		"moves by hand though it is paused":  {func(x at) { paused(x); byHand(x, x.d); moves(x, x.a, x.d) }, ""},
		"moves by hand, but to another":      {func(x at) { paused(x); byHand(x, x.b); moves(x, x.a, x.d) }, "paused"},
		"leaves one that drains in a pause":  {func(x at) { paused(x); drains(x, x.b); moves(x, x.b, x.d) }, ""},
		"leaves one that leaves in a pause":  {func(x at) { paused(x); x.b.Leaving = true; moves(x, x.b, x.d) }, ""},
		"leaves another than the one drains": {func(x at) { paused(x); drains(x, x.b); moves(x, x.a, x.d) }, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, setup.Config{}, typ)
			w.Advance(5 * time.Second)
			x := at{w, checks(w), w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process}
			tc.play(x)
			var rules []string
			for _, v := range x.c.Violations {
				rules = append(rules, v.Rule)
			}
			if tc.rule == "" {
				require.Empty(t, x.c.Violations)
			} else {
				require.Equal(t, []string{tc.rule}, rules)
			}
		})
	}
}

// again makes a region declare that it is ready, and its coordinator hear of it.
func again(w *world.World, p *world.Process, id route.TypeID) {
	Declares(checks(w), p, id, true, func() error { return p.Command(shard.ReadyCommand{Type: id, Ready: true}) })
	w.Advance(time.Second)
}
