// Tests of the list of seats in the gossiped state: its writer, and when it changes (MEM-10).

package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
)

// electorate returns the list of seats that all that live hold, the zero value while they differ.
func (w *world) electorate() tenure.Seats {
	live := w.alive()
	for _, a := range live {
		if !a.m.st.Seats.Same(live[0].m.st.Seats) {
			return tenure.Seats{}
		}
	}
	return live[0].m.st.Seats
}

// seated waits until all hold a list that fits.
func (w *world) seated(what string, fits func(s tenure.Seats) bool) tenure.Seats {
	w.until(time.Minute, what, func() bool {
		s := w.electorate()
		return s.Number > 0 && fits(s)
	})
	return w.electorate()
}

func full(s tenure.Seats) bool { return !holds(s, peer.ID{}) }

func holds(s tenure.Seats, id peer.ID) bool {
	return slices.Contains(s.Holders, id)
}

// TestSeatsAreGossiped: the leader founds the electorate, empties the seat of a member that is Down, and fills it in a
// later list; a member with another role gets none; all hold one list, and a writer writes one under a number
// (emptied-first, MEM-10).
func TestSeatsAreGossiped(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.Electorate = Electorate{3, "voter"}
	w.join(w.start(1), 1)
	var all []*actor
	for n := 2; n <= 5; n++ {
		a := w.start(n, "voter")
		w.join(a, 1)
		all = append(all, a)
	}
	w.until(30*time.Second, "forming", w.settled)
	s := w.seated("three seats", full)
	require.False(t, holds(s, w.actors[0].id), "the leader has not the role")
	require.Equal(t, w.actors[0].id, s.Writer)
	require.True(t, holds(s, all[0].id))

	type mark struct {
		number uint32
		writer peer.ID
	}
	lists := map[mark]tenure.Seats{}
	look := func() {
		for _, a := range w.actors {
			if is := a.m.st.Seats; is.Number > 0 {
				before, known := lists[mark{is.Number, is.Writer}]
				require.True(t, !known || !before.Newer(is) && !is.Newer(before), "one list under a number")
				lists[mark{is.Number, is.Writer}] = is
			}
		}
	}
	w.crash(all[0])
	w.do(all[1], DownCommand{ID: all[0].id, Cause: cluster.CauseResolver})
	next := w.seated("the seat moves", func(s tenure.Seats) bool {
		look()
		return full(s) && !holds(s, all[0].id)
	})
	require.Greater(t, next.Number, s.Number+1)
	emptied := lists[mark{s.Number + 1, s.Writer}]
	require.True(t, holds(emptied, peer.ID{}), "it is emptied first")
	require.Equal(t, s.Seat(all[0].id), next.Seat(all[3].id))
}

// TestSeatsStayWithoutAQuorum: when a quorum of the holders is Down the list stays as it is (quorum-stays), until all
// that are Down or removed are known to have ended (ended-before-refounding).
func TestSeatsStayWithoutAQuorum(t *testing.T) {
	w := newWorld(t, 2)
	w.cfg.Electorate.Voters = 3
	all := w.cluster(5)
	s := w.seated("three seats", full)
	for _, a := range all {
		if s.Seat(a.id) > 0 {
			w.crash(a)
		}
	}
	var gone []peer.ID
	for _, a := range all {
		if a.dead {
			gone = append(gone, a.id)
		}
	}
	refused := w.alive()[0].m.Do(w.now, RefoundCommand{})
	require.ErrorIs(t, refused, ErrNoRefound)
	require.ErrorContains(t, refused, "members that are not Down hold 3 of 3 seats")
	w.do(w.alive()[0], DownAllCommand{IDs: gone, Cause: cluster.CauseResolver})
	w.until(time.Minute, "both are removed", w.settled)
	w.run(10 * time.Second)
	require.True(t, w.electorate().Same(s))
	lost, unproven := SeatsLost(w.alive()[0].m, nil)
	require.True(t, lost)
	require.Len(t, unproven, 2)
	w.do(w.alive()[0], ProveCommand{IDs: gone[:1]})
	w.run(10 * time.Second)
	require.True(t, w.electorate().Same(s), "one may live")
	w.do(w.alive()[1], RefoundCommand{})
	next := w.seated("it is founded anew", func(n tenure.Seats) bool { return full(n) && n.Number > s.Number })
	require.Equal(t, s.Number+1, next.Number)
	require.ErrorIs(t, w.alive()[0].m.Do(w.now, RefoundCommand{}), ErrNoRefound)
}

