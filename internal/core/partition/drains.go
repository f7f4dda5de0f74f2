// Drains: which members give their instances away and are to get none, as a value of the metadata that all gossip
// (PRT-4). Nodes that do not know the key leave it as it is.

package partition

import (
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// DrainKey is a key of the cluster's metadata. Its value names the members that drain.
const DrainKey = "kith.draining"

// AppendDrains appends the value of DrainKey for these members, a varint count and the ids in order; nothing for none.
// ok is false, and b as it was, when they are more than a value has room for.
func AppendDrains(b []byte, ids peer.Set) (value []byte, ok bool) {
	if len(ids) == 0 {
		return b, true
	}
	at := len(b)
	b = wire.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = peer.AppendID(b, id)
	}
	if len(b)-at > cluster.MaxMetadataValue {
		return b[:at], false
	}
	return b, true
}

// ReadDrains returns the members that a value of DrainKey names; none when it is no such value, for any program may
// write the key.
func ReadDrains(value []byte) peer.Set {
	if len(value) == 0 || len(value) > cluster.MaxMetadataValue {
		return nil
	}
	r := wire.NewReader(wire.KindGossip, value)
	ids := make(peer.Set, 0, r.Count(peer.MinIDSize, cluster.MaxMetadataValue/peer.MinIDSize))
	for range cap(ids) {
		id := peer.ReadID(&r)
		if r.Err() != nil || len(ids) > 0 && !ids[len(ids)-1].Less(id) {
			return nil
		}
		ids = append(ids, id)
	}
	if r.Done() != nil {
		return nil
	}
	return ids
}
