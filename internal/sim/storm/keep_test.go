// Tests of what storms keep alive.

package storm

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// TestStormsKeepDaemonsAlive: seeds that draw daemons call them often, and find nothing wrong (SHD-12).
func TestStormsKeepDaemonsAlive(t *testing.T) { require.Positive(t, daemonStorms(t, 4)) }

func TestLongStormsKeepDaemonsAlive(t *testing.T) {
	long.Test(t)
	require.Greater(t, daemonStorms(t, 12), 3)
}

// daemonStorms returns how many of the first seeds drew daemons.
func daemonStorms(t *testing.T, seeds uint64) (drawn int) {
	runs := 0
	for seed := uint64(1); seed <= seeds; seed++ {
		s := newStorm(seed, nil, false)
		r := s.run()
		require.Empty(t, r.violations, "seed %d", seed)
		if s.keeps != nil {
			drawn++
			runs += s.keeps.runs
		}
	}
	require.GreaterOrEqual(t, runs, 50*drawn)
	return drawn
}

// TestStormOfALeaverWhoseClockGoesBack: the last member leaves, the wall clock of its host goes back, and what its next
// process forms issues fences above the old ones (JOIN-1). Of 1,230 violations once.
func TestStormOfALeaverWhoseClockGoesBack(t *testing.T) {
	s := newStorm(7770, []string{OffReadiness, OffHolds}, false)
	require.Empty(t, s.run().violations)
}

// TestLateOwnersPageTakesNobodysPlace: a remembered entity is begun anew by an owner that was lost and does not know
// it, while it lives at the next owner, and ends there with its node: it lives on (SHD-12). Found by storm 881196, in
// which an owner that was cut off for more than a minute began one again after a panic.
func TestLateOwnersPageTakesNobodysPlace(t *testing.T) {
	w := formed(t, 2, alone)
	late, next := w.Hosts[0].Process, w.Hosts[1].Process
	k := &keeps{paged: map[string]*page{}}
	lives := &page{k, next, "page4", route.MakeFence(1, 2, 3)}
	lives.begins()
	again := &page{k, late, "page4", route.MakeFence(1, 1, 9)}
	again.begins()
	again.end()
	require.Same(t, lives, k.paged["page4"])
	newest := &page{k, late, "page4", route.MakeFence(1, 2, 4)}
	newest.begins()
	require.Same(t, newest, k.paged["page4"])
	late.Crash(true)
	lives.begins()
	require.Same(t, lives, k.paged["page4"], "who ended with its process holds no place")
}

// TestLateOwnersDaemonTakesNobodysPlace: an owner that was lost and does not know it calls a daemon's function again
// while the daemon lives at the next owner, and ends with its node: the daemon lives on. Nor does a late owner's call
// count for that of the home (SHD-12). Found by storm 1128400746, in which an owner was cut off for minutes.
func TestLateOwnersDaemonTakesNobodysPlace(t *testing.T) {
	w, c := check.NewWorld(2, 1, alone)
	t.Cleanup(w.End)
	s := &storm{w: w, check: c, ending: true}
	k := newKeeps(rand.New(rand.NewPCG(1, 1)), s)
	k.crowd = &world.EntityType{Keep: &entity.Keep{Run: k.live, ID: func(route.ShardID) string { return "0" }},
		Type: entity.Type{Name: "crowd", Shards: 1, RestartBackoff: time.Second, RestartWindow: time.Second,
			New: func(string, route.Fence) entity.Handler { return &stormEntity{} }}}
	require.Empty(t, w.Form(k.crowd))
	runs := func() bool { return len(idle(k)) == 0 }
	require.True(t, w.Until(time.Minute, runs))

	homes, fence := c.Homes(world.ShardKey{Type: route.TypeOf("crowd")})
	home, late := homes[0], w.Running()[0]
	if late == home {
		late = w.Running()[1]
	}
	ends := k.begins(0, life{late, route.MakeFence(1, 1, 1)})
	require.True(t, runs())
	late.Crash(true)
	require.True(t, runs(), "who ended holds no place")
	own := life{home, fence}
	k.lives[0] = slices.DeleteFunc(k.lives[0], func(l life) bool { return l == own })
	require.Equal(t, []int{0}, idle(k), "nor does it fill that of the home")
	live := k.begins(0, own)
	ends()
	require.True(t, runs())
	live()
	require.Equal(t, []int{0}, idle(k))
}

