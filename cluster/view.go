// View: the immutable snapshot of membership that everything else reads.

package cluster

import (
	"slices"
	"strings"

	"github.com/kith-io/kith/peer"
)

// Member is one member as a View holds it. Roles is sorted and must not be changed.
type Member struct {
	ID       peer.ID
	Status   Status
	UpNumber uint32 // order of becoming Up; 0 until then; never reused
	Roles    []string
	// AppVersion is the version of the application that it runs, empty when it gave none; see CompareVersions.
	AppVersion string
	Cause      Cause   // why it is Down; CauseNone otherwise
	By         peer.ID // which marked it Down: a member, or its successor at its address; zero otherwise
}

// HasRole reports whether m has the role; every member has the empty role.
func (m Member) HasRole(role string) bool {
	return role == "" || slices.Contains(m.Roles, role)
}

// ZonePrefix begins the role by which a member says where it runs: a rack, an availability zone, a data center.
const ZonePrefix = "zone:"

// Zone returns the zone that m names by its first role that begins with ZonePrefix, empty when it names none.
func (m Member) Zone() string {
	for _, r := range m.Roles {
		if name, is := strings.CutPrefix(r, ZonePrefix); is {
			return name
		}
	}
	return ""
}

// Accusation is one row entry of the reachability table: observer holds subject unreachable, for good when
// quarantined.
type Accusation struct {
	Observer, Subject peer.ID
	Quarantined       bool
}

// View is an immutable snapshot. A nil *View is an empty one to every method.
type View struct {
	Self      peer.ID
	Seq       uint64 // grows by one with each view that this node publishes
	ClusterID uint64 // random id of the cluster; zero before the node is a member
	Birth     uint64 // birth of the cluster, the first eight bytes of every fence; zero before the node is a member
	Hash      uint64 // digest of the gossiped state: equal on nodes that hold the same state ("view hash")
	Members   []Member
	// Unreachable holds the members that at least one observer marks unreachable, sorted; never Self.
	Unreachable peer.Set
	Accusations []Accusation // which member accuses which, sorted by observer then subject
	Leader      peer.ID      // zero when there is none
	Metadata    []Metadata   // the application's own, sorted by key; deleted keys are absent
	Partitions  []Partition  // the partition table, sorted by path; deleted ones are absent when all instances ended
	Converged   bool         // this node can prove that all members have seen this state
}

// Member returns the member with exactly this identity.
func (v *View) Member(id peer.ID) (Member, bool) {
	if v == nil {
		return Member{}, false
	}
	i, ok := slices.BinarySearchFunc(v.Members, id, func(m Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// SelfMember returns this node's own record; ok is false before it is admitted and after it is removed.
func (v *View) SelfMember() (m Member, ok bool) {
	if v == nil {
		return Member{}, false
	}
	return v.Member(v.Self)
}

// MetadataValue returns the value of a key of the metadata; ok is false when it is not set. It must not be changed.
func (v *View) MetadataValue(key string) (value []byte, ok bool) {
	if v == nil {
		return nil, false
	}
	i, ok := slices.BinarySearchFunc(v.Metadata, key, func(m Metadata, key string) int {
		return strings.Compare(m.Key, key)
	})
	if !ok {
		return nil, false
	}
	return v.Metadata[i].Value, true
}

// Reachable reports whether no observer marks id unreachable.
func (v *View) Reachable(id peer.ID) bool { return v == nil || !v.Unreachable.Has(id) }

// CountUp returns how many members are Up.
func (v *View) CountUp() int {
	n := 0
	if v != nil {
		for _, m := range v.Members {
			if m.Status == Up {
				n++
			}
		}
	}
	return n
}

// Oldest returns the member of the role with the lowest up-number among those Up, Leaving or in a full shutdown: the
// place of the coordinator. ok is false when there is none.
func (v *View) Oldest(role string) (oldest Member, ok bool) {
	if v == nil {
		return oldest, false
	}
	for _, m := range v.Members {
		if !m.Status.Counts() || m.UpNumber == 0 || !m.HasRole(role) {
			continue
		}
		if !ok || m.UpNumber < oldest.UpNumber {
			oldest, ok = m, true
		}
	}
	return oldest, ok
}

// RoleLeader returns the leader among the members with role, as this node sees it; zero when there is none. The empty
// role is that of all members.
func (v *View) RoleLeader(role string) peer.ID {
	if v == nil {
		return peer.ID{}
	}
	return Leader(v.Members, v.Unreachable, v.Self, role)
}

// Quarantined returns the members that at least one observer that is not Down holds unreachable for good, sorted.
func (v *View) Quarantined() peer.Set {
	if v == nil {
		return nil
	}
	var out peer.Set
	for _, a := range v.Accusations {
		if a.Quarantined && v.quarantineHolds(a) {
			out.Add(a.Subject)
		}
	}
	return out
}

// QuarantinedBy returns the first observer, by address, that is not Down and holds id unreachable for good; zero when
// none does.
func (v *View) QuarantinedBy(id peer.ID) peer.ID {
	for _, a := range v.Accusations {
		if a.Quarantined && a.Subject == id && v.quarantineHolds(a) {
			return a.Observer
		}
	}
	return peer.ID{}
}

// quarantineHolds reports whether an accusation counts: rows of Down observers do not.
func (v *View) quarantineHolds(a Accusation) bool {
	o, ok := v.Member(a.Observer)
	return ok && o.Status != Down
}
