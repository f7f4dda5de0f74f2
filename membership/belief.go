// Belief: which nodes are believed when they say that this incarnation was removed (MEM-1, SEC-3).

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// maxAnswered is how many successors at the addresses of members are remembered to have answered probes.
const maxAnswered = 64

// ToldRemovedCommand says that Peer refused a hello of this node because this incarnation was removed. An incarnation
// of zero means any node at the address. Counted says that the refusal came with the state of its side: Up members, and
// the address of the lowest of them.
type ToldRemovedCommand struct {
	Peer    peer.ID
	Counted bool
	Up      uint32
	Lowest  peer.Addr
	Leaving bool   // this node has been asked to leave
	Reason  string // the refusal in words
}

func (ToldRemovedCommand) command() {}

// beliefs judges nodes that say that an incarnation was removed: this node's, or their own.
type beliefs struct {
	*core
	joining *joining

	answered []peer.ID // successors at the addresses of members that answered probes
	splits   []met     // of the other side of this cluster
}

// belief is what a node's word is worth that this incarnation was removed.
type belief uint8

const (
	nobody   belief = iota // not known here: nothing
	rival                  // this side has removed it in turn: the side with fewer Up members ends
	believed               // a member, or a node at the address of one: it ends this node
)

// beliefIn judges a frame of from. A hello may name any address. So the machine believes a node that is no member only
// if it has answered a probe at a member's address: this node dialled that address itself.
func (b *beliefs) beliefIn(from peer.ID) belief {
	if b.st.Has(from) {
		return believed
	}
	if _, dead := b.st.Tomb(from); dead {
		return rival
	}
	if slices.Contains(b.answered, from) && b.st.HasAddr(from.Addr) {
		return believed
	}
	return nobody
}

// beliefAt judges the answer of a node that this one has dialled. A joiner believes nodes that it asks to let it in; a
// member believes the address of a member, and of a seed unless its side has removed a member there.
func (b *beliefs) beliefAt(id peer.ID) belief {
	seed := slices.Contains(b.joining.seeds, id.Addr)
	switch b.phase {
	case probing, pending:
		if seed || id.Addr == b.joining.target.Addr {
			return believed
		}
	case member:
		_, dead := b.st.Tomb(id)
		switch {
		case b.st.Has(id):
			return believed
		case dead:
			return rival
		case b.st.HasAddr(id.Addr):
			return believed
		case slices.ContainsFunc(b.st.Tombs, func(t members.Tombstone) bool { return t.ID.Addr == id.Addr }):
			return rival
		case seed:
			return believed
		}
	}
	return nobody
}

// answers notes that from, if it is the successor of a member, has answered a probe: only a dialled node can.
func (b *beliefs) answers(from peer.ID) {
	if b.st.Has(from) || !b.st.HasAddr(from.Addr) || slices.Contains(b.answered, from) {
		return
	}
	if len(b.answered) >= maxAnswered {
		b.answered = slices.Delete(b.answered, 0, 1)
	}
	b.answered = append(b.answered, from)
}

// removedBy ends a node that learns from a believed sender that its incarnation was removed. When its own side has
// removed the sender in turn, only one of the two sides ends.
func (b *beliefs) removedBy(from peer.ID, t members.Tombstone, up uint32, lowest peer.ID, ago time.Duration) {
	switch b.beliefIn(from) {
	case nobody:
		b.stats.Disbelieved++
		return
	case rival:
		news := b.split(from)
		if b.st.Outlives(up, lowest) {
			if news {
				b.tellRemoved(from) // which has it hear how this side stands
			}
			return
		}
	}
	if own := b.st.Status(b.self); t.Last == cluster.Exiting && (own == cluster.Exiting || own == cluster.Leaving) {
		b.end(EndLeft, from, "left and was removed")
		return
	}
	by := from
	if !t.By.IsZero() {
		by = t.By
	}
	b.end(EndRemoved, by, fmt.Sprintf("%s says that %s was removed %v ago: %s", from, b.self, ago,
		why(t.Last, t.Cause, t.By)))
	b.over.Cause = t.Cause
}

// toldRemoved is removedBy for the answer to a hello. It names no status and no identity: of a rival that does not say
// how its side stands nothing follows, and on a tie the lower address lives. To a leaving node it is the last word of
// its leave.
func (b *beliefs) toldRemoved(c ToldRemovedCommand) {
	switch b.beliefAt(c.Peer) {
	case nobody:
		b.stats.Disbelieved++
		return
	case rival:
		b.split(c.Peer)
		if mine := b.st.UpCount(); !c.Counted || mine > c.Up || mine == c.Up &&
			b.st.LowestUp().Addr.Compare(c.Lowest) <= 0 {
			return
		}
	}
	kind := EndRemoved
	if c.Leaving {
		kind = EndLeft
	}
	b.end(kind, c.Peer, c.Reason)
}
