// Tests of the stepped resolver: patience, what begins it anew, instability, suspension, the lease, the log (MEM-10).

package sbr

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/contract"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// rig drives one resolver by hand.
type rig struct {
	t   *testing.T
	m   *Machine
	now time.Duration
	eff []Effects
}

func newRig(t *testing.T, self byte, c Config) *rig {
	r := &rig{t: t, m: New(idOf(self), c), now: time.Minute}
	return r
}

// These fix the patience, so that a test's times are its own and not the default's.
var (
	seven  = Config{StableAfter: 7 * time.Second}
	leased = Config{StableAfter: 7 * time.Second, Strategy: LeaseMajority}
)

// see shows a view: members, accusations, and whether it has converged. All members in contact have seen it.
func (r *rig) see(members, accusations string, converged bool, contact string) {
	r.t.Helper()
	v := &membership.View{Self: r.m.self, Members: side(members), Converged: converged}
	for _, w := range strings.Fields(accusations) {
		v.Accusations = append(v.Accusations, membership.Accusation{Observer: idOf(w[0]), Subject: idOf(w[2])})
		if s := idOf(w[2]); s != r.m.self {
			v.Unreachable.Add(s)
		}
	}
	v.Leader = v.RoleLeader("")
	require.NoError(r.t, r.m.Do(r.now, ViewCommand{v}))
	var seen []peer.ID
	for i := range contact {
		seen = append(seen, idOf(contact[i]))
	}
	require.NoError(r.t, r.m.Do(r.now, SeenCommand{seen}))
	r.drain()
}

// A resolver keeps the contract of all machines; it gets no frames.
var _ contract.Stepped[Command, Effects] = (*Machine)(nil)

func (r *rig) drain() {
	var e Effects
	contract.Drain(r.t, r.m, &e, "drained")
	if len(e.Down)+len(e.Lease)+len(e.Decisions)+len(e.Events) > 0 || e.Suspend != nil {
		e.Down, e.Decisions = append([]membership.DownCommand(nil), e.Down...), append([]Decision(nil), e.Decisions...)
		e.Lease, e.Events = append([]LeaseOp(nil), e.Lease...), append([]Event(nil), e.Events...)
		r.eff = append(r.eff, e)
	}
}

// run lets d pass, stepping at every deadline, and returns what came.
func (r *rig) run(d time.Duration) []Effects {
	r.t.Helper()
	r.eff = nil
	end := r.now + d
	for steps := 0; ; steps++ {
		require.Less(r.t, steps, 1000, "it asks for the same deadline again and again")
		at, ok := r.m.Next()
		if !ok || at > end {
			break
		}
		r.now = max(r.now, at)
		r.m.Tick(r.now)
		r.drain()
	}
	r.now = end
	return r.eff
}

func downs(e Effects) string {
	var s peer.Set
	for _, c := range e.Down {
		s.Add(c.ID)
	}
	return letters(s)
}

// TestStableAfter: by the number of Up members at the last converged version, unless it is fixed.
func TestStableAfter(t *testing.T) {
	for up, want := range map[int]float64{0: 5.5, 1: 5.5, 5: 5.5, 6: 10, 10: 10, 11: 13, 20: 13, 21: 17, 50: 17, 51: 20,
		100: 20, 101: 30, 10_000: 30} {
		require.Equal(t, want, Config{}.StableFor(up).Seconds(), "%d members", up)
		require.Equal(t, want*7/4, Config{}.DecidedWithin(up).Seconds())
		require.Equal(t, 3*time.Second, Config{StableAfter: 3 * time.Second}.StableFor(up))
	}
	require.Equal(t, 4*time.Second, Config{StableAfter: 3 * time.Second, UnstableAfter: time.Second}.DecidedWithin(5))
	sizes := Sizes()
	for up := range 300 {
		i := 0
		for i < len(sizes)-1 && up > sizes[i] {
			i++
		}
		require.Equal(t, Config{}.StableFor(sizes[i]), Config{}.StableFor(up), "%d members", up)
	}

	r := newRig(t, 'A', Config{}) // six Up converged, one lost: the wait is that of six, although five are left
	r.see("A B C D E F", "", true, "")
	r.see("A B C D E F", "A>F", false, "")
	require.Empty(t, r.run(9999*time.Millisecond))
	e := r.run(time.Millisecond)
	require.Len(t, e, 1)
	require.Equal(t, "F", downs(e[0]))
	require.Equal(t, 10*time.Second, e[0].Decisions[0].StableAfter)
	require.Equal(t, membership.CauseResolver, e[0].Down[0].Cause)
}

