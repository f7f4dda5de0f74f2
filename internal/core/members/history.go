// History: the last versions of a node, and the way from one of them to the present one (GOS-4).

package members

import "github.com/kith-io/kith/gossip"

// PastVersions is how many versions before the present one a node holds, for deltas from them.
const PastVersions = 8

// History holds the last versions of this node.
type History struct {
	past [PastVersions]*Version // a ring
	next int
	Base *Version // what nodes that have not heard of the present change most probably hold; nil when unknown
}

// Push remembers a version that gives way to another. untold says that its own push has not gone out yet.
func (h *History) Push(v *Version, untold bool) {
	if !untold {
		h.Base = v
	}
	h.past[h.next] = v
	h.next = (h.next + 1) % PastVersions
}

// Find returns the version of that digest, nil when it is not one of the last.
func (h *History) Find(d gossip.Digest) *Version {
	for _, v := range h.past {
		if v != nil && v.Digest == d {
			return v
		}
	}
	return nil
}

// delta is the way from one other version to the one that keeps it. No bytes: it is not worth its while.
type delta struct {
	from  gossip.Digest
	bytes []byte
}

// DeltaFrom returns the way from base to v, nil when the whole state is shorter or there is none. The last answer is
// kept with the version.
func (v *Version) DeltaFrom(base *Version) []byte {
	if v.delta.from == base.Digest {
		return v.delta.bytes
	}
	v.delta = delta{from: base.Digest}
	b, ok := appendDelta(nil, base, v)
	if ok && len(b) < 64+8*len(v.Members) { // no packed form is shorter than its incarnations
		v.delta.bytes = b
	}
	return v.delta.bytes
}
