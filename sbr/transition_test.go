// Law: members in transition never let two sides live: what one side's leader did, and the other has not heard of.

package sbr

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// halves is a cluster cut in two, as each half knows it.
type halves struct{ a, b Situation }

// cut draws a state that all have seen, a cut through it, and what happens on either side before it is noticed: the
// leader, which is on the first side, may have taken its next step (joining members Up, leaving ones Exiting, exiting
// ones removed) without the other side's knowledge, except that of the exiting member itself; members may begin to
// leave on their own side; new ones may be admitted on both, and leave at once.
func cut(t *rapid.T) halves {
	n := rapid.IntRange(2, 7).Draw(t, "members")
	var base []membership.Member
	inA := map[peer.ID]bool{}
	ups := rapid.Permutation([]uint32{1, 2, 3, 4, 5, 6, 7}).Draw(t, "ups")
	for i := range n {
		m := membership.Member{ID: idOf("ABCDEFG"[i])}
		m.Status = rapid.SampledFrom([]membership.Status{membership.Up, membership.Up, membership.Up, membership.Joining,
			membership.Leaving, membership.Exiting}).Draw(t, "status")
		if m.Status != membership.Joining {
			m.UpNumber = ups[i]
		}
		inA[m.ID] = rapid.Bool().Draw(t, "side")
		base = append(base, m)
	}
	h := halves{a: Situation{Members: append([]membership.Member(nil), base...)},
		b: Situation{Members: append([]membership.Member(nil), base...)}}
	leads := slices.ContainsFunc(base, func(m membership.Member) bool { return m.UpNumber != 0 && inA[m.ID] })
	if leads && rapid.Bool().Draw(t, "led") { // a leader is Up itself
		h.lead(t, inA)
	}
	for k, s := range []*Situation{&h.a, &h.b} {
		for i := range s.Members {
			if m := &s.Members[i]; m.Status == membership.Up && inA[m.ID] == (k == 0) &&
				rapid.IntRange(0, 5).Draw(t, "leaves") == 0 {
				m.Status = membership.Leaving
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "joins") == 0 {
			m := membership.Member{ID: peer.ID{Addr: peer.MustAddr("10.0.0.9:7355"), Inc: uint64(90 + k)}}
			if rapid.IntRange(0, 2).Draw(t, "turns") == 0 {
				m.Status = membership.Leaving // and has no number
			}
			if rapid.Bool().Draw(t, "low") {
				m.ID.Addr = peer.MustAddr("10.0.0.0:7355")
				s.Members = append([]membership.Member{m}, s.Members...)
			} else {
				s.Members = append(s.Members, m)
			}
			inA[m.ID] = k == 0
		}
		for _, o := range s.Members {
			if inA[o.ID] != (k == 0) {
				continue
			}
			if s.Contact.Add(o.ID); rapid.Bool().Draw(t, "aware") && o.Status == membership.Exiting {
				s.Aware.Add(o.ID)
			}
			for _, x := range s.Members {
				if inA[x.ID] != inA[o.ID] {
					s.Accusations = append(s.Accusations, membership.Accusation{Observer: o.ID, Subject: x.ID})
				}
			}
		}
	}
	return h
}

// lead makes the leader of the first side take its next step.
func (h *halves) lead(t *rapid.T, inA map[peer.ID]bool) {
	kept := h.a.Members[:0]
	for i, m := range h.a.Members {
		switch m.Status {
		case membership.Joining:
			m.Status, m.UpNumber = membership.Up, uint32(100+i)
			h.a.Fresh.Add(m.ID)
		case membership.Leaving:
			if m.Status = membership.Exiting; !inA[m.ID] && rapid.Bool().Draw(t, "told") { // so the second side knows
				h.b.Members[i].Status = membership.Exiting
				h.a.Aware.Add(m.ID)
			}
		case membership.Exiting:
			continue
		}
		kept = append(kept, m)
	}
	h.a.Members = kept
}

// lives reports whether some member of our side that may host something is not downed by our side's decision. Leaving
// ones have given back what they hosted.
func lives(c Config, s Situation) (bool, Decision) {
	s.Self = peer.ID{}
	if len(s.Contact) > 0 {
		s.Self = s.Contact[0]
	}
	d := c.Decide(s)
	for i := range s.Members {
		m := &s.Members[i]
		if s.Contact.Has(m.ID) && counts(m.Status) && m.Status != membership.Leaving && !d.Down.Has(m.ID) {
			return true, d
		}
	}
	return false, d
}

// TestTransitionLaw: whatever one side knows and the other does not, two sides never both live (MEM-10).
func TestTransitionLaw(t *testing.T) {
	for _, c := range []Config{{}, {Strategy: StaticQuorum, QuorumSize: 2}, {Strategy: StaticQuorum, QuorumSize: 3},
		{Strategy: KeepOldest}, {Strategy: KeepOldest, KeepAlone: true}, {Strategy: DownAll}} {
		t.Run(c.Settings(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := cut(t)
				a, da := lives(c, h.a)
				b, db := lives(c, h.b)
				require.False(t, a && b, "both live:\n%v: %s\n%v: %s", h.a.Members, da, h.b.Members, db)
			})
		})
	}
}

