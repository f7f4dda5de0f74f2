// The mail of sharding: one Go type per frame kind, and the table that decodes a body by its kind.

package shard

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Bounds of one mail. A longer list travels in several mails of the same kind.
const (
	maxEntries = 1 << 14 // shards in one mail: under 250 kB
	maxPeers   = 1 << 14 // members in one list of a report
	maxTold    = 1 << 8  // members in a leave notice, losses and roll together: every member gets one within a verb
	maxAge     = 1 << 40 // milliseconds in the age of a removal
)

// message is the content of one mail. Mail to this node itself stays a message and is never encoded, so a message must
// not share memory with the state of the machine.
type message interface {
	kind() wire.Kind
	append(b []byte) []byte
}

// head opens every message about a type: the cluster's birth, the type, and the coordinator's term as the sender knows
// it.
type head struct {
	Birth uint64
	Type  route.TypeID
	Term  uint32
}

func (h head) append(b []byte) []byte {
	return wire.AppendU32(wire.AppendU32(wire.AppendU64(b, h.Birth), uint32(h.Type)), h.Term)
}

func (h head) about() head { return h }

func readHead(r *wire.Reader) head {
	h := head{Birth: r.U64(), Type: route.TypeID(r.U32()), Term: r.U32()}
	if r.Err() == nil && (h.Birth == 0 || h.Term == 0) {
		r.Fail(wire.ErrBadValue)
	}
	return h
}

// signal is a message that is only its head: RegisterAck, DrainRegion, DrainDone.
type signal struct {
	Kind wire.Kind
	head
}

func (s signal) kind() wire.Kind        { return s.Kind }
func (s signal) append(b []byte) []byte { return s.head.append(b) }

// leave notice says that its sender hosts nothing of any type and never will again (LeaveNotice), or acknowledges that
// (FarewellAck). A LeaveNotice carries what its sender remembers of lost members: a young receiver may have no other
// source. It is empty if the sender does not know all of it either, or too much for maxTold.
type leaveNotice struct {
	Kind  wire.Kind
	Birth uint64
	Past  recentlyLost // only of a LeaveNotice
}

func (f leaveNotice) kind() wire.Kind { return f.Kind }

func (f leaveNotice) append(b []byte) []byte {
	b = wire.AppendU64(b, f.Birth)
	if f.Kind == wire.KindLeaveNotice {
		b = appendPast(b, f.Past)
	}
	return b
}

func readLeaveNotice(k wire.Kind, r *wire.Reader) message {
	f := leaveNotice{Kind: k, Birth: r.U64()}
	if r.Err() == nil && f.Birth == 0 {
		r.Fail(wire.ErrBadValue)
	}
	if k == wire.KindLeaveNotice {
		f.Past = readPast(r, maxTold)
		if r.Err() == nil && len(f.Past.Lost)+len(f.Past.Roll) > maxTold {
			r.Fail(wire.ErrTooLarge)
		}
	}
	return f
}

// ownership lists shards, rising, each with the fence that the order or answer is about.
type ownership struct {
	Kind wire.Kind
	head
	Entries []held
}

// held is one shard under one fence.
type held struct {
	Shard route.ShardID
	Fence route.Fence
}

func (h held) shard() route.ShardID { return h.Shard }

func (o ownership) kind() wire.Kind        { return o.Kind }
func (o ownership) append(b []byte) []byte { return appendHeld(o.head.append(b), o.Entries) }

func readOwnership(k wire.Kind, r *wire.Reader) message {
	o := ownership{Kind: k, head: readHead(r)}
	o.Entries = readHeld(r, o.Birth)
	return o
}

func appendHeld(b []byte, list []held) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	next := route.ShardID(0)
	for _, h := range list {
		b = wire.AppendUvarint(b, uint64(h.Shard-next))
		b = appendShort(b, h.Fence)
		next = h.Shard + 1
	}
	return b
}

func readHeld(r *wire.Reader, birth uint64) []held {
	n := r.Count(3, maxEntries)
	list := make([]held, 0, n)
	next := route.ShardID(0)
	for range n {
		h := held{Shard: readShard(r, next)}
		h.Fence = readShort(r, birth)
		if r.Err() != nil {
			return nil
		}
		list, next = append(list, h), h.Shard+1
	}
	return list
}

// appendShort appends term and epoch of a fence; the birth stands in the head.
func appendShort(b []byte, f route.Fence) []byte {
	return wire.AppendUvarint(wire.AppendUvarint(b, uint64(f.Term())), uint64(f.Epoch()))
}

func readShort(r *wire.Reader, birth uint64) route.Fence {
	term, epoch := readU32(r), readU32(r)
	if r.Err() == nil && (term == 0 || epoch == 0) {
		r.Fail(wire.ErrBadValue)
	}
	return route.MakeFence(birth, term, epoch)
}

