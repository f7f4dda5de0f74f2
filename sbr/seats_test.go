// Tests of sides that count seats: tables, and a law over all cuts: two sides never both live, and the one with a
// quorum of the seats does (MEM-10).

package sbr

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// holders reads "AB-": the holder of each seat.
func holders(text string) (list []peer.ID) {
	for _, c := range []byte(text) {
		if c == '-' {
			list = append(list, peer.ID{})
			continue
		}
		list = append(list, idOf(c))
	}
	return list
}

// counting are the strategies that choose a side.
var counting = []Config{{}, {Strategy: StaticQuorum, QuorumSize: 3}, {Strategy: KeepOldest}, {Strategy: LeaseMajority}}

// TestSeatsDecide: the side with a quorum of the seats lives, whatever the strategy says of members.
func TestSeatsDecide(t *testing.T) {
	for _, c := range counting {
		for _, r := range []struct {
			seats, ours, others, more, ended, down string
		}{
			{"ABC", "A B", "C D E", "", "", "CDE"},
			{"ABC", "C D E", "A B", "", "", "CDE"},
			{"ABC", "Al B", "C D E", "", "", "CDE"},
			{"ABC", "Ax B", "C D E", "", "", "CDE"},   // it holds its seat for as long as it is at hand
			{"ABC", "A Dj Ej", "Bd C", "", "", "ADE"}, // one that is Down may live on the other side
			{"AB-", "A C D", "B E", "", "", "ACD"},    // the other side may have filled the seat
			{"AB-", "A B", "C D E", "", "", "CDE"},
			{"ABCDE", "A B C", "D E", "", "", "DE"},
			{"ABCDE", "D E", "A B C", "", "", "DE"},
			{"AB---", "A B C", "D E", "", "", "ABC"},
			// Indirectly connected members go both where a quorum stays; else those holders stay that hear each other.
			{"ABC", "A B C D E", "", "A>D", "", "AD"},
			{"ABC", "A B C D E", "", "A>B", "", "B"},
			{"ABC", "A B C D E", "", "A>B A>D", "", "BD"},
			{"ABC", "A B C D E", "", "A>B B>C C>A", "", "ABCDE"},
			{"ABCDE", "A B C D E", "", "A>B C>D", "", "BD"},
			{"ABC", "A B D", "C E", "A>B", "", "ABD"},
			{"ABC", "A B C", "D", "A>B", "", "BD"},
		} {
			s := situation(r.ours, r.others, r.more)
			s.Seats = holders(r.seats)
			d := c.Decide(s)
			require.Equal(t, r.down, letters(d.Down), "%s: %+v: %s", c.Strategy, r, d)
		}
	}
	s := situation("A D E", "B C", "")
	s.Seats, s.Ended = holders("ABC"), peer.SetOf(idOf('B'), idOf('C'))
	require.Equal(t, "BC", letters(Config{}.Decide(s).Down), "no side can have a quorum: members count")
	for _, c := range []Config{{Strategy: DownAll}, {Strategy: UnsafeAutoDown}} {
		s := situation("D E", "A B C", "")
		with := s
		with.Seats = holders("ABC")
		require.Equal(t, c.Decide(s), c.Decide(with), "a strategy that chooses no side")
	}
	s = situation("A B", "C D E", "")
	s.Seats = holders("ABC")
	require.Contains(t, Config{}.Decide(s).String(), "2 of 5 members reachable, 2 of 3 seats, lost")
}

// TestSeatsLaw: all cuts of up to five members, with all lists of three seats and some of five, where one side may have
// the next list, or none yet, and where some holders have ended: two sides never both live, and the side with a quorum
// does.
func TestSeatsLaw(t *testing.T) {
	cuts := 0
	for _, c := range counting {
		for n := 2; n <= 5; n++ {
			for _, list := range listsOf(n) {
				for mask := 1; mask < 1<<n-1; mask += 2 { // the other half are the same
					cuts += sided(t, c, n, list, mask)
				}
			}
		}
	}
	require.Greater(t, cuts, 10_000)
}

// listsOf returns lists of seats of n members with at least a quorum of holders.
func listsOf(n int) (all []string) {
	names := "ABCDE"[:n] + "-"
	for a := range n { // which seat one holds does not matter
		for b := a + 1; b < n; b++ {
			for c := b + 1; c <= n; c++ {
				all = append(all, string([]byte{names[a], names[b], names[c]}))
			}
		}
	}
	for _, list := range []string{"ABC--", "A-BDC", "ABCD-", "ABCDE"} {
		if !strings.ContainsFunc(list, func(r rune) bool { return !strings.ContainsRune(names, r) }) {
			all = append(all, list)
		}
	}
	return all
}

