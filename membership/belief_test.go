// Tests of which nodes are believed when they say that this incarnation was removed (MEM-1, SEC-3).

package membership

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// successor is a new incarnation at an address.
func successor(n int) peer.ID { return peer.ID{Addr: addr(n), Inc: 77} }

// noteFor is a removed-note to asMember, of a side of up members, the lowest of them at that address.
func noteFor(up uint32, lowest int) []byte {
	return appendNote(nil, noteBody{envelope{1, 0x11}, members.Tombstone{Last: cluster.Down, Cause: cluster.CauseResolver,
		By: ip(2)}, 1, up,
		successor(lowest)})
}

// removedState is a state in which asMember was removed.
func removedState() []byte {
	s := sample().Draft()
	s.SetDown(ip(1), ip(2), cluster.CauseResolver)
	s.Remove(ip(1))
	return plainBody(1, 0x11, s.Commit(ip(2)))
}

// endOf handles a frame and returns how it ended the machine, nil if it did not.
func endOf(t *testing.T, m *Machine, from peer.ID, kind wire.Kind, body []byte) *Ended {
	require.NoError(t, m.Handle(m.now, m.now, from, kind, body))
	var out Effects
	m.Drain(&out)
	return out.Ended
}

// A removed-note, and a state with this node's tombstone, are believed of members, of members that this side has
// removed when theirs is the larger, and of one that answers at a member's address; of nobody else, and then nothing
// changes.
func TestWhoIsBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		from     peer.ID
		answered bool
		up       uint32
		lowest   int
		ends     bool
	}{
		"a nobody":                             {from: ip(8), up: 9},
		"a nobody that answers probes":         {from: ip(8), answered: true, up: 9},
		"whoever names a member's address":     {from: successor(2), up: 9},
		"whoever names a removed one's":        {from: successor(4), answered: true, up: 9},
		"a member":                             {from: ip(2), ends: true},
		"a member that is Down":                {from: ip(3), ends: true},
		"a successor at a member's address":    {from: successor(2), answered: true, ends: true},
		"a removed one, its side larger":       {from: ip(4), up: 2, lowest: 9, ends: true},
		"a removed one, its side smaller":      {from: ip(4), up: 0, lowest: 9},
		"a removed one, a tie, ours is lowest": {from: ip(4), up: 1, lowest: 9},
	} {
		t.Run(name, func(t *testing.T) {
			m := asMember()
			if c.answered {
				ack, err := wire.AnswerHeartbeat(nil, wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 1}), 0)
				require.NoError(t, err)
				require.Nil(t, endOf(t, m, c.from, wire.KindHeartbeatAck, ack))
			}
			before := m.st
			end := endOf(t, m, c.from, wire.KindRemovedNote, noteFor(c.up, max(c.lowest, 2)))
			require.Equal(t, c.ends, end != nil)
			if c.ends {
				require.Equal(t, EndRemoved, end.Kind)
				return
			}
			require.Same(t, before, m.st)
			if m.st.Status(c.from) == cluster.Removed && c.from != ip(4) {
				require.Equal(t, uint64(1), m.Stats().Disbelieved)
				require.Nil(t, endOf(t, m, c.from, wire.KindGossip, removedState()))
				require.Equal(t, uint64(2), m.Stats().Disbelieved)
				require.Same(t, before, m.st)
			}
		})
	}
	m := asMember()
	require.NotNil(t, endOf(t, m, ip(2), wire.KindGossip, removedState()), "a member's state")
}

