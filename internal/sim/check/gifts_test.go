// Tests of two numbers that two leaders give one member at once.

package check

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
)

// TestTwoNumbersAtOnce: a leader that stood still gives a joiner a number while another one, which has downed it, gives
// the next, and the joiner hears of both. It may bear the first until it hears of the second. It may not where either
// giver could have known of the other number, and nobody goes back (MEM-5, storm 14400003672).
func TestTwoNumbersAtOnce(t *testing.T) {
	const lost, leader, joiner, other = 0, 1, 2, 3
	type show struct {
		by     int
		number uint32
		down   bool // the lost one is Down there
	}
	for name, k := range map[string]struct {
		shows []show
		want  int
	}{
		"the joiner hears of the second later": {[]show{{lost, 50, false}, {leader, 51, true}, {joiner, 50, true},
			{joiner, 51, true}}, 0},
		"and before it is given": {[]show{{lost, 50, false}, {joiner, 50, true}, {leader, 51, true},
			{joiner, 51, true}}, 0},
		"the first is given later": {[]show{{leader, 51, true}, {lost, 50, false}, {joiner, 50, true},
			{joiner, 51, true}}, 0},
		"another one hears of the first last": {[]show{{lost, 50, false}, {leader, 51, true}, {joiner, 50, true},
			{joiner, 51, true}, {other, 50, true}, {other, 51, true}}, 0},
		"the lost one is none for the leader": {[]show{{lost, 50, false}, {leader, 51, false}, {joiner, 50, true},
			{joiner, 51, true}}, 1},
		"the joiner knew of the first": {[]show{{lost, 50, false}, {joiner, 50, false}, {leader, 51, true},
			{joiner, 51, true}}, 2},
		"another one knew of it": {[]show{{lost, 50, false}, {other, 50, false}, {leader, 51, true}, {joiner, 50, true},
			{joiner, 51, true}}, 2},
		"the leader knew of it": {[]show{{lost, 50, false}, {leader, 50, true}, {leader, 51, true}, {joiner, 50, true},
			{joiner, 51, true}}, 2},
		"the joiner goes back": {[]show{{lost, 50, false}, {leader, 51, true}, {joiner, 50, true}, {joiner, 51, true},
			{joiner, 50, true}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 4, setup.Config{})
			fresh := &world.Process{World: w, Alive: true, ID: peer.ID{Addr: w.Hosts[joiner].Addr, Inc: 1}}
			who := []*world.Process{w.Hosts[lost].Process, w.Hosts[leader].Process, fresh, w.Hosts[other].Process}
			for _, s := range k.shows {
				v := *who[lost].View
				v.Members = slices.Clone(v.Members)
				if s.down {
					at, _ := slices.BinarySearchFunc(v.Members, who[lost].ID, byID)
					v.Members[at].Status = membership.Down
				}
				m := membership.Member{ID: fresh.ID, Status: membership.Up, UpNumber: s.number}
				at, _ := slices.BinarySearchFunc(v.Members, m.ID, byID)
				v.Members = slices.Insert(v.Members, at, m)
				checks(w).number(who[s.by], &v, &m)
				if s.by != lost {
					who[s.by].View = &v
				}
			}
			require.Len(t, checks(w).Violations, k.want, "%v", checks(w).Violations)
		})
	}
}

func byID(m membership.Member, id peer.ID) int { return m.ID.Compare(id) }