func readU32(r *wire.Reader) uint32 {
	v := r.Uvarint()
	if r.Err() == nil && v > 1<<32-1 {
		r.Fail(wire.ErrBadValue)
		return 0
	}
	return uint32(v)
}

func readU16(r *wire.Reader) uint16 {
	v := r.Uvarint()
	if r.Err() == nil && v > 1<<16-1 {
		r.Fail(wire.ErrBadValue)
		return 0
	}
	return uint16(v)
}

// readShard reads the distance from the least id that keeps a list rising.
func readShard(r *wire.Reader, next route.ShardID) route.ShardID {
	v := r.Uvarint()
	if r.Err() == nil && v >= uint64(route.MaxShards)-min(uint64(next), route.MaxShards) {
		r.Fail(wire.ErrBadValue)
		return 0
	}
	return next + route.ShardID(v)
}

// ask wants the homes of shards, rising.
type ask struct {
	head
	Shards []route.ShardID
}

func (ask) kind() wire.Kind { return wire.KindAskHomes }

func (a ask) append(b []byte) []byte { return appendShards(a.head.append(b), a.Shards) }

func readAsk(r *wire.Reader) message { return ask{head: readHead(r), Shards: readShards(r)} }

func appendShards(b []byte, list []route.ShardID) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	next := route.ShardID(0)
	for _, s := range list {
		b = wire.AppendUvarint(b, uint64(s-next))
		next = s + 1
	}
	return b
}

func readShards(r *wire.Reader) []route.ShardID {
	n := r.Count(1, maxEntries)
	list := make([]route.ShardID, 0, n)
	next := route.ShardID(0)
	for range n {
		s := readShard(r, next)
		if r.Err() != nil {
			break
		}
		list, next = append(list, s), s+1
	}
	return list
}

// homes tells where shards live: rising shards, each with the index of its home in Peers, which is sorted. Since is the
// sequence of the newest move that had begun by then, zero if there was none yet or the receiver knows of no moves: a
// home under the fence that moved holds again if Since is not lower than the number of the move.
type homes struct {
	head
	Since   uint32
	Peers   peer.Set
	Entries []home
}

type home struct {
	held
	At uint32 // index in Peers
}

func (h homes) kind() wire.Kind {
	if h.Since > 0 {
		return wire.KindHomesSince
	}
	return wire.KindHomes
}

func (h homes) append(b []byte) []byte {
	b = h.head.append(b)
	if h.Since > 0 {
		b = wire.AppendUvarint(b, uint64(h.Since))
	}
	return appendPlaces(appendPeers(b, h.Peers), h.Entries)
}

func appendPlaces(b []byte, list []home) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	next := route.ShardID(0)
	for _, e := range list {
		b = wire.AppendUvarint(b, uint64(e.Shard-next))
		b = wire.AppendUvarint(appendShort(b, e.Fence), uint64(e.At))
		next = e.Shard + 1
	}
	return b
}

func readHomes(k wire.Kind, r *wire.Reader) message {
	h := homes{head: readHead(r)}
	if k == wire.KindHomesSince {
		if h.Since = readU32(r); r.Err() == nil && h.Since == 0 {
			r.Fail(wire.ErrBadValue)
		}
	}
	h.Peers = readPeers(r, maxPeers)
	h.Entries = readPlaces(r, h.head, len(h.Peers))
	return h
}

// readPlaces reads rising shards, each with the index of one of so many members.
func readPlaces(r *wire.Reader, of head, members int) []home {
	n := r.Count(4, maxEntries)
	list := make([]home, 0, n)
	next := route.ShardID(0)
	for range n {
		e := readHome(r, of, next, members)
		if r.Err() != nil {
			break
		}
		list, next = append(list, e), e.Shard+1
	}
	return list
}

// readHome reads a shard with its fence and the index of one of so many members.
func readHome(r *wire.Reader, of head, next route.ShardID, members int) (e home) {
	e.Shard = readShard(r, next)
	e.Fence = readShort(r, of.Birth)
	e.At = readU32(r)
	if r.Err() == nil && int64(e.At) >= int64(members) {
		r.Fail(wire.ErrBadValue)
	}
	return e
}

func appendPeers(b []byte, ids peer.Set) []byte {
	b = wire.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = peer.AppendID(b, id)
	}
	return b
}

func readPeers(r *wire.Reader, most int) peer.Set {
	n := r.Count(peer.MinIDSize, most)
	ids := make(peer.Set, 0, n)
	for range n {
		id := readPeer(r)
		if r.Err() == nil && len(ids) > 0 && !ids[len(ids)-1].Less(id) {
			r.Fail(wire.ErrBadOrder)
		}
		if r.Err() != nil {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

func readPeer(r *wire.Reader) peer.ID {
	id := peer.ReadID(r)
	if r.Err() == nil && (id.Addr.IsZero() || id.Inc == 0) {
		r.Fail(wire.ErrBadValue)
	}
	return id
}