// TestTheRemovedCountNoMore: a member that is gone from the view was seen going by all, also when this node never got
// to know that they had; one that is Down and not removed counts on (MEM-10).
func TestTheRemovedCountNoMore(t *testing.T) {
	for members, want := range map[string]float64{"A B C D E Fd": 10, "A B C D E": 5.5, "A B C D": 5.5,
		"A B C D E F Gj": 10} {
		r := newRig(t, 'A', Config{})
		r.see("A B C D E F", "", true, "")
		r.see(members, "", false, "")
		r.see(members, "A>B", false, "")
		e := r.run(time.Minute)
		require.NotEmpty(t, e, members)
		require.Equal(t, want, e[0].Decisions[0].StableAfter.Seconds(), members)
	}
	r := newRig(t, 'A', Config{}) // it never makes the wait longer
	r.see("A B C", "", true, "")
	r.see("A B C D E F G", "A>B", false, "")
	require.Equal(t, 5.5, r.run(time.Minute)[0].Decisions[0].StableAfter.Seconds())
}

// TestWhatBeginsTheWaitAnew holds the reference's list.
func TestWhatBeginsTheWaitAnew(t *testing.T) {
	for _, c := range []struct {
		what, members, accusations string
		anew                       bool
	}{
		{"nothing", "A B C Dj E", "A>E", false},
		{"unreachable", "A B C Dj E", "A>C A>E", true},
		{"reachable", "A B C Dj E", "", true},
		{"downed", "A B Cd Dj E", "A>E", true},
		{"up", "A B C D E", "A>E", true},
		{"exiting", "A B Cx Dj E", "A>E", true},
		{"joining", "A B C Dj E Fj", "A>E", false},
		{"weakly up", "A B C Dw E", "A>E", false},
		{"leaving", "A B Cl Dj E", "A>E", false},
		{"removed", "A B Dj E", "A>E", false},
		{"another accuser", "A B C Dj E", "A>E B>E", false},
	} {
		r := newRig(t, 'A', seven)
		r.see("A B C Dj E", "", true, "")
		r.now += time.Minute
		r.see("A B C Dj E", "A>E", false, "")
		before := r.m.quietAt
		r.now += 3 * time.Second
		r.see(c.members, c.accusations, false, "")
		require.Equal(t, c.anew, r.m.quietAt != before, c.what)
		if c.anew {
			require.Equal(t, r.now+7*time.Second, r.m.quietAt, c.what)
		}
	}
}

// TestLateAccusation: one that does not change the picture delays the decision by so much that it can be confirmed.
func TestLateAccusation(t *testing.T) {
	r := newRig(t, 'A', seven)
	r.see("A B C", "", true, "")
	r.see("A B C", "A>C", false, "C")
	require.Empty(t, r.run(6900*time.Millisecond))
	r.see("A B C", "A>C B>C", false, "") // C must confirm again
	require.Empty(t, r.run(1000*time.Millisecond))
	require.NoError(t, r.m.Do(r.now, SeenCommand{[]peer.ID{idOf('C')}}))
	require.Zero(t, decided(r.run(3900*time.Millisecond)), "who accuses it may take that back now")
	e := r.run(200 * time.Millisecond)
	require.Equal(t, "ABC", letters(e[0].Decisions[0].Indirect))

	r = newRig(t, 'A', seven)
	r.see("A B C D", "", true, "")
	r.see("A B C D", "A>C", false, "C")
	r.see("A B C D", "A>C B>C", false, "") // it confirmed the first accusation, and never the second
	e = r.run(10 * time.Second)
	require.Empty(t, e[0].Decisions[0].Indirect)
	require.Equal(t, "C", downs(e[0]))
}

