// Intern: versions by content, so that thousands of simulated nodes of one thread hold one of each (GOS-8).

package members

import (
	"bytes"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/base/invariant"
)

// Bounds of a pool.
const (
	internVersions = 512 // the newest are kept; machines keep what they hold
	internMerges   = 512
	internSample   = 64 // each so many hits one is decoded for real and compared
)

// Intern is a pool of decoded states shared by the machines of one simulation, which must all run on one goroutine and
// have the same Config.CompressAbove: nodes that hold one version share it, with its packed form, and a version is
// decoded, packed and merged once. What a machine does is the same with and without; each internSample-th hit is
// decoded nevertheless and compared, and a difference panics. It holds a bounded number of versions, the newest. A
// production node has no use for one. Make it with NewIntern and give it in Config.Intern.
type Intern struct {
	work     work
	coder    coder
	versions map[gossip.Digest]*Version
	order    []gossip.Digest // of versions, a ring
	next     int
	merges   map[[2]gossip.Digest]*Version // by what was merged
	merged   [][2]gossip.Digest            // of merges, a ring
	nextPair int
	hits     uint64
	misses   uint64
}

// NewIntern returns an empty pool.
func NewIntern() *Intern {
	return &Intern{versions: map[gossip.Digest]*Version{}, merges: map[[2]gossip.Digest]*Version{}}
}

// Hits returns how many versions were found in the pool and how many were not.
func (p *Intern) Hits() (found, made uint64) { return p.hits, p.misses }

// one returns the pool's version with the content of v, which is v itself when it is new to the pool. A nil pool has
// none.
func (p *Intern) one(v *Version) *Version {
	if p == nil {
		return v
	}
	if known, ok := p.versions[v.Digest]; ok {
		return known
	}
	if len(p.order) < internVersions {
		p.order = append(p.order, v.Digest)
	} else {
		delete(p.versions, p.order[p.next])
		p.order[p.next] = v.Digest
		p.next = (p.next + 1) % internVersions
	}
	p.versions[v.Digest] = v
	return v
}

// packed returns the version that a peer named by digest and sent packed, when the pool has it and the bytes are the
// same; now and then nil, so that it is decoded and compared.
func (p *Intern) packed(digest gossip.Digest, sent Packed) *Version {
	if p == nil {
		return nil
	}
	v, ok := p.versions[digest]
	if !ok || v.packed.bytes == nil || v.packed.flags != sent.flags || !bytes.Equal(v.packed.bytes, sent.bytes) {
		p.misses++
		return nil
	}
	if p.hits++; p.hits%internSample == 0 {
		return nil
	}
	return v
}

// named returns the version of that digest, likewise.
func (p *Intern) named(digest gossip.Digest) *Version {
	if p == nil {
		return nil
	}
	v, ok := p.versions[digest]
	if !ok {
		p.misses++
		return nil
	}
	if p.hits++; p.hits%internSample == 0 {
		return nil
	}
	return v
}

// verify compares a version that was decoded with the pool's of that name.
func (p *Intern) verify(v *Version) {
	if p == nil {
		return
	}
	if known, ok := p.versions[v.Digest]; ok && known != v {
		invariant.Check(bytes.Equal(known.canonical(), v.canonical()), "membership: two versions under one digest")
	}
}

// join returns what a and b were merged into, or nil.
func (p *Intern) join(a, b *Version) *Version {
	if p == nil || a.Digest == 0 || b.Digest == 0 {
		return nil
	}
	return p.merges[[2]gossip.Digest{a.Digest, b.Digest}]
}

// joined remembers what a and b were merged into.
func (p *Intern) joined(a, b, v *Version) {
	if p == nil || a.Digest == 0 || b.Digest == 0 {
		return
	}
	pair := [2]gossip.Digest{a.Digest, b.Digest}
	if len(p.merged) < internMerges {
		p.merged = append(p.merged, pair)
	} else {
		delete(p.merges, p.merged[p.nextPair])
		p.merged[p.nextPair] = pair
		p.nextPair = (p.nextPair + 1) % internMerges
	}
	p.merges[pair] = v
}
