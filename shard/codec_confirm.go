// The messages by which a suspended node is confirmed: the question and its answer.

package shard

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// confirmOwner asks whether the sender still is a member, and, with a term, the owner of these shards under these
// fences. A term of zero is the question of membership alone, of no type and without shards.
type confirmOwner struct {
	head
	Nonce   uint64
	Entries []held
}

func (confirmOwner) kind() wire.Kind { return wire.KindConfirmOwner }

func (c confirmOwner) append(b []byte) []byte {
	return appendHeld(wire.AppendU64(c.head.append(b), c.Nonce), c.Entries)
}

func readConfirmOwner(r *wire.Reader) message {
	c := confirmOwner{head: readLooseHead(r), Nonce: r.U64()}
	c.Entries = readHeld(r, c.Birth)
	if r.Err() == nil && (c.Nonce == 0 || (c.Term == 0) != (len(c.Entries) == 0)) {
		r.Fail(wire.ErrBadValue)
	}
	return c
}

// ownerConfirmed answers with the question's head and nonce: yes, but for the shards of Lost. Firm says that the one
// who answers knows how the cluster stands. First and Last are the first and last shard of the question.
type ownerConfirmed struct {
	head
	Nonce       uint64
	Firm        bool
	First, Last route.ShardID
	Lost        []held
}

func (ownerConfirmed) kind() wire.Kind { return wire.KindConfirmAck }

func (c ownerConfirmed) append(b []byte) []byte {
	b = wire.AppendU64(c.head.append(b), c.Nonce)
	b = wire.AppendBool(b, c.Firm)
	b = wire.AppendUvarint(b, uint64(c.First))
	b = wire.AppendUvarint(b, uint64(c.Last-c.First))
	return appendHeld(b, c.Lost)
}

func readOwnerConfirmed(r *wire.Reader) message {
	c := ownerConfirmed{head: readLooseHead(r), Nonce: r.U64(), Firm: r.Bool()}
	c.First = readShard(r, 0)
	c.Last = readShard(r, c.First)
	c.Lost = readHeld(r, c.Birth)
	if r.Err() != nil {
		return c
	}
	n := len(c.Lost)
	if c.Nonce == 0 || c.Term == 0 && (n > 0 || c.Last > 0) ||
		n > 0 && (c.Lost[0].Shard < c.First || c.Lost[n-1].Shard > c.Last) {
		r.Fail(wire.ErrBadValue)
	}
	return c
}

// readLooseHead reads a head whose term may be zero if the type is.
func readLooseHead(r *wire.Reader) head {
	h := head{Birth: r.U64(), Type: route.TypeID(r.U32()), Term: r.U32()}
	if r.Err() == nil && (h.Birth == 0 || h.Term == 0 && h.Type != 0) {
		r.Fail(wire.ErrBadValue)
	}
	return h
}
