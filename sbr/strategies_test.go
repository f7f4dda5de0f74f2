// Tests of the other strategies and of indirectly connected members, derived from the reference's rules (MEM-10).

package sbr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// TestScenario18StaticQuorumAndOldest: the members that go, from every side.
func TestScenario18StaticQuorumAndOldest(t *testing.T) {
	judge(t, Config{Strategy: StaticQuorum, QuorumSize: 3},
		row{"A B C", "D E", "", "DE"}, row{"D E", "A B C", "", "DE"},
		row{"A B", "C D", "", "AB"}, row{"C D", "A B", "", "CD"}, // nobody has it
		row{"A B C", "D Ej", "", "DE"}, row{"A B Cj", "D E", "", "ABC"}, // joining ones do not count
		row{"A B C D", "E F", "", "ABCDEF"}, row{"E F", "A B C D", "", "ABCDEF"}, // six are too many for three
		row{"A B C", "D E Fx Gd", "", "DE"},                                    // Exiting and Down ones neither count nor go
		row{"A B Cl", "D Ej", "", "DE"}, row{"A B Cl", "D E Fj", "", "ABCDEF"}, // five are possible, six are not safe
	)
	judge(t, Config{Strategy: StaticQuorum, QuorumSize: 2, Role: "role3"},
		row{"A B", "C D E", "", "CDE"}, row{"C D E", "A B", "", "CDE"}, row{"A C E", "B D", "", "ACE"})
	judge(t, Config{Strategy: KeepOldest}, // E has number 1, D 2, C 3, B 4, A 5
		row{"A C E", "B D", "", "BD"}, row{"B D", "A C E", "", "BD"}, row{"A B", "C D E", "", "AB"},
		row{"E", "A B C D", "", "E"}, row{"A B C D", "E", "", "E"}, // alone
		row{"E", "A", "", "A"}, row{"A", "E", "", "A"}, // alone against one that is alone as well
		row{"E Bj", "A C", "", "BE"}, row{"A C", "E Bj", "", "ABCE"}, // with a joining one it may not be alone there
		row{"El B", "A C", "", "AC"}, row{"El C D", "A", "", "A"}, // a leaver counts where it is at hand
		row{"El D", "A C", "", "AC"}, row{"El A", "D", "", "D"}, row{"D A", "El", "", "E"},
		row{"C D", "Ex A", "", "ACD"}, row{"A C", "Ex D", "", "ACD"}, row{"D C", "A Ex B", "", "ABCD"},
		row{"D B Ex", "A C", "", "AC"}, row{"B A Ex", "C D", "", "AB"},
	)
	judge(t, Config{Strategy: KeepOldest, KeepAlone: true},
		row{"E", "A B C D", "", "ABCD"}, row{"A B C D", "E", "", "ABCD"}, row{"E Bj", "A C", "", "AC"})
	judge(t, Config{Strategy: KeepOldest, Role: "role3"}, // D is the oldest with it
		row{"A B", "C D E", "", "CDE"}, row{"D", "C E", "", "CE"}, row{"C", "E", "", "CE"}, row{"A B E", "C D", "", "CD"})
}

// TestDownAllAndLease: everybody, or the side without the lease; the smaller side asks later.
func TestDownAllAndLease(t *testing.T) {
	judge(t, Config{Strategy: DownAll}, row{"A B C Dj Ew", "F Gx", "", "ABCDEF"}, row{"A", "B", "", "AB"})
	judge(t, Config{Strategy: UnsafeAutoDown}, row{"A", "B C", "", "BC"}, row{"B C", "A", "", "A"})
	judge(t, Config{Strategy: LeaseMajority}, row{"A", "B C", "", "BC"}, row{"B C", "A", "", "A"})
	for _, r := range []struct {
		ours, others string
		role         string
		later        bool
	}{
		{"A B C", "D E", "", false}, {"D E", "A B C", "", true}, {"A B", "C D", "", false}, {"C D", "A B", "", true},
		{"A B", "Cj Dj E", "", false}, {"C", "E", "role3", false}, {"C D", "A B", "role3", true}, {"C D", "A", "role3", true},
	} {
		d := Config{Strategy: LeaseMajority, Role: r.role}.Decide(situation(r.ours, r.others, ""))
		require.Equal(t, r.later, d.later, "%+v: %s", r, d)
		require.Equal(t, AskLease, d.Outcome)
	}
	d := Config{Strategy: LeaseMajority}.Decide(situation("A B C", "D E", "A>B"))
	require.Equal(t, "ABDE", letters(d.Down), "with the lease")
	require.Equal(t, "ABC", letters(d.refused), "without it")
	// Found by storm 3435: where nobody may ask, nobody would ever have answered.
	judge(t, Config{Strategy: LeaseMajority}, row{"Bj Cj", "A", "", "BC"}, row{"A B Cj", "D E", "A>B", "ABC"})
}

