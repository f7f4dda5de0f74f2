// Refusals: messages that a receiver did not take, reported to their senders in aggregate.

package plane

import (
	"cmp"
	"math"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Bounds of one refusal frame.
const (
	MaxRefusals       = 1024 // entries of one frame, and kept by shard and fence per sender between two
	MaxRefusedSamples = 4    // ids of one entry
	minRefusalSize    = 4 + 4 + 4 + 4 + 2 + 1 + 1
)

// RefusalKey is what the refusals of one entry have in common: a shard, the fence under which they were sent to it,
// and why they were not taken.
type RefusalKey struct {
	Type        route.TypeID
	Shard       route.ShardID
	Term, Epoch uint32
	Reason      route.Reason
}

// KeyOf returns the key of an envelope that is refused.
func KeyOf(e *wire.Envelope, why route.Reason) RefusalKey {
	return RefusalKey{route.TypeID(e.Type), route.ShardID(e.Shard), e.Term, e.Epoch, why}
}

// Refusal says that Count messages to a shard were refused under a fence, with a few of their ids.
type Refusal struct {
	RefusalKey
	Limit   int    // of the bound that is reached; zero without one
	Count   uint64 // at least 1
	Samples []string
}

func compareRefusals(a, b *Refusal) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Term, b.Term),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Reason, b.Reason))
}

// Refusals gathers what is refused of one sender until it is reported. It loses no count: what finds no entry of its
// own is counted by type and reason, with route.NoShard for its shard, and beyond as many of these by the reason alone,
// of type zero. So it holds at most 2 * MaxRefusals entries and one for each reason. The zero value is empty.
type Refusals struct {
	entries map[RefusalKey]*Refusal
}

// Add counts one refused message, and copies its id.
func (rs *Refusals) Add(k RefusalKey, id []byte) {
	e := rs.entry(k)
	e.Count++
	if len(e.Samples) < MaxRefusedSamples {
		e.Samples = append(e.Samples, string(id))
	}
}

// Return takes back what Take handed over and what could not be reported yet.
func (rs *Refusals) Return(list []*Refusal) {
	for _, r := range list {
		e := rs.entry(r.RefusalKey)
		e.Count += r.Count
		room := MaxRefusedSamples - len(e.Samples)
		e.Samples = append(e.Samples, r.Samples[:min(room, len(r.Samples))]...)
	}
}

// entry returns the entry that counts for k: its own while there is room.
func (rs *Refusals) entry(k RefusalKey) *Refusal {
	merged := RefusalKey{Type: k.Type, Shard: route.NoShard, Reason: k.Reason}
	for _, tier := range [...]struct {
		key  RefusalKey
		most int
	}{{k, MaxRefusals}, {merged, 2 * MaxRefusals}, {RefusalKey{Shard: route.NoShard, Reason: k.Reason}, math.MaxInt}} {
		if e := rs.entries[tier.key]; e != nil {
			return e
		}
		if k = tier.key; len(rs.entries) < tier.most {
			break
		}
	}
	if rs.entries == nil {
		rs.entries = map[RefusalKey]*Refusal{}
	}
	e := &Refusal{RefusalKey: k}
	rs.entries[k] = e
	return e
}

// Empty reports whether nothing is gathered.
func (rs *Refusals) Empty() bool { return len(rs.entries) == 0 }

// Take returns what was gathered, sorted, and starts anew. The list is the caller's.
func (rs *Refusals) Take() []*Refusal {
	if rs.Empty() {
		return nil
	}
	list := make([]*Refusal, 0, len(rs.entries))
	for _, e := range rs.entries { // in any order: they are sorted below
		list = append(list, e)
	}
	rs.entries = nil
	slices.SortFunc(list, compareRefusals)
	return list
}

// Counted returns how many messages a list tells of.
func Counted(list []*Refusal) (n uint64) {
	for _, e := range list {
		n += e.Count
	}
	return n
}