// TestLosingSideSuspends: a node that loses stops at its decision; only the leader of its side downs.
// When nobody has downed it two seconds later it goes by itself, whatever it sees then. Found by storm 2939: one cut
// off from its leader decided anew, and lived.
func TestLosingSideSuspends(t *testing.T) {
	for _, leader := range []bool{true, false} {
		r := newRig(t, 'B', seven)
		r.see("A B C D E", "", true, "")
		accused := "B>C B>D B>E"
		if leader {
			accused = "B>A B>C B>D"
		}
		r.see("A B C D E", accused, false, "")
		e := r.run(8 * time.Second)
		require.Len(t, e, 1)
		require.True(t, e[0].Suspend.On)
		require.NotEmpty(t, e[0].Suspend.Why)
		require.Equal(t, leader, e[0].Decisions[0].Leader)
		if leader {
			require.Equal(t, "BE", downs(e[0]))
			require.Equal(t, idOf('B'), e[0].Down[1].ID, "itself last")
		} else {
			require.Empty(t, e[0].Down)
		}
		r.eff = nil
		r.see("A B C D E", "", false, "") // healed before anything came of it
		require.Len(t, r.eff, 1)
		require.False(t, r.eff[0].Suspend.On)
	}
	r := newRig(t, 'B', seven)
	r.see("A B C D E", "", true, "")
	r.see("A B C D E", "B>C B>D B>E", false, "")
	require.True(t, r.run(8 * time.Second)[0].Suspend.On)
	r.see("A B C D E", "B>A", false, "")
	e := r.run(time.Second)
	require.Equal(t, "B", downs(e[0]))
	for _, x := range r.run(time.Minute) {
		require.Empty(t, x.Decisions)
		require.Equal(t, "B", downs(x))
	}
}

// TestUnstable: changes that never end stop every node, after a warning, and end everybody when they go on for as long
// again; only members that count do.
func TestUnstable(t *testing.T) {
	flap := func(r *rig, members string) (held, at time.Duration, last Effects, warned bool) {
		began := r.now
		for i := range 60 {
			accused := "B>A"
			if i%2 == 1 {
				accused = "B>A B>C"
			}
			r.see(members, accused, false, "")
			for _, e := range r.run(500 * time.Millisecond) {
				for _, ev := range e.Events {
					require.Equal(t, Unstable, ev.Kind)
					require.InDelta(t, 8.75, (r.now - began).Seconds(), 0.6, "warned in time")
					warned = true
				}
				if e.Suspend != nil && e.Suspend.On && held == 0 {
					held = r.now - began
				}
				if len(e.Down) > 0 {
					return held, r.now - began, e, warned
				}
			}
		}
		return held, 0, last, warned
	}
	r := newRig(t, 'B', seven)
	r.see("A B C D", "", true, "")
	held, at, e, warned := flap(r, "A B C D")
	require.True(t, warned)
	require.InDelta(t, 12.25, held.Seconds(), 0.5, "it stops 1.75 times stable-after after the first change")
	require.InDelta(t, 24.5, at.Seconds(), 0.5, "all go after as long again, though B does not lead")
	require.Equal(t, "ABCD", downs(e))
	require.Equal(t, membership.CauseUnstable, e.Down[0].Cause)
	require.Contains(t, e.Decisions[0].String(), "nobody can be sure")

	for what, members := range map[string]string{"joining": "Aj B Cj D", "exiting": "Ax B Cx D", "down": "Ad B Cd D"} {
		r := newRig(t, 'B', seven)
		r.see(members, "", true, "")
		held, at, _, _ := flap(r, members)
		require.Zero(t, held, what)
		require.Zero(t, at, what)
	}
	r = newRig(t, 'B', Config{UnstableAfter: -1})
	r.see("A B C D", "", true, "")
	held, at, _, _ = flap(r, "A B C D")
	require.Zero(t, held, "forbidden")
	require.Zero(t, at, "forbidden")
}