func held(list string) int { return len(list) - strings.Count(list, "-") }

// knows is what one side has: a list, or none; members that it knows to be Down, and holders that have ended.
type knows struct {
	list        string
	first       bool
	down, ended string
}

// sided judges one cut with every difference between what both sides know, and returns how many there are.
func sided(t *testing.T, c Config, n int, list string, mask int) (cases int) {
	check := func(a, b knows) {
		cases++
		x, y := c.half(n, mask, a), c.half(n, (1<<n-1)&^mask, b)
		if x.Outcome == AskLease && y.Outcome == AskLease {
			return // one gets it
		}
		if x.Lives && y.Lives {
			require.Fail(t, "both live", "%s, seats %+v and %+v, cut %b: %s\n%s", c.Strategy, a, b, mask, x, y)
		}
	}
	same := knows{list: list}
	check(same, same)
	for k, d := range []Decision{c.half(n, mask, same), c.half(n, (1<<n-1)&^mask, same)} {
		if d.Held > d.Seats/2 {
			require.True(t, d.Lives && d.Outcome == DownUnreachable, "%s, side %d of %b, seats %s: %s", c.Strategy, k, mask,
				list, d)
		}
	}
	first := knows{list: list, first: true}
	check(first, first)
	check(first, knows{})
	check(knows{}, first)
	for i, h := range list {
		next := same
		if h != '-' {
			if held(list)-1 <= len(list)/2 {
				continue
			}
			next.list, next.down = list[:i]+"-"+list[i+1:], string(h)
		} else if p := strings.IndexFunc("ABCDEF"[:n], func(r rune) bool { return !strings.ContainsRune(list, r) }); p >= 0 {
			next.list = list[:i] + "ABCDEF"[p:p+1] + list[i+1:]
		} else {
			continue
		}
		was := knows{list: list, down: next.down} // it was seen by all but that member
		check(next, was)
		check(was, next)
	}
	for a := range list { // some have ended, and one side may not know it
		dead := strings.ReplaceAll(list[:a+1], "-", "")
		is := knows{list: list, down: dead, ended: dead}
		check(is, is)
		check(is, knows{list: list, down: dead})
		check(knows{list: list, down: dead}, is)
	}
	return cases
}

// half is the decision of the members in mask.
func (c Config) half(n, mask int, k knows) Decision {
	var s Situation
	for i := range n {
		m := membership.Member{ID: idOf("ABCDEF"[i]), Status: membership.Up, UpNumber: uint32(n - i)}
		if strings.Contains(k.down, "ABCDEF"[i:i+1]) {
			m.Status = membership.Down
		}
		s.Members = append(s.Members, m)
		if mask>>i&1 == 1 && m.Status == membership.Up {
			s.Contact.Add(m.ID)
		}
	}
	for _, o := range s.Contact {
		for i := range s.Members {
			if mask>>i&1 == 0 && s.Members[i].Status == membership.Up {
				s.Accusations = append(s.Accusations, membership.Accusation{Observer: o, Subject: s.Members[i].ID})
			}
		}
	}
	if len(s.Contact) == 0 {
		return Decision{} // nobody is there
	}
	s.Self, s.Seats, s.FirstSeats = s.Contact[0], holders(k.list), k.first
	for _, x := range []byte(k.ended) {
		s.Ended.Add(idOf(x))
	}
	return c.Decide(s)
}

// TestFirstSeats: a node counts the seats alone only when all are known to have a list of them.
func TestFirstSeats(t *testing.T) {
	m := New(idOf('A'), Config{})
	s := situation("A B C", "D E", "")
	view := func(converged bool) *membership.View {
		return &membership.View{Self: idOf('A'), Members: slices.Clone(s.Members), Converged: converged}
	}
	do := func(cmd Command) { require.NoError(t, m.Do(time.Second, cmd)) }
	do(SeatsCommand{})
	do(ViewCommand{view(true)})
	require.Empty(t, m.situation().Seats)
	do(SeatsCommand{Number: 1, Holders: holders("ABC")})
	do(ViewCommand{view(false)})
	require.True(t, m.situation().FirstSeats)
	do(ViewCommand{view(true)})
	require.False(t, m.situation().FirstSeats)
	m = New(idOf('A'), Config{})
	do(SeatsCommand{Number: 2, Holders: holders("AB-")})
	do(ViewCommand{view(false)})
	require.False(t, m.situation().FirstSeats, "the second is written when all have the first")
}
