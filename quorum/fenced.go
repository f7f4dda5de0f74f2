// Fenced records: a store for durable entities on the disks of the nodes.

package quorum

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/core/quorum/records"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/store"
)

// Fenced returns the store of records of durable entities that lies on the same disks as the values, and has nothing in
// common with them: durable.Type.Store takes it, the same store at all nodes. Each shard has N replicas; a commit
// returns when a majority of them have it on disk, and any node may be a shard's owner. R, W and Mode say nothing here.
// It ends with v. Errors of its methods are those of package store; all others say that the store does not answer now,
// ErrNotFounded and ErrClosed among them.
func (v *Values) Fenced() store.Store { return v.records.Store() }

// founding returns what the records are founded as: the founders one after the other, each with the n-1 behind it.
func founding(founders peer.Set, n int) records.FoundCommand {
	c := records.FoundCommand{}
	var all []byte
	for i, id := range founders {
		all = peer.AppendID(all, id)
		var g peer.Set
		for k := range min(n, len(founders)) {
			g.Add(founders[(i+k)%len(founders)])
		}
		if !slices.ContainsFunc(c.Groups, g.Equal) {
			c.Groups = append(c.Groups, g)
		}
	}
	c.Store = xxhash.Sum64(all) | 1
	return c
}
