// History: the last versions of a node, and the way from one of them to the present one (GOS-4).

package membership

import "github.com/kith-io/kith/gossip"

// pastVersions is how many versions before the present one a node holds, for deltas from them.
const pastVersions = 8

// history holds the last versions of this node.
type history struct {
	past [pastVersions]*version // a ring
	next int
	base *version // what those who have not heard of the present change most probably hold; nil when unknown
}

// push remembers a version that gives way to another. untold says that its own push has not gone out yet.
func (h *history) push(v *version, untold bool) {
	if !untold {
		h.base = v
	}
	h.past[h.next] = v
	h.next = (h.next + 1) % pastVersions
}

func (h *history) find(d gossip.Digest) *version {
	for _, v := range h.past {
		if v != nil && v.digest == d {
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

// deltaFrom returns the way from base to v, nil when the whole state is shorter or there is none. The last answer is
// kept with the version.
func (v *version) deltaFrom(base *version) []byte {
	if v.delta.from == base.digest {
		return v.delta.bytes
	}
	v.delta = delta{from: base.digest}
	b, ok := appendDelta(nil, base, v)
	if ok && len(b) < 64+8*len(v.members) { // no packed form is shorter than its incarnations
		v.delta.bytes = b
	}
	return v.delta.bytes
}
