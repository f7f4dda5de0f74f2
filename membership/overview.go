// Overview: which version each member is known to have, an option of the early specification (GOS-10).

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