// The answer to a hello is judged by the address that this node has dialled; of a side that was removed in turn, only
// the larger is believed, or on a tie the lower address.
func TestWhoseRefusalIsBelieved(t *testing.T) {
	at := func(n int) peer.ID { return peer.ID{Addr: addr(n)} }
	for name, c := range map[string]struct {
		told ToldRemovedCommand
		ends bool
	}{
		"a nobody":                           {ToldRemovedCommand{Peer: ip(8), Counted: true, Up: 9}, false},
		"whoever is at an unknown address":   {ToldRemovedCommand{Peer: at(8), Counted: true, Up: 9}, false},
		"a member":                           {ToldRemovedCommand{Peer: ip(2)}, true},
		"whoever is at a member's address":   {ToldRemovedCommand{Peer: at(2)}, true},
		"whoever is at a seed's address":     {ToldRemovedCommand{Peer: at(6)}, true},
		"a removed one":                      {ToldRemovedCommand{Peer: ip(4)}, false},
		"a removed one, its side smaller":    {ToldRemovedCommand{Peer: at(4), Counted: true, Lowest: addr(2)}, false},
		"a removed one, its side larger":     {ToldRemovedCommand{Peer: at(4), Counted: true, Up: 2, Lowest: addr(2)}, true},
		"a tie, ours is the lowest":          {ToldRemovedCommand{Peer: at(4), Counted: true, Up: 1, Lowest: addr(2)}, false},
		"a tie, theirs is the lowest":        {ToldRemovedCommand{Peer: at(4), Counted: true, Up: 1, Lowest: addr(0)}, true},
		"a tie, of one address on both ends": {ToldRemovedCommand{Peer: at(4), Counted: true, Up: 1, Lowest: addr(1)}, false},
	} {
		m := asMember()
		m.joining.seeds = addrs(4, 6)
		require.NoError(t, m.Do(0, c.told), name)
		var out Effects
		m.Drain(&out)
		require.Equal(t, c.ends, out.Ended != nil, name)
		if c.ends {
			require.Equal(t, EndRemoved, out.Ended.Kind, name)
		}
	}
}

// A node that is no member yet believes the members that it asks to let it in. To a node that leaves it is the last
// word.
func TestRefusalOfAJoinerAndOfALeaver(t *testing.T) {
	m := New(ip(2), Config{}, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, m.Do(0, ToldRemovedCommand{Peer: peer.ID{Addr: addr(1)}}))
	require.Nil(t, m.over, "it has asked nobody")
	require.NoError(t, m.Do(0, JoinCommand{Seeds: addrs(1, 3)}))
	require.NoError(t, m.Do(0, ToldRemovedCommand{Peer: peer.ID{Addr: addr(5)}}))
	require.Nil(t, m.over)
	require.NoError(t, m.Do(0, ToldRemovedCommand{Peer: peer.ID{Addr: addr(1)}}))
	require.Equal(t, EndRemoved, m.over.Kind)

	m = asMember()
	require.NoError(t, m.Do(0, ToldRemovedCommand{Peer: ip(2), Leaving: true}))
	require.Equal(t, EndLeft, m.over.Kind)
}

// Where two sides removed each other, exactly one of them ends by what refusals say, whichever is asked first.
func TestOneSideEndsByRefusals(t *testing.T) {
	side := func(up int, first int) *Machine {
		m := New(ip(first), Config{}, rand.New(rand.NewPCG(1, 1)))
		_ = m.Do(0, JoinCommand{})
		s := members.NewState(members.Version{Cluster: 0x11, Birth: 0x22, HighestUp: 9})
		for i := range up {
			s.Add(cluster.Member{ID: ip(first + i), Status: cluster.Up, UpNumber: uint32(i + 1)})
		}
		other := 1
		if first == 1 {
			other = 11
		}
		s.Tombs = []members.Tombstone{{ID: ip(other), Last: cluster.Down, Cause: cluster.CauseOperator, By: ip(first)}}
		s.Seen = gossip.NewSeen(up)
		m.install(s.Seal(), false)
		return m
	}
	for _, c := range [][2]int{{3, 2}, {2, 3}, {2, 2}, {1, 1}} {
		a, b := side(c[0], 1), side(c[1], 11)
		tell := func(m, by *Machine) bool {
			require.NoError(t, m.Do(time.Second, ToldRemovedCommand{Peer: peer.ID{Addr: by.self.Addr}, Counted: true,
				Up: by.st.UpCount(), Lowest: by.st.LowestUp().Addr}))
			return m.phase == ended
		}
		up, low := a.st.UpCount(), a.st.LowestUp()
		aEnds, bEnds := tell(a, b), false
		require.NoError(t, b.Do(time.Second, ToldRemovedCommand{Peer: peer.ID{Addr: a.self.Addr}, Counted: true, Up: up,
			Lowest: low.Addr}))
		bEnds = b.phase == ended
		require.Equal(t, c[0] < c[1], aEnds, c)
		require.Equal(t, c[0] >= c[1], bEnds, c)
	}
}

