// Record: what a node remembers of its cluster from one of its lives to the next, so that it forms no second one.

package membership

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// MaxRemembered is how many other members a Record names. With more, no cluster is formed from it without an operator.
const MaxRemembered = 1024

// Record is what a node remembers of the cluster that it was a member of last: which others could carry it on. It is a
// value: the runtime keeps it where it outlives the process, and hands it to the next incarnation with the JoinCommand.
// The zero Record remembers nothing.
type Record struct {
	ClusterID, Birth uint64
	// Highest is the highest birth of a cluster that this node was in; a cluster that it forms gets a higher one.
	Highest uint64
	// Counts says that this node itself could carry the cluster on: it was Up, and has not left.
	Counts bool
	// Others are the addresses of the other members that could, in address order, at most MaxRemembered of them: those
	// that were up, and those that had been admitted and would be soon.
	Others    []peer.Addr
	Newcomers int // how many of Others were not up yet; nobody else may be missing on their account
	More      int // how many there were beyond
	// Bystanders are the addresses of the members without the role, in address order, at most MaxRemembered of them; of
	// so many, some more may be unnamed. They cannot carry the cluster on, but handle messages until they have stopped.
	Bystanders []peer.Addr
}

// Known reports whether the record is of a cluster.
func (r Record) Known() bool { return r.ClusterID != 0 }

// Alone reports whether it remembers nobody else.
func (r Record) Alone() bool { return len(r.Others) == 0 && r.More == 0 }

// Names reports whether the address is among those that are remembered.
func (r Record) Names(a peer.Addr) bool {
	_, ok := slices.BinarySearchFunc(r.Others, a, peer.Addr.Compare)
	return ok
}

// Mentions reports whether the address is of a remembered node, whether it could carry the cluster on or not.
func (r Record) Mentions(a peer.Addr) bool {
	_, ok := slices.BinarySearchFunc(r.Bystanders, a, peer.Addr.Compare)
	return ok || r.Names(a)
}

// Next returns the record of a node that sees v, having had r. Only members with the role count, all for an empty role;
// the others stand by.
// A view in which this node is Down or no member says nothing about which nodes may carry the cluster on: r stays as it
// was. Newcomers are remembered too, for the member that lets them in may die before it has written that down; but not
// where all that ever were Up are Down, for nobody is let in there any more.
func (r Record) Next(v *cluster.View, role string) Record {
	self, ok := v.SelfMember()
	if v.ClusterID == 0 || !ok || self.Status == cluster.Down {
		return r
	}
	next := Record{ClusterID: v.ClusterID, Birth: v.Birth, Highest: max(r.Highest, v.Birth)}
	lost := cluster.Orphaned(v.Members)
	for i := range v.Members {
		m := &v.Members[i]
		comes := m.Status.Numbered() < 0
		switch {
		case !m.Status.Counts() && (!comes || lost):
		case !m.HasRole(role):
			next.standsBy(m.ID.Addr, v.Self.Addr)
		case m.ID == v.Self:
			next.Counts = !comes
		case m.ID.Addr != v.Self.Addr:
			next.remember(m.ID.Addr, comes)
		}
	}
	return next
}

// Left returns the record of a node that has left gracefully, last being its last view: members that stay and are Up,
// or come, carry the cluster on without it. Where none of these has the role and is Up, the others do, for no member is
// lost because of which they would have to go. Alone: nobody does, and all that is left is what the next birth must
// exceed.
func (r Record) Left(last *cluster.View, role string) Record {
	next := Record{ClusterID: r.ClusterID, Birth: r.Birth, Highest: r.Highest}
	if last.ClusterID != r.ClusterID {
		return r
	}
	lets := !cluster.Preparing(last.Members) && !cluster.Orphaned(last.Members)
	decides := func(m cluster.Member) bool {
		return m.Status == cluster.Up && m.HasRole(role) && m.ID.Addr != last.Self.Addr
	}
	if !slices.ContainsFunc(last.Members, decides) {
		role = ""
	}
	for i := range last.Members {
		m := &last.Members[i]
		comes := m.Status.Numbered() < 0
		switch {
		case m.Status != cluster.Up && (!comes || !lets):
		case !m.HasRole(role):
			next.standsBy(m.ID.Addr, last.Self.Addr)
		case m.ID.Addr != last.Self.Addr:
			next.remember(m.ID.Addr, comes)
		}
	}
	return next
}