// TestOverslept: a node that slept through the time of a decision stops at once, but decides only after it has heard
// what happened meanwhile, and then by its strategy. Found by storm 3435: such a node ended a cluster that had long
// decided.
func TestOverslept(t *testing.T) {
	asleep := func(t *testing.T) *rig {
		r := newRig(t, 'B', seven)
		r.see("A B C D", "", true, "")
		r.see("A B C D", "A>D B>D", false, "")
		r.eff, r.now = nil, r.now+30*time.Second
		r.m.Tick(r.now)
		r.drain()
		require.Len(t, r.eff, 1)
		require.True(t, r.eff[0].Suspend.On)
		require.Empty(t, r.eff[0].Down)
		require.Empty(t, r.run(settle-time.Millisecond))
		return r
	}
	r := asleep(t)
	r.see("A B C", "", true, "")
	require.False(t, r.eff[0].Suspend.On, "D is removed, nothing is left to decide")
	require.Empty(t, r.run(time.Minute))

	r = asleep(t)
	es := r.run(time.Second)
	require.NotEmpty(t, es)
	require.Contains(t, es[0].Decisions[0].Why, "majority",
		"nobody said anything: what stood still is decided, late as it is")
	require.False(t, es[0].Suspend.On, "it lives: others may let it go on")
}

// TestNobodyWithoutASay: nodes that are not members enough decide nothing, and off means off.
func TestNobodyWithoutASay(t *testing.T) {
	for _, self := range []string{"Ax", "Ad"} {
		r := newRig(t, 'A', seven)
		r.see(self+" B C", "", true, "")
		r.see(self+" B C", "A>B A>C", false, "")
		require.Empty(t, r.run(time.Minute), self)
	}
	r := newRig(t, 'A', Config{Strategy: Off})
	r.see("A B C", "A>B A>C", false, "")
	require.Empty(t, r.run(time.Minute))
	for _, self := range []string{"Aj", "Aw"} {
		r = newRig(t, 'A', seven)
		r.see(self+" B C", "", true, "")
		r.see(self+" B C", "A>B", false, "")
		if self == "Aj" {
			require.Empty(t, r.run(time.Minute), "one who is joining goes only when nobody who counts is in reach")
		}
		r.see(self+" B C", "A>B A>C", false, "")
		require.Equal(t, "A", downs(r.run(10 * time.Second)[0]), "it goes, and sends nobody else")
	}
}

// TestLease: asked for by one, at once or later; granted, refused, silent; kept and given back.
func TestLease(t *testing.T) {
	c := Config{Strategy: LeaseMajority, StableAfter: seven.StableAfter, LeaseHold: 40 * time.Second}
	r := newRig(t, 'A', c)
	r.see("A B C", "", true, "")
	r.see("A B C", "A>C B>C", false, "")
	e := r.run(7 * time.Second)
	require.Len(t, e, 1)
	require.Equal(t, LeaseOp{Op: 1, Deadline: r.now + 2*time.Second}, e[0].Lease[0])
	require.Equal(t, LeasePending, e[0].Decisions[0].Lease)
	require.Empty(t, e[0].Down)
	require.NoError(t, r.m.Do(r.now, LeaseResult{Op: 9, OK: true})) // of another time
	require.Empty(t, r.run(time.Second))
	require.NoError(t, r.m.Do(r.now, LeaseResult{Op: 1, OK: true}))
	r.eff = nil
	r.drain()
	require.Equal(t, "C", downs(r.eff[0]))
	require.Contains(t, r.eff[0].Decisions[0].String(), "we have the lease")
	r.see("A B Cd", "A>C B>C", false, "")
	require.Empty(t, r.run(time.Hour), "kept while C is a member")
	r.see("A B", "", true, "")
	require.Empty(t, r.run(39*time.Second))
	give := r.run(4 * time.Second)
	require.True(t, give[0].Lease[0].Release)
	require.True(t, give[1].Lease[0].Release, "again, for nobody answered")
	require.NoError(t, r.m.Do(r.now, LeaseResult{Op: give[len(give)-1].Lease[0].Op, OK: true}))
	require.Empty(t, r.run(time.Hour))
}