// TestScenario19IndirectlyConnected: both ends of a broken pair go, and with them all that the strategy downs.
func TestScenario19IndirectlyConnected(t *testing.T) {
	for _, c := range []Config{{}, {Strategy: StaticQuorum, QuorumSize: 3}, {Strategy: KeepOldest},
		{Strategy: LeaseMajority}} {
		judge(t, c,
			row{"A B C", "", "A>B", "AB"}, row{"A B C", "", "A>B B>A", "AB"},
			row{"A B C D E", "", "A>B B>C C>D D>E E>A", "ABCDE"}, // a ring: nobody is above suspicion
			row{"A B C", "D", "C>D", "D"},                        // to accuse the lost is nothing
		)
	}
	judge(t, Config{}, row{"A B C D", "E F", "A>B", "ABEF"}, row{"E F", "A B C D", "", "EF"},
		row{"E F", "A B C D", "E>F", "EF"}, row{"A B", "C D E", "A>B", "AB"}, row{"A B", "Cj", "A>B", "AB"},
		row{"A B Cj", "", "A>C", "AC"}, row{"A B Cx", "", "C>A", ""}, row{"A B Cd", "", "C>A", ""})
	// Found by storm 14780: two that never came Up carried the cluster on beside members that they had suspected.
	for _, c := range []Config{{}, {Strategy: KeepOldest}, {Strategy: LeaseMajority}, {Strategy: UnsafeAutoDown}} {
		judge(t, c, row{"A B Cw Dj", "", "A>B B>A", "ABCD"})
	}
	judge(t, Config{Strategy: DownAll}, row{"A B C", "", "A>B", "ABC"})
	judge(t, Config{Strategy: StaticQuorum, QuorumSize: 2}, row{"A B C D", "", "A>B", "ABCD"}) // too many, whatever else
	judge(t, Config{Strategy: StaticQuorum, QuorumSize: 5}, row{"A B C", "", "A>B", "AB"})     // no quorum, nobody lost
}

// TestQuarantinedIsUnreachable: a member under quarantine goes as any other that is unreachable, though it is in
// contact with everybody, and whichever member decides; its observer stays. The word of one that is under quarantine
// itself is not believed: two that gave each other up are as two that cannot hear each other (FD-4).
func TestQuarantinedIsUnreachable(t *testing.T) {
	for _, c := range []Config{{}, {Strategy: StaticQuorum, QuorumSize: 2}, {Strategy: KeepOldest},
		{Strategy: LeaseMajority}} {
		judge(t, c, row{"A B C", "", "A!B", "B"}, row{"B A C", "", "A!B", "B"}, row{"C A B", "", "A!B", "B"})
	}
	judge(t, Config{},
		row{"A B C D", "", "A!B C>B", "B"},
		row{"A B C D E", "", "A!B A!C", "BC"},
		row{"A B C D", "", "A!B B!A", "AB"},  // each about the other: a path between them is broken
		row{"A B C D", "", "A!B B!C", "B"},   // the word of a member that is given up counts for nothing
		row{"A B C D", "E", "A!B E!C", "BE"}, // nor does that of the lost
		row{"A B C", "D E", "A!B", "ABC"},    // it counts for the other side: two of five are none
		row{"B D A C", "", "A!B C!D", "BD"},  // a tie that the lowest address decides
		row{"A B Cx", "", "C!B", ""},         // an Exiting member has no say
		row{"A B C D", "", "A!B C>D", "BCD"}, // and others are indirectly connected all the same
	)
	// As if it were on the other side, which lives; all nodes see that alike.
	judge(t, Config{Strategy: KeepOldest, KeepAlone: true}, row{"A B C", "", "B!C", "AB"}, row{"A B C", "D", "B!C", "ABC"})
	// Under quarantine in its own eyes it asks for no lease.
	s := situation("B A C", "", "A!B")
	d := Config{Strategy: LeaseMajority}.Decide(s)
	require.Equal(t, "B", letters(d.Lost))
	require.False(t, d.Lives)
	require.Equal(t, idOf('A'), d.first)
}