// TestTheUnprovenAreNotForgotten: a member that was Down is remembered beyond its time until its end is proven, so that
// an operator's word covers it, however late that comes; one that has left is not. Found by storm 12800002112.
func TestTheUnprovenAreNotForgotten(t *testing.T) {
	w := newWorld(t, 6)
	w.cfg.Electorate.Voters = 3
	w.cfg.TombstoneRetention = time.Minute
	all := w.cluster(6)
	s := w.seated("three seats", full)
	var gone, left []peer.ID
	for _, a := range all {
		switch seat := s.Seat(a.id); {
		case seat > 0:
			w.crash(a)
			gone = append(gone, a.id)
		case seat < 0 && len(left) == 0:
			w.do(a, LeaveCommand{})
			left = append(left, a.id)
		}
	}
	w.do(w.alive()[0], DownAllCommand{IDs: gone, Cause: cluster.CauseResolver})
	w.until(time.Minute, "all are removed", w.settled)
	w.run(5 * time.Minute)
	for _, a := range w.alive() {
		lost, unproven := SeatsLost(a.m, nil)
		require.True(t, lost)
		require.ElementsMatch(t, gone, unproven)
	}
	w.do(w.alive()[0], RefoundCommand{})
	w.seated("it is founded anew", func(n tenure.Seats) bool { return full(n) && n.Number > s.Number })
	w.run(time.Minute)
	require.Empty(t, w.alive()[0].m.st.Tombs)
}

// TestFirstSeatsWaitForTheLost: the first list waits until all that are Down have ended, but not for one that has left.
func TestFirstSeatsWaitForTheLost(t *testing.T) {
	w := newWorld(t, 5)
	w.cfg.Electorate.Voters = 5
	all := w.cluster(2)
	third := w.start(3)
	w.join(third, 1)
	w.until(10*time.Second, "it is let in", func() bool { return all[0].m.st.Has(third.id) })
	w.crash(third)
	w.do(all[0], DownCommand{ID: third.id, Cause: cluster.CauseResolver})
	w.until(time.Minute, "it is removed", w.settled)
	for n := 4; n <= 5; n++ {
		w.join(w.start(n), 1)
	}
	w.until(time.Minute, "four are there", w.settled)
	w.run(10 * time.Second)
	require.Zero(t, w.electorate().Number)
	w.do(all[0], RefoundCommand{})
	w.seated("founded", func(tenure.Seats) bool { return true })
}

// TestSeatsWaitForAll: nothing changes before a member that is joining has been seen with the state too (seen-by-all).
func TestSeatsWaitForAll(t *testing.T) {
	w := newWorld(t, 3)
	w.cfg.Electorate.Voters, w.cfg.MinMembers = 5, 5
	all := w.cluster(5)
	s := w.seated("five seats", full)
	joiner := w.start(6)
	w.join(joiner, 1)
	w.until(10*time.Second, "it is let in", func() bool { return all[0].m.st.Has(joiner.id) })
	w.cut = func(from, to peer.ID) bool { return from == joiner.id || to == joiner.id }
	w.crash(all[4])
	w.do(all[0], DownCommand{ID: all[4].id, Cause: cluster.CauseResolver})
	w.run(2 * time.Second)
	require.True(t, all[0].m.st.Seats.Same(s))
	w.cut = nil
	w.seated("the joiner gets the seat", func(n tenure.Seats) bool { return full(n) && holds(n, joiner.id) })
}

// TestNoSeatsWithoutElectorate: without the setting the state has no list, and its bytes are those of earlier builds.
func TestNoSeatsWithoutElectorate(t *testing.T) {
	w := newWorld(t, 4)
	all := w.cluster(3)
	w.run(5 * time.Second)
	require.Zero(t, all[0].m.st.Seats.Number)
}

// TestElectorate: which settings are refused.
func TestElectorate(t *testing.T) {
	require.NoError(t, Config{Electorate: Electorate{5, "voter"}}.Validate())
	require.NoError(t, Config{Electorate: Electorate{Voters: 3}}.Validate())
	for _, e := range []Electorate{{Voters: 2}, {Voters: 9}, {Voters: -3}, {Role: "voter"}} {
		require.Error(t, Config{Electorate: e}.Validate())
	}
}
