// Eligibility: which regions may be chosen, which is to be preferred, and when nothing moves for balance, in one place.

package strategy

import (
	"cmp"

	"github.com/kith-io/kith/cluster"
)

// Why says why a region may neither be given a shard nor take part in a rebalance, in one or two words, or "" when it
// may. Only members that are Up may, or were until a full shutdown began: entities still find a home then. One that is
// Joining, WeaklyUp, Leaving, Exiting or Down may not.
func (r *Region) Why() string {
	switch {
	case !r.Status.Working():
		return r.Status.String()
	case r.Unreachable:
		return "unreachable"
	case r.NotReady:
		return "not ready"
	case r.Draining:
		return "draining"
	}
	return ""
}

// Eligible reports whether a region may be given shards and take part in a rebalance.
func (r *Region) Eligible() bool { return r.Why() == "" }

// Holds returns all reasons for which nothing may move: those of Hold, and what the regions show. While they run
// different versions nothing moves at all, so nothing moves to an older one, nor from one that is about to be replaced.
func (v *View) Holds() Hold {
	h := v.Hold
	var same versions
	for i := range v.Regions {
		r := &v.Regions[i]
		h |= holdOf(r.Status)
		if r.Unreachable {
			h |= Unstable
		}
		if same.compare(r.AppVersion, v.Regions[0].AppVersion) != 0 {
			h |= Updating
		}
	}
	return h
}

// versions compares application versions and remembers the last pair: there are few, and many regions.
type versions struct {
	a, b   string
	result int
}

func (c *versions) compare(a, b string) int {
	switch {
	case a == b:
		return 0
	case c.a != a || c.b != b:
		*c = versions{a, b, cluster.CompareVersions(a, b)}
	}
	return c.result
}

// suits orders regions by how well they suit a further shard, best first: eligible before not, newer before older
// versions, then fewer shards, then the identity, so that the order is total.
func (c *versions) suits(a, b *Region) int {
	if x, y := a.Eligible(), b.Eligible(); x != y {
		if x {
			return -1
		}
		return 1
	}
	return cmp.Or(c.compare(b.AppVersion, a.AppVersion), cmp.Compare(a.Count, b.Count), a.ID.Compare(b.ID))
}