// TestLeaseIsAcquiredAgain: one that was acquired for a decision says nothing at the next: it may have ended meanwhile.
// When another side has it then, this one goes.
func TestLeaseIsAcquiredAgain(t *testing.T) {
	for _, ok := range []bool{true, false} {
		r := newRig(t, 'A', leased)
		r.see("A B C", "", true, "")
		r.see("A B C", "A>C B>C", false, "")
		r.run(7 * time.Second)
		require.NoError(t, r.m.Do(r.now, LeaseResult{Op: 1, OK: true}))
		r.drain()
		r.see("A B Cd", "A>C B>C", false, "") // C cannot be removed: B goes silent before it has seen that
		r.run(time.Hour)
		r.see("A B Cd", "A>B A>C B>C", false, "")
		var ops []LeaseOp
		for _, e := range r.run(8 * time.Second) {
			ops = append(ops, e.Lease...)
			require.Empty(t, e.Down)
		}
		require.Len(t, ops, 1)
		require.False(t, ops[0].Release)
		require.NoError(t, r.m.Do(r.now, LeaseResult{Op: ops[0].Op, OK: ok}))
		r.eff = nil
		r.drain()
		if ok {
			require.Equal(t, "B", downs(r.eff[0]))
			r.see("A B", "", true, "")
			require.Equal(t, peer.SetOf(idOf('B'), idOf('C')), r.m.lease.gone, "kept for both")
			continue
		}
		require.Equal(t, "A", downs(r.eff[0]))
		require.True(t, r.eff[0].Suspend.On)
	}
}

// TestLeaseRefused: by another owner, or by silence; the side goes, and what may have been taken unnoticed is given
// back.
func TestLeaseRefused(t *testing.T) {
	for _, silent := range []bool{false, true} {
		r := newRig(t, 'B', leased)
		r.see("A B C", "", true, "")
		r.see("A B C", "B>A B>C", false, "")
		require.Empty(t, r.run(8900 * time.Millisecond)[0].Lease, "the smaller side waits 2 s more")
		e := r.run(200 * time.Millisecond)
		require.Len(t, e[0].Lease, 1)
		if !silent {
			require.NoError(t, r.m.Do(r.now, LeaseResult{Op: 1}))
		}
		r.eff = nil
		r.drain()
		got := r.eff
		got = append(got, r.run(3*time.Second)...)
		var all Effects
		released := false
		for _, e := range got {
			all.Down = append(all.Down, e.Down...)
			if e.Suspend != nil {
				all.Suspend = e.Suspend
			}
			for _, op := range e.Lease {
				released = released || op.Release
			}
		}
		require.Equal(t, "B", downs(all))
		require.Equal(t, membership.CauseLease, all.Down[0].Cause)
		require.True(t, all.Suspend.On)
		require.Equal(t, silent, released)
	}
}

// TestStaleLease: the side goes though it got the lease, and gives it back.
func TestStaleLease(t *testing.T) {
	r := newRig(t, 'A', leased)
	r.see("A B C", "", true, "")
	r.see("A B C", "A>C B>C", false, "")
	require.Len(t, r.run(7 * time.Second)[0].Lease, 1)
	require.NoError(t, r.m.Do(r.now, LeaseResult{Op: 1, OK: true, Stale: true}))
	r.eff = nil
	r.drain()
	got := r.eff
	got = append(got, r.run(time.Second)...)
	var all Effects
	for _, e := range got {
		all.Down, all.Lease = append(all.Down, e.Down...), append(all.Lease, e.Lease...)
	}
	require.Equal(t, "AB", downs(all))
	require.Len(t, all.Lease, 1)
	require.True(t, all.Lease[0].Release)
}

// TestLeaseIsNotAskedByAll: only one of a side asks; one that waits in vain stops; indirectly connected ones never ask.
func TestLeaseIsNotAskedByAll(t *testing.T) {
	r := newRig(t, 'B', leased)
	r.see("A B C", "", true, "")
	r.see("A B C", "A>C B>C", false, "")
	e := r.run(12 * time.Second)
	require.Empty(t, e[0].Lease)
	require.Nil(t, e[0].Suspend)
	e = r.run(time.Second)
	require.True(t, e[0].Suspend.On, "A has not said what came of it")
	r.eff = nil
	r.see("A B Cd", "A>C B>C", false, "")
	require.False(t, r.eff[0].Suspend.On, "it has now")

	r = newRig(t, 'A', leased)
	r.see("A B C D", "", true, "")
	r.see("A B C D", "A>B C>D", false, "AB")
	e = r.run(10 * time.Second)
	require.Empty(t, e[0].Lease)
	require.True(t, e[0].Suspend.On)
	require.Equal(t, "AB", downs(e[0]))
}