// TestDownedMayLiveElsewhere: members that our side has downed and could not remove yet, because another one was lost
// before it agreed, count as alive on the other side: with them it may be the majority, or have the oldest.
func TestDownedMayLiveElsewhere(t *testing.T) {
	situation := func(extra ...membership.Member) Situation {
		s := Situation{Self: idOf('C')}
		for i, st := range []membership.Status{membership.Down, membership.Down, membership.Up, membership.Up,
			membership.Up} {
			s.Members = append(s.Members, membership.Member{ID: idOf("ABCDE"[i]), Status: st, UpNumber: uint32(i + 1)})
		}
		for _, x := range extra {
			s.Members = append(s.Members, x)
		}
		slices.SortFunc(s.Members, func(a, b membership.Member) int { return a.ID.Compare(b.ID) })
		s.Accusations = []membership.Accusation{{Observer: idOf('C'), Subject: idOf('E')}}
		return s
	}
	for _, strategy := range []Strategy{KeepMajority, KeepOldest} {
		d := Config{Strategy: strategy}.Decide(situation())
		require.Equal(t, DownEverybody, d.Outcome, "%s: C and D hold A and B for down, E may hold them for up", strategy)
		require.False(t, d.Lives)
	}
	again := func(c byte) membership.Member {
		return membership.Member{ID: peer.ID{Addr: idOf(c).Addr, Inc: idOf(c).Inc + 1}, Status: membership.Up, UpNumber: 9}
	}
	d := Config{Strategy: KeepMajority}.Decide(situation(again('A'), again('B')))
	require.True(t, d.Lives, "their successors prove them dead: four of five are here")
}

// TestJoinersWithoutALeader: joining members on the other side can be Up there only when a member that may have led
// them is, too. Joins that never came alive end no healthy cluster.
func TestJoinersWithoutALeader(t *testing.T) {
	for _, c := range []struct {
		cfg          Config
		ours, others string
		lives        bool
	}{
		{Config{}, "A B C", "Dj Ej Fj Gj", true},
		{Config{}, "A B", "C Dj Ej Fj", false},
		{Config{}, "A B C", "Dd Ej Fj Gj Hj", false},
		{Config{Strategy: KeepOldest}, "A", "Bj Cj Dj", true},
		{Config{Strategy: StaticQuorum, QuorumSize: 2}, "A Bl", "Cj Dj", true},
		{Config{Strategy: StaticQuorum, QuorumSize: 2}, "A Bl", "C Dj", false},
	} {
		d := c.cfg.Decide(situation(c.ours, c.others, ""))
		require.Equal(t, c.lives, d.Lives, "%s against %s: %s", c.ours, c.others, d)
	}
}