// SpokenRefusals returns a list as a peer of that wire version, below 4, knows it: its reasons, and no entry without a
// shard, so that these go to shard zero under no fence. Entries that are the same to it are one. The list itself stays
// as it is.
func SpokenRefusals(list []*Refusal, version uint16) []*Refusal {
	spoken := make([]*Refusal, 0, len(list))
	for _, e := range list {
		one := *e
		one.Reason = e.Reason.Spoken(version)
		if one.Shard == route.NoShard {
			one.Shard = 0
		}
		spoken = append(spoken, &one)
	}
	slices.SortStableFunc(spoken, compareRefusals)
	merged := spoken[:0]
	for _, e := range spoken {
		if n := len(merged); n > 0 && compareRefusals(merged[n-1], e) == 0 {
			merged[n-1].Count += e.Count
			continue
		}
		merged = append(merged, e)
	}
	return merged
}

// AppendRefusals appends the body of a KindRefusals frame, or without limits that of a KindRefused frame, which peers
// of wire version 1 are sent instead:
//
//	uvarint  number of entries, at most 1024, in ascending order
//	each:    u32 type, u32 shard (all ones: of several), u32 term, u32 epoch, u16 reason, uvarint limit (of the bound
//	         that is reached, zero without one; not in KindRefused), uvarint count (at least 1),
//	         u8 number of samples (at most 4), each an id (uvarint length, bytes)
func AppendRefusals(b []byte, list []*Refusal, limits bool) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = wire.AppendU32(wire.AppendU32(b, uint32(e.Type)), uint32(e.Shard))
		b = wire.AppendU32(wire.AppendU32(b, e.Term), e.Epoch)
		b = wire.AppendU16(b, uint16(e.Reason))
		if limits {
			b = wire.AppendUvarint(b, uint64(e.Limit))
		}
		b = wire.AppendUvarint(b, e.Count)
		b = wire.AppendU8(b, uint8(len(e.Samples)))
		for _, id := range e.Samples {
			b = wire.AppendString(b, id)
		}
	}
	return b
}

// ParseRefusals reads what AppendRefusals wrote for that kind, wire.KindRefused or wire.KindRefusals. It copies what it
// keeps; errors are *wire.Error.
func ParseRefusals(kind wire.Kind, body []byte) ([]*Refusal, error) {
	r := wire.NewReader(kind, body)
	list := make([]*Refusal, 0, r.Count(minRefusalSize, MaxRefusals))
	for range cap(list) {
		e := &Refusal{RefusalKey: RefusalKey{route.TypeID(r.U32()), route.ShardID(r.U32()), r.U32(), r.U32(),
			route.Reason(r.U16())}}
		if kind == wire.KindRefusals {
			limit := r.Uvarint()
			if limit > math.MaxInt64 {
				r.Fail(wire.ErrBadValue)
			}
			e.Limit = int(limit)
		}
		e.Count = r.Uvarint()
		samples := int(r.U8())
		if r.Err() == nil && (e.Count == 0 || e.Reason == route.OK || samples > MaxRefusedSamples) {
			r.Fail(wire.ErrBadValue)
		}
		for i := 0; i < samples && r.Err() == nil; i++ {
			e.Samples = append(e.Samples, r.String(wire.MaxIDSize))
		}
		if r.Err() != nil {
			break
		}
		if len(list) > 0 && compareRefusals(list[len(list)-1], e) >= 0 {
			r.Fail(wire.ErrBadOrder)
		}
		list = append(list, e)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return list, nil
}

// Doubts reports whether a refusal by the node from puts a route in doubt that leads to the node home under term and
// epoch: it does when it is of that very route and says that the home is wrong.
func (k *RefusalKey) Doubts(from, home peer.ID, term, epoch uint32) bool {
	return WrongHome(k.Reason) && from == home && k.Term == term && k.Epoch == epoch
}

// WrongHome reports whether a refusal means that the sender's route leads to the wrong place.
func WrongHome(why route.Reason) bool {
	return why == route.NotOwner || why == route.NotRegistered || why == route.ShardStopping
}
