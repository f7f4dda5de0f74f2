// Refusals: envelopes that a receiver did not take, told to their senders in aggregate.

package driver

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/kith-io/kith/peer"
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
	limit       int // of the bound that is reached; zero without one
	count       uint64
	samples     []string
}

type refusalKey struct {
	typ         route.TypeID
	shard       route.ShardID
	term, epoch uint32
	reason      route.Reason
}

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
		e = &refusal{typ: k.typ, shard: k.shard, term: k.term, epoch: k.epoch, reason: k.reason}
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

// spokenRefusals returns a list with the reasons that a peer of that wire version knows: entries that are the same to
// it are one.
func spokenRefusals(list []*refusal, version uint16) []*refusal {
	spoken := make([]*refusal, 0, len(list))
	for _, e := range list {
		one := *e
		one.reason = e.reason.Spoken(version)
		spoken = append(spoken, &one)
	}
	slices.SortStableFunc(spoken, compareRefusals)
	merged := spoken[:0]
	for _, e := range spoken {
		if n := len(merged); n > 0 && compareRefusals(merged[n-1], e) == 0 {
			merged[n-1].count += e.count
			continue
		}
		merged = append(merged, e)
	}
	return merged
}

// appendRefusals appends the body of a KindRefusals frame, or without limits that of a KindRefused frame, which peers
// of wire version 1 are sent instead:
//
//	uvarint  number of entries, at most 1024, in ascending order
//	each:    u32 type, u32 shard, u32 term, u32 epoch, u16 reason, uvarint limit (of the bound that is reached, zero
//	         without one; not in KindRefused), uvarint count (at least 1),
//	         u8 number of samples (at most 4), each an id (uvarint length, bytes)
func appendRefusals(b []byte, list []*refusal, limits bool) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = wire.AppendU32(wire.AppendU32(b, uint32(e.typ)), uint32(e.shard))
		b = wire.AppendU32(wire.AppendU32(b, e.term), e.epoch)
		b = wire.AppendU16(b, uint16(e.reason))
		if limits {
			b = wire.AppendUvarint(b, uint64(e.limit))
		}
		b = wire.AppendUvarint(b, e.count)
		b = wire.AppendU8(b, uint8(len(e.samples)))
		for _, id := range e.samples {
			b = wire.AppendString(b, id)
		}
	}
	return b
}

// parseRefusals reads what appendRefusals wrote for that kind.
func parseRefusals(kind wire.Kind, body []byte) ([]*refusal, error) {
	r := wire.NewReader(kind, body)
	list := make([]*refusal, 0, r.Count(minRefusalSize, maxRefusals))
	for range cap(list) {
		e := &refusal{typ: route.TypeID(r.U32()), shard: route.ShardID(r.U32()), term: r.U32(), epoch: r.U32(),
			reason: route.Reason(r.U16())}
		if kind == wire.KindRefusals {
			limit := r.Uvarint()
			if limit > math.MaxInt64 {
				r.Fail(wire.ErrBadValue)
			}
			e.limit = int(limit)
		}
		e.count = r.Uvarint()
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

// Undelivered reports messages of Tell that were accepted here and not delivered. Err says why.
type Undelivered struct {
	Type    string
	Shard   route.ShardID
	Reason  route.Reason
	Peer    peer.ID  // the node that refused them or was lost, this one included; zero: they had not left for any
	Limit   int      // the bound that is reached there, as RefusedError has it; zero without one, or when it is not known
	Count   uint64   // messages since the last report of this kind
	Samples []string // ids of at most four of them
}

// Err returns why, matching one of the errors of delivery: a *RefusedError, which names the node and the bound, when a
// bound is reached there, else a *PeerError if it concerns a node.
func (u *Undelivered) Err() error {
	switch {
	case boundUnit(u.Reason) != "" && u.Peer != peer.ID{}:
		return &RefusedError{u.Peer, u.Type, u.Reason, u.Limit}
	case u.Peer != peer.ID{}:
		return &PeerError{u.Peer, u.Type, u.Reason}
	}
	return u.Reason.Err()
}