// went returns the record of a node that is Down, or no member any more, in its last view: the members that count
// there carry the cluster on without it, however few they are, for members that are indirectly connected count as
// reachable and then go. A member that is Down beside it stands by: it may not have heard of it yet. Where all with
// the role go so, those without it live on (storm 15000006802). Where nobody lives on by that view, r stays as it
// was, and so where the view does not have this node gone.
func (r Record) went(last *cluster.View, role string) Record {
	self, in := last.SelfMember()
	if last.ClusterID == 0 || last.ClusterID != r.ClusterID || in && self.Status != cluster.Down {
		return r
	}
	next := Record{ClusterID: r.ClusterID, Birth: r.Birth, Highest: r.Highest}
	decides := func(m cluster.Member) bool {
		return m.Status.Counts() && m.HasRole(role) && m.ID.Addr != last.Self.Addr
	}
	if !slices.ContainsFunc(last.Members, decides) {
		role = ""
	}
	lost := cluster.Orphaned(last.Members)
	for i := range last.Members {
		m := &last.Members[i]
		comes := m.Status.Numbered() < 0
		switch {
		case m.ID.Addr == last.Self.Addr:
		case m.Status == cluster.Down:
			next.standsBy(m.ID.Addr, last.Self.Addr)
		case !m.Status.Counts() && (!comes || lost):
		case !m.HasRole(role):
			next.standsBy(m.ID.Addr, last.Self.Addr)
		default:
			next.remember(m.ID.Addr, comes)
		}
	}
	if len(next.Others)+next.More == next.Newcomers {
		return r
	}
	return next
}

// Copied returns the record as it is known to a node at self that has a copy of it, kept by a node at another address:
// that one is among the others, if it could carry the cluster on, and this node could not.
func (r Record) Copied(from, self peer.Addr) Record {
	list := slices.DeleteFunc(slices.Clone(r.Others), func(a peer.Addr) bool { return a == self })
	gone := len(list) < len(r.Others)
	if r.Counts {
		list = sortAddrs(append(list, from))
	}
	r.Counts = gone // as one of the others it could
	r.Newcomers = min(r.Newcomers, len(list))
	if r.More += max(0, len(list)-MaxRemembered); len(list) > MaxRemembered {
		list = list[:MaxRemembered]
	}
	r.Others = list
	return r
}

// Equal reports whether both remember the same.
func (r Record) Equal(o Record) bool {
	return r.ClusterID == o.ClusterID && r.Birth == o.Birth && r.Highest == o.Highest && r.Counts == o.Counts &&
		r.Newcomers == o.Newcomers && r.More == o.More && slices.Equal(r.Others, o.Others) &&
		slices.Equal(r.Bystanders, o.Bystanders)
}

// bystands reports whether there may be a bystander that over does not list as ended.
func (r Record) bystands(over func(peer.Addr) bool) bool {
	missing := func(a peer.Addr) bool { return !over(a) }
	return len(r.Bystanders) >= MaxRemembered || slices.ContainsFunc(r.Bystanders, missing)
}

// members returns how many members the cluster had, or more.
func (r Record) members() int {
	if len(r.Bystanders) >= MaxRemembered {
		return cluster.MaxMembers
	}
	return len(r.Others) + len(r.Bystanders) + 1
}

func (r *Record) standsBy(a, self peer.Addr) {
	if n := len(r.Bystanders); a != self && n < MaxRemembered && (n == 0 || r.Bystanders[n-1] != a) {
		r.Bystanders = append(r.Bystanders, a)
	}
}

func (r *Record) remember(a peer.Addr, comes bool) {
	if n := len(r.Others); n > 0 && r.Others[n-1] == a {
		return // two incarnations at one address
	}
	if len(r.Others) >= MaxRemembered {
		r.More++
		return
	}
	r.Others = append(r.Others, a)
	if comes {
		r.Newcomers++
	}
}