// TestLeaseHealed: nobody asks when all is well before it is time to.
func TestLeaseHealed(t *testing.T) {
	r := newRig(t, 'B', leased)
	r.see("A B C", "", true, "")
	r.see("A B C", "B>A B>C", false, "")
	r.run(8 * time.Second)
	r.see("A B C", "", false, "")
	require.Empty(t, r.run(time.Minute))
}

// TestQuorumExceededIsTold at each member that comes Up beyond it.
func TestQuorumExceededIsTold(t *testing.T) {
	r := newRig(t, 'A', Config{Strategy: StaticQuorum, QuorumSize: 2})
	r.see("A B C Dj", "", true, "")
	require.Empty(t, r.eff)
	r.see("A B C D", "", true, "")
	require.Equal(t, QuorumExceeded, r.eff[0].Events[0].Kind)
	r.eff = nil
	r.see("A B C D Ej", "", true, "")
	require.Empty(t, r.eff)
}

// TestFreshMembers: a member that came Up after the last version that all have seen may not decide a tie: the other
// side may take it for joining, and decide by another.
func TestFreshMembers(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		r := newRig(t, 'A', seven)
		r.see("Aj B C D", "", true, "")
		r.see("A B C D", "", !fresh, "")
		r.see("A B C D", "A>B A>D C>B C>D", false, "")
		e := r.run(10 * time.Second)
		want := map[bool]string{true: "ABCD", false: "BD"}[fresh]
		require.Equal(t, want, letters(e[0].Decisions[0].Down), "%s", e[0].Decisions[0])
	}
}

// TestLogIsBounded: the newest decisions are kept, repetitions are not.
func TestLogIsBounded(t *testing.T) {
	r := newRig(t, 'A', seven)
	r.see("A B C D", "", true, "")
	r.see("A B C D", "A>D", false, "")
	r.run(time.Minute)
	require.Len(t, r.m.Decisions(), 1, "it stands and is repeated without a word")
	for i := range 2 * MaxDecisions {
		r.see("A B C D", []string{"A>C", "A>D"}[i%2], false, "")
		r.run(time.Minute)
	}
	log := r.m.Decisions()
	require.Len(t, log, MaxDecisions)
	require.Less(t, log[0].At, log[MaxDecisions-1].At)
	require.ErrorIs(t, r.m.Do(r.now, nil), ErrBadCommand)
}

// TestConfig: names, faults, and what must agree.
func TestConfig(t *testing.T) {
	for s := KeepMajority; s <= Off; s++ {
		text, err := s.MarshalText()
		require.NoError(t, err)
		var back Strategy
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, s, back)
	}
	_, err := ParseStrategy("keep-youngest")
	require.ErrorContains(t, err, "keep-majority")
	require.Equal(t, "strategy-99", Strategy(99).String())
	require.NoError(t, Config{}.Validate())
	seen := map[string]bool{}
	for _, c := range []Config{{}, {Role: "a"}, {Strategy: KeepOldest}, {Strategy: KeepOldest, KeepAlone: true},
		{Strategy: StaticQuorum, QuorumSize: 2}, {Strategy: StaticQuorum, QuorumSize: 3}, {StableAfter: time.Second},
		{UnstableAfter: time.Second}, {UnstableAfter: -1}, {Strategy: LeaseMajority}, {Strategy: Off}} {
		require.False(t, seen[c.Settings()], "%s stands for two configurations", c.Settings())
		seen[c.Settings()] = true
	}
	require.Equal(t, Config{}.Settings(), Config{LeaseHold: time.Second}.Settings(), "what others need not know")
}
