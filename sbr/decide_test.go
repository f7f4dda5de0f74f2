// Tests of the decision: the reference's values as tables, each side asked for itself (MEM-10).

package sbr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// The members of the reference's scenarios: A to G in address order, with their up-numbers and roles.
var (
	upNumbers = map[byte]uint32{'A': 5, 'B': 4, 'C': 3, 'D': 2, 'E': 1, 'F': 5, 'G': 6}
	roles     = map[byte][]string{'A': {"role3"}, 'B': {"role1", "role3"}, 'C': {"role2"},
		'D': {"role1", "role2", "role3"}}
	marks = map[byte]membership.Status{'j': membership.Joining, 'w': membership.WeaklyUp, 'l': membership.Leaving,
		'x': membership.Exiting, 'd': membership.Down, 'o': membership.Down,
		'p': membership.PreparingForShutdown, 'r': membership.ReadyForShutdown}
)

func idOf(name byte) peer.ID {
	return peer.ID{Addr: peer.MustAddr("10.0.0." + string('1'+name-'A') + ":7355"), Inc: uint64(name)}
}

// side reads "A Bj Cl": members with their status; no letter means Up.
func side(text string) (out []membership.Member) {
	for _, w := range strings.Fields(text) {
		m := membership.Member{ID: idOf(w[0]), Status: membership.Up, UpNumber: upNumbers[w[0]], Roles: roles[w[0]]}
		if len(w) > 1 {
			m.Status = marks[w[1]]
		}
		if strings.HasSuffix(w, "o") { // another process took its address over
			m.Cause = membership.CauseReplaced
		}
		if joins(m.Status) {
			m.UpNumber = 0
		}
		out = append(out, m)
	}
	return out
}

// situation is our side against the other one, which every one of us accuses, with further accusations "A>B" among us,
// or by those that are gone; "A!B" is a quarantine.
func situation(ours, others, more string) Situation {
	a, b := side(ours), side(others)
	s := Situation{Self: a[0].ID, Members: append(append([]membership.Member(nil), a...), b...)}
	byID := func(x, y membership.Member) bool { return x.ID.Less(y.ID) }
	for i := range s.Members { // insertion sort: the lists are short
		for j := i; j > 0 && byID(s.Members[j], s.Members[j-1]); j-- {
			s.Members[j], s.Members[j-1] = s.Members[j-1], s.Members[j]
		}
	}
	for _, o := range a {
		s.Contact.Add(o.ID)
		for _, x := range b {
			s.Accusations = append(s.Accusations, membership.Accusation{Observer: o.ID, Subject: x.ID})
		}
	}
	for _, w := range strings.Fields(more) {
		s.Accusations = append(s.Accusations, membership.Accusation{Observer: idOf(w[0]), Subject: idOf(w[2]),
			Quarantined: w[1] == '!'})
	}
	return s
}

func letters(s peer.Set) string {
	var b strings.Builder
	for _, id := range s {
		b.WriteByte(byte(id.Inc))
	}
	return b.String()
}

// row is a break as one side sees it: the members that go.
type row struct{ ours, others, more, down string }

func judge(t *testing.T, c Config, rows ...row) {
	t.Helper()
	for _, r := range rows {
		d := c.Decide(situation(r.ours, r.others, r.more))
		require.Equal(t, r.down, letters(d.Down), "%s: {%s} against {%s}, %s: %s", c.Strategy, r.ours, r.others, r.more, d)
		require.Equal(t, !d.Down.Has(d.Self), d.Lives)
	}
}

// TestScenario17KeepMajority holds the reference's values: the same members go, whichever side decides.
func TestScenario17KeepMajority(t *testing.T) {
	judge(t, Config{},
		row{"A C E", "B D", "", "BD"}, row{"B D", "A C E", "", "BD"},
		row{"A B", "C D E", "", "AB"}, row{"C D E", "A B", "", "AB"},
		row{"A B", "C D", "", "CD"}, row{"C D", "A B", "", "CD"}, // a tie
		row{"A", "B", "", "B"}, row{"B", "A", "", "B"},
		row{"B D", "Aj C", "", "AC"}, row{"Aj C", "B D", "", "AC"},
		row{"A B", "C D E", "", "AB"}, row{"C D", "A B E", "", "CD"}, row{"E", "A B C D", "", "E"},
	)
	judge(t, Config{Role: "role3"}, row{"A B", "C D E", "", "CDE"}, row{"C D E", "A B", "", "CDE"},
		row{"C", "E", "", "CE"}, row{"E", "C", "", "CE"})
	judge(t, Config{Role: "role2"}, row{"A D E", "B C", "", "ADE"}, row{"B C", "A D E", "", "ADE"})
	// Weakly up members count nowhere (MEM-6).
	judge(t, Config{}, row{"A Bw Cw", "D E", "", "ABC"}, row{"D E", "A Bw Cw", "", "ABCDE"})
	// Three islands: none is a majority.
	judge(t, Config{}, row{"A B", "C D E", "", "AB"}, row{"C D", "A B E", "", "CD"}, row{"E", "A B C D", "", "E"})
	// The members in transition.
	judge(t, Config{},
		row{"A B F G", "C D E", "", "CDE"}, row{"C D E", "A B Fj Gj", "", "ABCDEFG"},
		row{"Al B Ej", "C D", "", "CD"}, row{"C D", "Ax B", "", "BCD"}, // a leaver counts where it is at hand
		row{"Ax B Ej", "C D", "", "BE"}, row{"C D", "Al B", "", "CD"}, row{"C D", "B", "", "B"},
	)
	s := situation("C D", "Ax B", "")
	s.Aware.Add(idOf('A'))
	require.Equal(t, "B", letters(Config{}.Decide(s).Down), "who knows that A exits counts it no more")
	s = situation("Al B", "C D", "")
	s.Older = true
	require.Equal(t, "ABCD", letters(Config{}.Decide(s).Down), "an older build counts A nowhere once it exits")
}