// Successors that answered are remembered within a bound, and only while a member is at their address.
func TestAnsweredIsBounded(t *testing.T) {
	m := asMember()
	for i := range 3 * maxAnswered {
		m.beliefs.answers(peer.ID{Addr: addr(2), Inc: uint64(1000 + i)})
		m.beliefs.answers(peer.ID{Addr: addr(8), Inc: uint64(1000 + i)})
	}
	require.Len(t, m.beliefs.answered, maxAnswered)
	require.Equal(t, nobody, m.beliefs.beliefIn(peer.ID{Addr: addr(8), Inc: 1000 + 3*maxAnswered - 1}))
}

// Two sides of one cluster that have removed each other report it when they meet, each once in ten minutes for an
// address, and that alone ends no node: not on the word of one that was never a member (MEM-1, JOIN-1).
func TestTwoSidesOfOneClusterAreTold(t *testing.T) {
	m := asMember()
	told := func(from peer.ID, kind wire.Kind, body []byte) (events []Event, mail []wire.Kind) {
		var out Effects
		m.Drain(&Effects{})
		require.NoError(t, m.Handle(m.now, m.now, from, kind, body))
		m.Drain(&out)
		require.Nil(t, out.Ended)
		for _, e := range out.Events {
			if e.Kind == SplitCluster {
				events = append(events, e)
			}
		}
		for _, o := range out.Mail {
			mail = append(mail, o.Kind)
		}
		return events, mail
	}
	events, _ := told(ip(8), wire.KindRemovedNote, noteFor(0, 9))
	require.Empty(t, events, "a nobody")
	events, mail := told(ip(4), wire.KindRemovedNote, noteFor(0, 9))
	require.Len(t, events, 1)
	require.Equal(t, ip(4), events[0].By)
	require.Equal(t, Duplicate{m.st.Cluster, m.st.Birth, ip(4).Addr}, *events[0].Duplicate)
	require.Contains(t, events[0].String(), ip(4).String())
	require.Contains(t, events[0].String(), m.self.String())
	require.Contains(t, mail, wire.KindRemovedNote, "the smaller side hears how this one stands")
	events, mail = told(ip(4), wire.KindRemovedNote, noteFor(0, 9))
	require.Empty(t, events, "told before")
	require.Empty(t, mail)
	require.Equal(t, uint64(1), m.Stats().Splits)
	m.now += splitAgain
	m.contact = m.now
	events, _ = told(ip(4), wire.KindRemovedNote, noteFor(0, 9))
	require.Len(t, events, 1, "after ten minutes again")

	// One that answers a probe as a member of this very cluster, and was removed here, is notified. That is no event yet.
	ack := func(from peer.ID, cluster uint64) []wire.Kind {
		body := appendProbeAck(nil, probeAckBody{m.self.Inc, m.joining.nonce, cluster, m.st.Birth, 0, nil})
		events, mail := told(from, wire.KindJoinProbeAck, body)
		require.Empty(t, events)
		return mail
	}
	require.Contains(t, ack(ip(4), m.st.Cluster), wire.KindRemovedNote)
	require.Empty(t, ack(ip(4), 99))
	require.Empty(t, ack(ip(8), m.st.Cluster))
}
