// Overview: which members have seen the present state, and which version each is known to have, an option of the early
// specification (GOS-10); for callers from outside.

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// KnownVersion is what this node knows of the version that a member has.
type KnownVersion struct {
	ID peer.ID
	// Version names the version that the member held when it last said so to this node, as View.Hash does; zero when
	// it has not.
	Version uint64
	Age     time.Duration // since then, on this node's clock
	Current bool          // it is known to have seen the present version, from whomever this node heard that
}

// heardVersion is the last word of one peer.
type heardVersion struct {
	id     peer.ID
	digest gossip.Digest
	at     time.Duration
}

// heardOf notes which version a member holds, when Config.Overview wants that.
func (x *exchange) heardOf(id peer.ID, d gossip.Digest) {
	if !x.cfg.Overview || d == 0 || !x.st.Has(id) {
		return
	}
	i, ok := slices.BinarySearchFunc(x.heard, id, func(h heardVersion, id peer.ID) int { return h.id.Compare(id) })
	if ok {
		x.heard[i] = heardVersion{id, d, x.now}
		return
	}
	if len(x.heard) >= len(x.st.Members) { // some are of members that are gone
		x.heard = slices.DeleteFunc(x.heard, func(h heardVersion) bool { return !x.st.Has(h.id) })
		i, _ = slices.BinarySearchFunc(x.heard, id, func(h heardVersion, id peer.ID) int { return h.id.Compare(id) })
	}
	x.heard = slices.Insert(x.heard, i, heardVersion{id, d, x.now})
}

// Overview appends what is known of the version of each member, in address order, to into. Versions are known only with
// Config.Overview; without it Current alone says something. This node itself has the present one.
func (m *Machine) Overview(into []KnownVersion) []KnownVersion {
	if m.st == nil {
		return into
	}
	heard := m.exchange.heard
	for i := range m.st.Members {
		id := m.st.Members[i].ID
		k := KnownVersion{ID: id, Current: m.st.Seen.Has(i)}
		for len(heard) > 0 && heard[0].id.Less(id) {
			heard = heard[1:]
		}
		switch {
		case id == m.self:
			k.Version = uint64(m.st.Digest)
		case len(heard) > 0 && heard[0].id == id:
			k.Version, k.Age = uint64(heard[0].digest), m.now-heard[0].at
		}
		into = append(into, k)
	}
	return into
}

// ReconfirmCommand makes a version of the state with the same content that only this node has seen: a node that turns
// out to have seen it has heard from this node since. Errors: ErrNotMember.
type ReconfirmCommand struct{}

func (ReconfirmCommand) command() {}

func (m *Machine) reconfirm() error {
	if m.phase != member {
		return ErrNotMember
	}
	m.install(m.st.Draft().Commit(m.self), true)
	return nil
}

// Late appends the members that have not shown for two heartbeat intervals that they live, and that this node does not
// accuse yet, sorted, to into, and returns it. Of members that are not its neighbours on the ring it names those that
// count and either lost their link and refused the next dial, or are listened to and not heard: nobody notifies it at
// once that they are gone.
func (m *Machine) Late(now time.Duration, into []peer.ID) []peer.ID {
	if m.phase != member {
		return into
	}
	before := len(into)
	into = m.watch.monitor.Late(now, into)
	late := len(into)
	into = m.watch.monitor.Vanished(now, into)
	into = m.watch.monitor.Unanswered(now, into)
	kept := into[:late]
	for _, id := range into[late:] {
		if m.st.Status(id).Counts() && !slices.Contains(kept[before:], id) {
			kept = append(kept, id)
		}
	}
	if len(kept) > late {
		slices.SortFunc(kept[before:], peer.ID.Compare)
	}
	return kept
}

// Listen gives the members that this node has to hear itself, though others watch them: it probes those that are not
// its neighbours on the ring, too, at most 16 of them, and accuses none of these. Late names those that do not answer.
// ids is not kept.
func (m *Machine) Listen(now time.Duration, ids peer.Set) {
	if m.phase == member {
		m.watch.monitor.Listen(now, ids)
	}
}

// Unmet appends the members that this node watches and has not heard since it began to, sorted, to into, and returns
// it.
func (m *Machine) Unmet(into []peer.ID) []peer.ID {
	if m.phase != member {
		return into
	}
	return m.watch.monitor.Unmet(into)
}

// Unheard appends the members that this node probes and has no answer of within d, whatever this node did meanwhile,
// sorted, to into, and returns it.
func (m *Machine) Unheard(now, d time.Duration, into []peer.ID) []peer.ID {
	if m.phase != member {
		return into
	}
	return m.watch.monitor.Unheard(now, d, into)
}

// Seen appends to into those of ids that are known to have seen the state which the newest view shows, and returns it.
// It costs a search for each id.
func (m *Machine) Seen(ids peer.Set, into []peer.ID) []peer.ID {
	if m.st == nil {
		return into
	}
	for _, id := range ids {
		if i := m.st.Index(id); i >= 0 && m.st.Seen.Has(i) {
			into = append(into, id)
		}
	}
	return into
}
