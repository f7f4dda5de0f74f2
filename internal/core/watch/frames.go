// Frames: what nodes say to one another about watches.

package watch

import (
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// maxBody is how many bytes of entries a frame of watches holds; the last of them may go beyond.
const maxBody = 8 << 10

// op is what an entry says.
type op uint8

const (
	watches op = 1 // the sender's entity watches one of the receiver's
	unwatch op = 2 // it does no more
	ended   op = 3 // what became of a watch of the receiver's
)

// item is one entry of a frame.
type item struct {
	op op
	Wanted
	cause    entity.EndCause // of an end; away: the shard does not live at the sender
	fence    route.Fence
	instance uint64
	home     peer.ID // zero: not known
}

// away stands for the cause of a watch that came to a node which does not own the shard.
const away entity.EndCause = 0

// append appends an entry: what it is (1) and the number (8); of a watch the type (4), the shard (4) and the id; of an
// end the cause (1), the fence (16), the instance (varint), and the next home behind 1, or 0.
func (i *item) append(b []byte) []byte {
	b = wire.AppendU64(wire.AppendU8(b, uint8(i.op)), i.Number)
	if i.op != ended {
		return wire.AppendString(wire.AppendU32(wire.AppendU32(b, uint32(i.Type)), uint32(i.Shard)), i.ID)
	}
	b = append(wire.AppendU8(b, uint8(i.cause)), i.fence[:]...)
	b = wire.AppendBool(wire.AppendUvarint(b, i.instance), !i.home.IsZero())
	if i.home.IsZero() {
		return b
	}
	return peer.AppendID(b, i.home)
}

// parse reads the body of a frame of watches.
func parse(body []byte) (list []item, err error) {
	r := wire.NewReader(wire.KindWatches, body)
	for r.Err() == nil && r.Len() > 0 {
		i := item{op: op(r.U8())}
		i.Number = r.U64()
		switch i.op {
		case watches, unwatch:
			i.Type, i.Shard, i.ID = route.TypeID(r.U32()), route.ShardID(r.U32()), r.String(route.MaxIDSize)
			if r.Err() == nil && route.CheckID(i.ID) != nil {
				r.Fail(wire.ErrBadValue)
			}
		case ended:
			i.cause = entity.EndCause(r.U8())
			copy(i.fence[:], r.Fixed(route.FenceSize))
			i.instance = r.Uvarint()
			if r.Bool() {
				i.home = peer.ReadID(&r)
			}
			if int(i.cause) >= entity.EndCauses {
				r.Fail(wire.ErrBadValue)
			}
		default:
			r.Fail(wire.ErrBadValue)
		}
		list = append(list, i)
	}
	return list, r.Done()
}
