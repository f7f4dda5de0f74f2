// The messages of a move: which members park and mark, how it ended, and what was not worked off on its way to the next
// owner.

package shard

import (
	"slices"

	"github.com/kith-io/kith/internal/core/loads"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// Bounds of a transfer.
const (
	maxPart     = 64 << 10 // bytes in one part
	maxTransfer = 1 << 30  // bytes that a transfer can be said to have
)

// placement lists shards, rising, each with the number of its move, which has the head's term, and a member: in
// MoveShards and MoveAborted the owner, in ShardsMoved the holder of what was not worked off. MoveShards has another
// member, To, the target of the move.
type placement struct {
	Kind wire.Kind
	head
	Peers   peer.Set
	Entries []placed
}

type placed struct {
	home
	Seq uint32
	To  uint32 // index in Peers; only of MoveShards
}

func (p placement) kind() wire.Kind { return p.Kind }

func (p placement) append(b []byte) []byte {
	b = appendPeers(p.head.append(b), p.Peers)
	b = wire.AppendUvarint(b, uint64(len(p.Entries)))
	next := route.ShardID(0)
	for _, e := range p.Entries {
		b = wire.AppendUvarint(b, uint64(e.Shard-next))
		b = wire.AppendUvarint(appendShort(b, e.Fence), uint64(e.At))
		b = wire.AppendUvarint(b, uint64(e.Seq))
		if p.Kind == wire.KindMoveShards {
			b = wire.AppendUvarint(b, uint64(e.To))
		}
		next = e.Shard + 1
	}
	return b
}

func readPlacement(k wire.Kind, r *wire.Reader) message {
	p := placement{Kind: k, head: readHead(r), Peers: readPeers(r, maxPeers)}
	n := r.Count(5, maxEntries)
	p.Entries = make([]placed, 0, n)
	next := route.ShardID(0)
	for range n {
		e := placed{home: readHome(r, p.head, next, len(p.Peers)), Seq: readU32(r)}
		if k == wire.KindMoveShards {
			e.To = readU32(r)
		}
		if r.Err() == nil && (e.Seq == 0 || int64(e.To) >= int64(len(p.Peers))) {
			r.Fail(wire.ErrBadValue)
		}
		if r.Err() != nil {
			break
		}
		p.Entries, next = append(p.Entries, e), e.Shard+1
	}
	return p
}

// end gathers the members of the entries, which are in the order of at, and the targets, in that of to, if there are
// any.
func (p *placement) end(at, to []peer.ID) {
	p.Peers = peer.SetOf(slices.Concat(at, to)...)
	for i := range p.Entries {
		p.Entries[i].At = uint32(p.Peers.Index(at[i]))
		if len(to) > 0 {
			p.Entries[i].To = uint32(p.Peers.Index(to[i]))
		}
	}
}

// hostKept orders shards to be hosted as a HostShards does. Each entry names the fence of the owner before, of which
// what it did not work off may lie with the receiver: that is taken up, and nothing else.
type hostKept struct {
	head
	Entries []resumed
}

// resumed is a shard under the fence of its next owner, and under that of the one before; zero: it has no rest to take.
type resumed struct {
	held
	Rest route.Fence
}

func (hostKept) kind() wire.Kind { return wire.KindHostKept }

func (h hostKept) append(b []byte) []byte {
	b = wire.AppendUvarint(h.head.append(b), uint64(len(h.Entries)))
	next := route.ShardID(0)
	for _, e := range h.Entries {
		b = wire.AppendUvarint(b, uint64(e.Shard-next))
		b = appendShort(appendShort(b, e.Fence), e.Rest)
		next = e.Shard + 1
	}
	return b
}

func readHostKept(r *wire.Reader) message {
	h := hostKept{head: readHead(r)}
	n := r.Count(5, maxEntries)
	h.Entries = make([]resumed, 0, n)
	next := route.ShardID(0)
	for range n {
		e := resumed{held: held{Shard: readShard(r, next)}}
		e.Fence, e.Rest = readShort(r, h.Birth), readShort(r, h.Birth)
		if r.Err() == nil && e.Rest.Compare(e.Fence) >= 0 {
			r.Fail(wire.ErrBadValue)
		}
		if r.Err() != nil {
			break
		}
		h.Entries, next = append(h.Entries, e), e.Shard+1
	}
	return h
}

// fresh lists shards that have no rest to take up.
func fresh(list []held) []resumed {
	all := make([]resumed, len(list))
	for i := range list {
		all[i].held = list[i]
	}
	return all
}

// moveShard notifies the owner of a shard that it moves to Target, and which members' markers to wait for.
type moveShard struct {
	head
	held
	Seq    uint32
	Target peer.ID
	Told   peer.Set
}

func (moveShard) kind() wire.Kind { return wire.KindMoveShard }

func (m moveShard) append(b []byte) []byte {
	b = appendNumbered(m.head.append(b), m.held, m.Seq)
	return appendPeers(peer.AppendID(b, m.Target), m.Told)
}

func readMoveShard(r *wire.Reader) message {
	m := moveShard{head: readHead(r)}
	m.held, m.Seq = readNumbered(r, m.head)
	m.Target, m.Told = readPeer(r), readPeers(r, maxPeers)
	return m
}

func appendNumbered(b []byte, h held, seq uint32) []byte {
	return wire.AppendUvarint(appendShort(wire.AppendUvarint(b, uint64(h.Shard)), h.Fence), uint64(seq))
}

func readNumbered(r *wire.Reader, of head) (h held, seq uint32) {
	h.Shard = readShard(r, 0)
	h.Fence = readShort(r, of.Birth)
	if seq = readU32(r); r.Err() == nil && seq == 0 {
		r.Fail(wire.ErrBadValue)
	}
	return h, seq
}

// transfer brings a part of what the owner of a shard under this fence handed over. What it consists of is the
// runtimes' to know, but that states are among it.
type transfer struct {
	head
	held
	States bool // by a kind of its own
	Seq    uint32
	Total  uint32 // bytes of all parts
	At     uint32 // where this one begins
	Bytes  []byte
}

func (p transfer) kind() wire.Kind {
	if p.States {
		return wire.KindTransferStates
	}
	return wire.KindTransfer
}

func (p transfer) append(b []byte) []byte {
	b = appendNumbered(p.head.append(b), p.held, p.Seq)
	b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(p.Total)), uint64(p.At))
	return wire.AppendBytes(b, p.Bytes)
}

