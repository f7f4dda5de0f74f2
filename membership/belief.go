// Belief: who is believed that says that this incarnation was removed (MEM-1, SEC-3).

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/members"
	"github.com/kith-io/kith/peer"
)

// maxAnswered is how many successors at the addresses of members are remembered to have answered probes.
const maxAnswered = 64

// ToldRemovedCommand is what the transport heard when it dialled Peer (incarnation zero: whoever is at the address): a
// refusal, because this incarnation was removed. Counted says that it came with how the side stands that refuses: Up
// members, and the address of the lowest of them.
type ToldRemovedCommand struct {
	Peer    peer.ID
	Counted bool
	Up      uint32
	Lowest  peer.Addr
	Leaving bool   // this node has been asked to leave
	Reason  string // the refusal in words
}

func (ToldRemovedCommand) command() {}

// belief is what the word of somebody is worth who says that this incarnation was removed.
type belief uint8

const (
	nobody   belief = iota // not known here: nothing
	rival                  // this side has removed it in turn: the side with fewer Up members ends
	believed               // a member, or who runs at the address of one: it ends this node
)

// beliefIn judges a frame of from. Whoever says hello may name any address, so of those who are no members only one is
// believed that has answered a probe of this node at a member's address: there this node has dialled itself.
func (m *Machine) beliefIn(from peer.ID) belief {
	if m.st.Has(from) {
		return believed
	}
	if _, dead := m.st.Tomb(from); dead {
		return rival
	}
	if slices.Contains(m.answered, from) && m.st.HasAddr(from.Addr) {
		return believed
	}
	return nobody
}

// beliefAt judges the answer of one whom this node has dialled. A joiner believes those whom it asks to let it in; a
// member believes the address of a member, and of a seed unless its side has removed somebody there.
func (m *Machine) beliefAt(id peer.ID) belief {
	seed := slices.Contains(m.join.seeds, id.Addr)
	switch m.phase {
	case probing, pending:
		if seed || id.Addr == m.join.target.Addr {
			return believed
		}
	case member:
		_, dead := m.st.Tomb(id)
		switch {
		case m.st.Has(id):
			return believed
		case dead:
			return rival
		case m.st.HasAddr(id.Addr):
			return believed
		case slices.ContainsFunc(m.st.Tombs, func(t members.Tombstone) bool { return t.ID.Addr == id.Addr }):
			return rival
		case seed:
			return believed
		}
	}
	return nobody
}

// answers notes that from has answered a probe, which only who was dialled can do, when it is the successor of a
// member.
func (m *Machine) answers(from peer.ID) {
	if m.st.Has(from) || !m.st.HasAddr(from.Addr) || slices.Contains(m.answered, from) {
		return
	}
	if len(m.answered) >= maxAnswered {
		m.answered = slices.Delete(m.answered, 0, 1)
	}
	m.answered = append(m.answered, from)
}

// removedBy ends a node that learns that its incarnation was removed, from one who is believed. When its own side has
// removed the teller in turn, only one of the two sides ends.
func (m *Machine) removedBy(from peer.ID, t members.Tombstone, up uint32, lowest peer.ID, ago time.Duration) {
	switch m.beliefIn(from) {
	case nobody:
		m.stats.Disbelieved++
		return
	case rival:
		news := m.split(from)
		if m.st.Outlives(up, lowest) {
			if news {
				m.tellRemoved(from) // which has it hear how this side stands
			}
			return
		}
	}
	if own := m.st.Status(m.self); t.Last == cluster.Exiting && (own == cluster.Exiting || own == cluster.Leaving) {
		m.end(EndLeft, from, "left and was removed")
		return
	}
	by := from
	if !t.By.IsZero() {
		by = t.By
	}
	m.end(EndRemoved, by, fmt.Sprintf("%s says that %s was removed %v ago: %s", from, m.self, ago,
		why(t.Last, t.Cause, t.By)))
	m.over.Cause = t.Cause
}

// toldRemoved is removedBy for the answer to a hello. It names no status and no identity: of a rival that does not say
// how its side stands nothing follows, and on a tie the lower address lives. To a leaving node it is the last word of
// its leave.
func (m *Machine) toldRemoved(c ToldRemovedCommand) {
	switch m.beliefAt(c.Peer) {
	case nobody:
		m.stats.Disbelieved++
		return
	case rival:
		m.split(c.Peer)
		if mine := m.st.UpCount(); !c.Counted || mine > c.Up || mine == c.Up &&
			m.st.LowestUp().Addr.Compare(c.Lowest) <= 0 {
			return
		}
	}
	kind := EndRemoved
	if c.Leaving {
		kind = EndLeft
	}
	m.end(kind, c.Peer, c.Reason)
}