// TestWordsOfTheLost: a crash, or a cut, of members that had accused another before is an ordinary crash, or cut. The
// reference ends all nodes here ("double indirectly connected").
func TestWordsOfTheLost(t *testing.T) {
	judge(t, Config{},
		row{"A B C", "D", "D>C", "D"},    // D is lost, its word about C is the past
		row{"A B C", "D E", "D>E", "DE"}, // the lost had fallen out with each other
		row{"A B C", "D E", "D>E E>D D>A", "DE"},
		row{"A B C D", "E", "E>A E>B E>C", "E"},
		row{"D E", "A B C", "A>B B>A", "DE"},
		row{"A B C D", "E", "E>A B>C", "BCE"}, // a word of ours still counts
		row{"A B C", "Dx", "D>C", "D"},        // an Exiting one would block convergence for ever
		row{"A B C", "Dx", "", ""},            // which one without a word does not
	)
	s := situation("A B C", "D E", "D>E")
	s.Contact.Remove(idOf('C')) // has not confirmed yet, but nobody accuses it: it speaks for us
	require.Equal(t, "DE", letters(Config{}.Decide(s).Down))
}

// TestReachableAndSilent: an accused member that has not confirmed counts as lost, whichever member accuses it.
func TestReachableAndSilent(t *testing.T) {
	s := Situation{Self: idOf('A'), Members: side("A B C"), Contact: peer.SetOf(idOf('B')),
		Accusations: []membership.Accusation{{Observer: idOf('A'), Subject: idOf('B')},
			{Observer: idOf('A'), Subject: idOf('C')}}}
	d := Config{}.Decide(s)
	require.Equal(t, "AB", letters(d.Indirect))
	require.Equal(t, "C", letters(d.Lost))
	require.Equal(t, "AB", letters(d.Down))
	require.Equal(t, 2, d.Reachable)
	require.Equal(t, 1, d.Unreachable)
}

// TestSentence: what a decision says.
func TestSentence(t *testing.T) {
	for _, r := range []struct {
		c    Config
		s    Situation
		want string
	}{
		{Config{}, situation("A B", "C", ""), "keep-majority: 2 of 3 members reachable, lost 10.0.0.3:7355; ours is the " +
			"majority; downs 10.0.0.3:7355; this node lives"},
		{Config{Role: "role3"}, situation("C", "A B", ""), "keep-majority with role role3: 0 of 2 members reachable, lost " +
			"10.0.0.1:7355 10.0.0.2:7355; the other side is the majority; downs 10.0.0.3:7355; this node stops"},
		{Config{Strategy: StaticQuorum, QuorumSize: 1}, situation("A B", "", "A>B"), "static-quorum: 2 of 2 members " +
			"reachable, the quorum is 1, indirectly connected 10.0.0.1:7355 10.0.0.2:7355; there are too many members for " +
			"this quorum: two sides could have it; downs 10.0.0.1:7355 10.0.0.2:7355; this node stops"},
		{Config{}, situation("A", "B", ""), "keep-majority: 1 of 2 members reachable, lost 10.0.0.2:7355; a tie: the " +
			"lowest address is on our side (10.0.0.1:7355#41); downs 10.0.0.2:7355; this node lives"},
		{Config{Strategy: Off}, situation("A", "B", ""), "off: 1 of 2 members reachable, lost 10.0.0.2:7355; the resolver " +
			"is off; nobody is downed; this node lives"},
	} {
		require.Equal(t, r.want, r.c.Decide(r.s).String())
	}
	many := peer.Set{}
	for i := range 12 {
		many.Add(peer.ID{Addr: idOf('A').Addr, Inc: uint64(i + 1)})
	}
	require.Contains(t, Decision{Down: many}.String(), "and 4 more")
}