// TestWhoMayBeginADaemon: nobody may while it goes on elsewhere, but in a cluster that was formed anew while the node
// that has it slept or was suspended: there nobody knows of it, and it goes on with nothing. Found by storm 1858, in
// which all other nodes ended while one slept.
func TestWhoMayBeginADaemon(t *testing.T) {
	w := formed(t, 3, alone)
	s := &storm{w: w, check: checks(w)}
	here, asleep, dead := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
	asleep.Pause(time.Hour)
	dead.Crash(true)
	w.Advance(w.Takeover())
	require.True(t, asleep.Held())
	require.False(t, here.Held())
	old, anew := route.MakeFence(1, 2, 3), route.MakeFence(2, 1, 1)
	for _, tc := range []struct {
		was   *world.Process
		fence route.Fence
		may   bool
	}{{here, old, false}, {here, anew, false}, {asleep, old, false}, {asleep, anew, true}, {dead, old, true}} {
		require.Equal(t, tc.may, mayBegin(s, life{here, tc.fence}, life{tc.was, old}))
	}
}

// busy is an entity with slow messages.
type busy struct {
	k     *keeps
	takes time.Duration
}

func (b busy) Receive(*entity.Context, []byte) error {
	b.k.s.w.Acting.Dawdle(b.takes)
	b.k.worked(b.k.s.w.Acting)
	return nil
}

func (busy) Stop(*entity.Context) {}

// TestPagesWithoutRoom: remembered entities that cannot begin, because mail fills the budget of their node, may wait
// for as long as it is worked off, and no longer. One that cannot begin for another reason may not, nor is there room
// that they do not get. Found by storm 881126300295, in which the mail waited for an entity that rested after each of
// its panics.
func TestPagesWithoutRoom(t *testing.T) {
	const budget, mail = 8 << 10, 300
	for name, tc := range map[string]struct {
		takes  time.Duration // for each message
		broken bool          // entities do not begin for another reason
		rules  []string
	}{
		"mail is worked off":   {takes: 5 * time.Second},
		"mail stands still":    {takes: time.Hour, rules: []string{"remembered"}},
		"not for want of room": {takes: 5 * time.Second, broken: true, rules: []string{"remembered"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storm{ending: true}
			k := newKeeps(rand.New(rand.NewPCG(1, 1)), s)
			k.book = remembered(k, func(t entity.Type) entity.Type {
				t.RestartBackoff, t.RestartWindow = time.Second, 4*time.Second
				return t.WithDefaults()
			})
			open := k.book.Open
			k.book.Open = func(c *entity.Context) (entity.Handler, error) {
				if tc.broken && len(s.w.Running()) == 1 {
					return nil, errors.New("broken")
				}
				return open(c)
			}
			slow := &world.EntityType{Type: entity.Type{Name: "slow", Shards: 1, Role: "store", Mode: entity.Blocking,
				New: func(string, route.Fence) entity.Handler { return busy{k, tc.takes} }}}
			cfg := alone
			cfg.Roles, cfg.Data.MailboxBudget = [][]string{{"store"}, nil}, budget
			s.w = formed(t, 2, cfg, k.book, slow)
			s.check = checks(s.w)
			demandPages(k, 30*time.Second)
			require.Empty(t, s.check.Violations)
			s.w.Advance(time.Minute) // no timer runs any more
			full := s.w.Hosts[0].Process
			for range budget/mail + 2 {
				_, err := full.Region(route.TypeOf(slow.Name)).Send("slow", make([]byte, mail), 0)
				require.NoError(t, err)
			}
			s.w.Advance(time.Second)
			require.Greater(t, world.Mailboxes(full)+turnSize, budget)
			leaver := s.w.Hosts[1].Process
			s.w.Leave(leaver)
			require.True(t, s.w.Until(time.Minute, func() bool { return !leaver.Alive }))
			s.w.Advance(time.Second)
			require.NotEmpty(t, unpaged(k))
			demandPages(k, 30*time.Second)
			require.Equal(t, tc.rules, rulesBroken(s.w))
			require.Equal(t, len(tc.rules) == 0, len(unpaged(k)) == 0)
		})
	}
}

// TestRoomThatIsRefused: a budget that says it is used up, and is not, is a violation.
func TestRoomThatIsRefused(t *testing.T) {
	for _, left := range []int{turnSize - 1, turnSize} {
		cfg := alone
		cfg.Data.MailboxBudget = left
		w := formed(t, 1, cfg)
		k := newKeeps(nil, &storm{w: w, check: checks(w)})
		k.crowds(w.Hosts[0].Process, &entity.Context{ID: "page1"}, route.ErrBudgetFull)
		require.Equal(t, left == turnSize, len(rulesBroken(w)) > 0)
	}
}