func readTransfer(k wire.Kind, r *wire.Reader) message {
	p := transfer{head: readHead(r), States: k == wire.KindTransferStates}
	p.held, p.Seq = readNumbered(r, p.head)
	p.Total, p.At = readU32(r), readU32(r)
	p.Bytes = append([]byte{}, r.Bytes(maxPart)...)
	end := uint64(p.At) + uint64(len(p.Bytes))
	if r.Err() == nil && (len(p.Bytes) == 0 || p.Total > maxTransfer || end > uint64(p.Total)) {
		r.Fail(wire.ErrBadValue)
	}
	return p
}

// ContentOf returns how many bytes at the end of a control message of this kind are what a shard hands over, which no
// machine looks at; zero of any other message, and of one that is not well-formed.
func ContentOf(k wire.Kind, body []byte) int {
	if k != wire.KindTransfer && k != wire.KindTransferStates {
		return 0
	}
	r := wire.NewReader(k, body)
	h := readHead(&r)
	readNumbered(&r, h)
	readU32(&r)
	readU32(&r)
	b := r.Bytes(maxPart)
	if r.Done() != nil {
		return 0
	}
	return len(b)
}

// transferAck says how many bytes of a transfer are there, or (Refused) that it is not taken.
type transferAck struct {
	head
	held
	Seq     uint32
	Have    uint32
	Refused bool
}

