// Refusals: envelopes that a receiver did not take, told to their senders in aggregate.

package driver

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Bounds of one refusal frame.
const (
	maxRefusals       = 1024 // entries of one frame, and kept per sender between two
	maxRefusedSamples = 4    // ids of one entry
	minRefusalSize    = 4 + 4 + 4 + 4 + 2 + 1 + 1
)

// refusal says that count tells to a shard were refused under a fence, with a few of their ids.
type refusal struct {
	typ         route.TypeID
	shard       route.ShardID
	term, epoch uint32
	reason      route.Reason
	count       uint64
	samples     []string
}

type refusalKey struct {
	typ         route.TypeID
	shard       route.ShardID
	term, epoch uint32
	reason      route.Reason
}

func (r *refusal) key() refusalKey { return refusalKey{r.typ, r.shard, r.term, r.epoch, r.reason} }

func compareRefusals(a, b *refusal) int {
	return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.shard, b.shard), cmp.Compare(a.term, b.term),
		cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.reason, b.reason))
}

// refusals gathers what is refused of one sender until it is told. Safe for concurrent use.
type refusals struct {
	mu      sync.Mutex
	entries map[refusalKey]*refusal
}

// add counts one refused tell and reports whether there was room to tell its sender.
func (rs *refusals) add(k refusalKey, id []byte) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	e := rs.entries[k]
	if e == nil {
		if len(rs.entries) >= maxRefusals {
			return false
		}
		e = &refusal{k.typ, k.shard, k.term, k.epoch, k.reason, 0, nil}
		if rs.entries == nil {
			rs.entries = map[refusalKey]*refusal{}
		}
		rs.entries[k] = e
	}
	e.count++
	if len(e.samples) < maxRefusedSamples {
		e.samples = append(e.samples, string(id))
	}
	return true
}

// take returns what was gathered, sorted, and starts anew.
func (rs *refusals) take() []*refusal {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.entries) == 0 {
		return nil
	}
	list := make([]*refusal, 0, len(rs.entries))
	for _, e := range rs.entries {
		list = append(list, e)
	}
	rs.entries = nil
	slices.SortFunc(list, compareRefusals)
	return list
}

// appendRefusals appends the body of a KindRefused frame:
//
//	uvarint  number of entries, at most 1024, in ascending order
//	each:    u32 type, u32 shard, u32 term, u32 epoch, u16 reason, uvarint count (at least 1),
//	         u8 number of samples (at most 4), each an id (uvarint length, bytes)
func appendRefusals(b []byte, list []*refusal) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = wire.AppendU32(wire.AppendU32(b, uint32(e.typ)), uint32(e.shard))
		b = wire.AppendU32(wire.AppendU32(b, e.term), e.epoch)
		b = wire.AppendUvarint(wire.AppendU16(b, uint16(e.reason)), e.count)
		b = wire.AppendU8(b, uint8(len(e.samples)))
		for _, id := range e.samples {
			b = wire.AppendString(b, id)
		}
	}
	return b
}

// parseRefusals reads what appendRefusals wrote.
func parseRefusals(body []byte) ([]*refusal, error) {
	r := wire.NewReader(wire.KindRefused, body)
	list := make([]*refusal, 0, r.Count(minRefusalSize, maxRefusals))
	for range cap(list) {
		e := &refusal{typ: route.TypeID(r.U32()), shard: route.ShardID(r.U32()), term: r.U32(), epoch: r.U32(),
			reason: route.Reason(r.U16()), count: r.Uvarint()}
		samples := int(r.U8())
		if r.Err() == nil && (e.count == 0 || e.reason == route.OK || samples > maxRefusedSamples) {
			r.Fail(wire.ErrBadValue)
		}
		for i := 0; i < samples && r.Err() == nil; i++ {
			e.samples = append(e.samples, r.String(wire.MaxIDSize))
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

// Undelivered reports messages of Tell that were accepted here and not delivered. Reason.Err names the reason as one of
// the errors of delivery.
type Undelivered struct {
	Type    string
	Shard   route.ShardID
	Reason  route.Reason
	Count   uint64   // messages since the last report of this kind
	Samples []string // ids of at most four of them
}
