// Frames: what goes beside a message to an instance, as its headers, so that the payload is the sender's own.

package partition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// format is the first byte of a frame. A node that reads no such format drops the message, and counts it.
const format = 1

// kind is what a message is. Numbers stand on the wire.
type kind uint8

const (
	isMessage kind = 1 // of a sender
	isInit    kind = 2 // From asks To to make the instance
	isEnd     kind = 3 // a node ends its instance
	isBack    kind = 4 // a message that was refused, to the node of its sender
	isBegin   kind = 5 // a node begins its instance, of hand-offs that buffer
	isGauge   kind = 6 // the node of the first instance asks what the instances of another have handled
	kinds     kind = 7
)

// reason is why a message is refused. Numbers stand on the wire.
type reason uint8

const (
	none        reason = 0
	moving      reason = 1
	moved       reason = 2
	noInstance  reason = 3
	notOpen     reason = 4
	astray      reason = 5
	unreachable reason = 6
	notMade     reason = 7
	reasons     reason = 8
)

var reasonErrs = [reasons]error{moving: ErrMoving, moved: ErrMoved, noInstance: ErrNoInstance, notOpen: ErrNotOpen,
	astray: ErrAstray, unreachable: ErrUnreachable, notMade: ErrNotMade}

// errFrame is wrapped by the error of a frame that no node of this version sends.
var errFrame = errors.New("partition: a frame that nobody here reads")

// stamp is when something stood in the table: the epoch of the partition, and the leader that wrote it.
type stamp struct {
	epoch  uint64
	writer uint32
}

func (s stamp) above(o stamp) bool {
	return s.epoch > o.epoch || s.epoch == o.epoch && s.writer > o.writer
}

func stampOf(p *cluster.Partition) stamp { return stamp{p.Epoch, p.Writer} }

func changeOf(c *cluster.PartitionChange) stamp { return stamp{c.Epoch, c.Writer} }

// frame is what goes beside a message.
type frame struct {
	kind kind
	hops uint8  // how often it was sent on
	why  reason // of isBack
	at   stamp  // of the table by which it was sent last; of isInit: of the change
	from kith.ID
}

func appendFrame(b []byte, f *frame) []byte {
	b = append(b, format, byte(f.kind), f.hops, byte(f.why))
	b = wire.AppendU32(wire.AppendU64(b, f.at.epoch), f.at.writer)
	return peer.AppendID(b, f.from)
}

func parseFrame(b []byte) (f frame, err error) {
	r := wire.NewReader(wire.Kind(0), b)
	if v := r.U8(); r.Err() == nil && v != format {
		return frame{}, fmt.Errorf("%w: format %d", errFrame, v)
	}
	f = frame{kind: kind(r.U8()), hops: r.U8(), why: reason(r.U8()), at: stamp{r.U64(), r.U32()}, from: peer.ReadID(&r)}
	if err := r.Done(); err != nil {
		return frame{}, fmt.Errorf("%w: %w", errFrame, err)
	}
	if f.kind == 0 || f.kind >= kinds || f.why >= reasons || f.hops > maxHops {
		return frame{}, fmt.Errorf("%w: kind %d, reason %d, %d times sent on", errFrame, f.kind, f.why, f.hops)
	}
	return f, nil
}

// earID is the id of the entity that takes, in a shard, what is for the instance of a slot.
func earID(shard route.ShardID, slot int, path string) string {
	b := make([]byte, 0, 8+len(path))
	b = append(strconv.AppendUint(b, uint64(shard), 10), '.')
	b = append(strconv.AppendUint(b, uint64(slot), 10), '.')
	return string(append(b, path...))
}

// parseEar is the other way round.
func parseEar(id string) (shard route.ShardID, slot int, path string, ok bool) {
	first, rest, _ := strings.Cut(id, ".")
	second, path, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(first, 10, 32)
	slot, err2 := strconv.Atoi(second)
	return route.ShardID(n), slot, path, err == nil && err2 == nil && slot >= 0 && slot < cluster.MaxInstances
}

// refusalOf says of an ask's error that nothing was handled, where a node has refused it.
func refusalOf(err error) error {
	if refusal(err) {
		return route.NotRun(err)
	}
	return err
}

// refusal reports whether an error is that of a message which was refused.
func refusal(err error) bool {
	return slices.ContainsFunc(reasonErrs[1:], func(why error) bool { return errors.Is(err, why) })
}

// plain is the error of an instance's handler. Where its own message to another instance was refused only the text is
// left: the asker of this one must not take it for a refusal.
func plain(err error) error {
	if refusal(err) {
		return errors.New(err.Error())
	}
	return err
}