func (transferAck) kind() wire.Kind { return wire.KindTransferAck }

func (a transferAck) append(b []byte) []byte {
	b = appendNumbered(a.head.append(b), a.held, a.Seq)
	return wire.AppendBool(wire.AppendUvarint(b, uint64(a.Have)), a.Refused)
}

func readTransferAck(r *wire.Reader) message {
	a := transferAck{head: readHead(r)}
	a.held, a.Seq = readNumbered(r, a.head)
	a.Have, a.Refused = readU32(r), r.Bool()
	return a
}

// moveCost reports to the coordinator how many bytes the owner of a shard that moves handed over, and how long that
// took, in milliseconds; before the owner confirms its stop.
type moveCost struct {
	head
	held
	Seq   uint32
	Bytes uint32
	Took  uint32
}

func (moveCost) kind() wire.Kind { return wire.KindMoveCost }

func (c moveCost) shard() route.ShardID { return c.Shard }

func (c moveCost) append(b []byte) []byte {
	b = appendNumbered(c.head.append(b), c.held, c.Seq)
	return wire.AppendUvarint(wire.AppendUvarint(b, uint64(c.Bytes)), uint64(c.Took))
}

func readMoveCost(r *wire.Reader) message {
	c := moveCost{head: readHead(r)}
	c.held, c.Seq = readNumbered(r, c.head)
	c.Bytes, c.Took = readU32(r), readU32(r)
	return c
}

// shardLoads tells what the shards of a region cost, by shard, measured over Window, in as many messages as it takes.
type shardLoads struct {
	head
	Window      uint32 // milliseconds
	First, Last bool   // of these messages
	Entries     []loads.Shard
	// Strains says that what waits in mailboxes, and the load of the node, goes with them: KindShardStrains.
	Strains bool
	Node    strategy.NodeLoad
}

func (l shardLoads) kind() wire.Kind {
	if l.Strains {
		return wire.KindShardStrains
	}
	return wire.KindShardLoads
}

func (l shardLoads) shard() route.ShardID {
	if n := len(l.Entries); n > 0 {
		return l.Entries[n-1].Shard
	}
	return 0
}

func (l shardLoads) append(b []byte) []byte {
	b = wire.AppendUvarint(l.head.append(b), uint64(l.Window))
	b = wire.AppendUvarint(wire.AppendBool(wire.AppendBool(b, l.First), l.Last), uint64(len(l.Entries)))
	next := route.ShardID(0)
	for _, e := range l.Entries {
		b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(e.Shard-next)), uint64(e.Load.Entities))
		b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(e.Load.Rate)), uint64(e.Load.HandlerTime))
		next = e.Shard + 1
	}
	if !l.Strains {
		return b
	}
	b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(l.Node.Processor)), uint64(l.Node.Collector))
	b = wire.AppendUvarint(b, uint64(l.Node.Memory))
	for _, e := range l.Entries {
		b = wire.AppendUvarint(b, uint64(e.Load.Queued))
	}
	return b
}

func readShardLoads(k wire.Kind, r *wire.Reader) message {
	l := shardLoads{head: readHead(r), Window: readU32(r), First: r.Bool(), Last: r.Bool(),
		Strains: k == wire.KindShardStrains}
	n := r.Count(4, maxEntries)
	l.Entries = make([]loads.Shard, 0, n)
	next := route.ShardID(0)
	for range n {
		e := loads.Shard{Shard: readShard(r, next)}
		e.Load.Entities, e.Load.Rate, e.Load.HandlerTime = readU32(r), readU32(r), readU32(r)
		if r.Err() != nil {
			break
		}
		l.Entries, next = append(l.Entries, e), e.Shard+1
	}
	if !l.Strains || r.Err() != nil {
		return l
	}
	l.Node = strategy.NodeLoad{Processor: readU16(r), Collector: readU16(r), Memory: readU16(r)}
	for i := range l.Entries {
		l.Entries[i].Load.Queued = readU32(r)
	}
	return l
}
