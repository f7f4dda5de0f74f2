// Handing over: the bytes in which the owner of a shard gives the next one what it did not work off, and which nodes
// may answer for a shard that went on.

package plane

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// The first byte of what is handed over, and that of each entry.
const (
	leftFormat   uint8 = 1
	statesFormat uint8 = 2 // behind the messages there are states; since wire version 6

	leftTell  uint8 = 1 // an envelope
	leftAsk   uint8 = 2 // the asker, and an envelope
	leftState uint8 = 3 // an entity's id, and its state; no message follows
)

// Unhandled is one message that the owner of a shard has not worked off, as the next one reads it. The envelope is a
// view; its limit is a moment of this node's clock.
type Unhandled struct {
	Asker    peer.ID // zero for a tell
	Envelope wire.Envelope
}

// AppendUnhandled appends one message to what is handed over, in the order in which the next owner handles them; b is
// empty before the first. asker is the node that waits for the answer, zero for a tell. The limit of e is a moment of
// the node's clock, which shows now: what is left of it travels.
func AppendUnhandled(b []byte, asker peer.ID, e *wire.Envelope, now time.Duration) []byte {
	if len(b) == 0 {
		b = append(b, leftFormat)
	}
	if e.Flags&wire.FlagAsk != 0 {
		b = peer.AppendID(append(b, leftAsk), asker)
	} else {
		b = append(b, leftTell)
	}
	b = wire.AppendUvarint(b, uint64(wire.SizeEnvelope(len(e.ID), len(e.Payload))+e.More()))
	at := len(b)
	b = wire.AppendEnvelope(b, e)
	wire.Depart(b[at:], Moment(now), wire.Version)
	return b
}

// AppendState appends the state of an entity to what is handed over, behind all messages; b is empty before the first
// of either. Each entity has one.
func AppendState(b []byte, id string, state []byte) []byte {
	if len(b) == 0 {
		b = append(b, statesFormat)
	}
	b[0] = statesFormat
	b = wire.AppendString(append(b, leftState), id)
	return wire.AppendBytes(b, state)
}

// StateRoom returns how much room there is for states beside messages that take so many bytes of a bound. Messages that
// are beyond it stay where they are, and the states with them: then all of it.
func StateRoom(most, messages int) int {
	if room := most - max(messages, 1); room > 0 {
		return room
	}
	return most
}

// HandedState is the state of one entity, as the next owner reads it. State is a view.
type HandedState struct {
	ID    string
	State []byte
}

// FlagUnhandled gives the envelope of a message that was not worked off its flags, and the limit of an ask, which is
// none when it is zero.
func FlagUnhandled(e *wire.Envelope, ask bool, limit time.Duration) {
	e.Flags = wire.FlagParked
	if ask {
		e.Flags |= wire.FlagAsk
	}
	if ask && limit != 0 {
		e.Flags |= wire.FlagLimit
		e.Limit = MomentAfter(limit)
	}
	if len(e.Headers) > 0 {
		e.Flags |= wire.FlagHeaders
	}
}

// ReadUnhandled reads what was handed over of a shard, one of so many of its type, 0 when a function of the application
// says which id is of which. Each envelope and state is for that shard. It changes the limits in b to moments of this
// node's clock, which shows now, and nothing when it returns an error: a *wire.Error.
func ReadUnhandled(b []byte, typ route.TypeID, shard route.ShardID, shards uint32,
	now time.Duration) ([]Unhandled, []HandedState, error) {
	r := wire.NewReader(wire.KindTransfer, b)
	format := r.U8()
	if format != leftFormat && format != statesFormat && r.Err() == nil {
		r.Fail(wire.ErrBadValue)
	}
	var list []Unhandled
	var frames [][]byte
	var states []HandedState
	for r.Err() == nil && r.Len() > 0 {
		kind := r.U8()
		if kind == leftState && format == statesFormat {
			states = readStates(&r, shard, shards)
			break
		}
		l, frame := readUnhandled(kind, &r)
		e := &l.Envelope
		if r.Err() == nil && (e.Type != uint32(typ) || e.Shard != uint32(shard) ||
			!belongs(string(e.ID), shard, shards)) {
			r.Fail(wire.ErrBadValue)
		}
		list, frames = append(list, l), append(frames, frame)
	}
	if err := r.Done(); err != nil {
		return nil, nil, err
	}
	for i, f := range frames {
		wire.Arrive(f, MomentAfter(now))
		_ = wire.ParseEnvelope(f, &list[i].Envelope) // it did before
	}
	return list, states, nil
}

// belongs reports whether an id may be one of a shard among so many, 0 when a function of the type says which it is of.
func belongs(id string, shard route.ShardID, shards uint32) bool {
	return route.CheckID(id) == nil && (shards == 0 || route.ShardOf(id, shards) == shard)
}

// readStates reads states up to the end, from behind the first byte of the first.
func readStates(r *wire.Reader, shard route.ShardID, shards uint32) (list []HandedState) {
	seen := map[string]bool{}
	for kind := leftState; r.Err() == nil; kind = r.U8() {
		st := HandedState{ID: r.String(route.MaxIDSize)}
		st.State = r.Bytes(r.Len())
		if r.Err() == nil && (kind != leftState || seen[st.ID] || !belongs(st.ID, shard, shards)) {
			r.Fail(wire.ErrBadValue)
		}
		seen[st.ID] = true
		if list = append(list, st); r.Len() == 0 {
			break
		}
	}
	return list
}

// readUnhandled reads one message, behind its first byte.
func readUnhandled(kind uint8, r *wire.Reader) (l Unhandled, frame []byte) {
	switch kind {
	case leftTell:
	case leftAsk:
		if l.Asker = peer.ReadID(r); r.Err() == nil && (l.Asker.Addr.IsZero() || l.Asker.Inc == 0) {
			r.Fail(wire.ErrBadValue)
		}
	default:
		r.Fail(wire.ErrBadValue)
	}
	frame = r.Bytes(r.Len())
	if r.Err() != nil {
		return l, nil
	}
	e := &l.Envelope
	if len(frame) < wire.EnvelopeSize || wire.SizeOf(frame) != len(frame) || wire.KindOf(frame) != wire.KindEnvelope ||
		wire.ParseEnvelope(frame, e) != nil {
		r.Fail(wire.ErrBadValue)
		return l, nil
	}
	const odd = wire.FlagBulk | wire.FlagWait
	if ask := e.Flags&wire.FlagAsk != 0; ask != (kind == leftAsk) || ask != (e.Corr != 0) || e.Flags&odd != 0 ||
		e.Flags&wire.FlagLimit != 0 && !ask {
		r.Fail(wire.ErrBadValue)
	}
	return l, frame
}

// MaxSuccessors is how many moves of one shard a node remembers for asks that were sent before.
const MaxSuccessors = 4

// Successors are the nodes that may answer an ask that was sent to a shard's home, beside that home: those that the
// shard has moved to since, as this node's coordinators have said. An owner knows which nodes' markers to wait for, so
// each that asks knows of the move before anything is handed over. The zero value, and nil: none.
type Successors struct {
	list [MaxSuccessors]successor
	next int
}

type successor struct {
	left route.Fence // of the owner that the shard leaves
	to   peer.ID
}

// Add notes that a shard leaves its owner under a fence, and its next owner.
func (h *Successors) Add(left route.Fence, to peer.ID) {
	for _, e := range h.list {
		if e == (successor{left, to}) {
			return
		}
	}
	h.list[h.next%MaxSuccessors] = successor{left, to}
	h.next++
}

// May reports whether a node may answer an ask that went to the owner under a fence.
func (h *Successors) May(from peer.ID, asked route.Fence) bool {
	if h == nil {
		return false
	}
	for _, e := range h.list {
		if e.to == from && !from.IsZero() && e.left.Compare(asked) >= 0 {
			return true
		}
	}
	return false
}

// IsNextHome reports whether a node is the home of a shard that this node knows, and an ask went to an owner before it,
// under a fence: then that node may answer it, also where this one heard of no move. s is the shard's slot.
func IsNextHome(s *flow.Slot, from peer.ID, asked route.Fence) bool {
	return s.State() >= flow.Remote && !s.IsLocal() && s.Home() == from && s.Fence().Compare(asked) > 0
}

// Bounds of EarlyAnswers.
const (
	MaxEarlyAnswers = 32
	MaxEarlyPayload = 64 << 10 // bytes of one; a longer one is dropped
)

// EarlyAnswers are answers of nodes to which shards have moved, where the node that asked has not heard of the move: a
// new coordinator began it, and it went on meanwhile. They wait until it has. The oldest goes when there are too many.
// The zero value is empty.
type EarlyAnswers struct{ list []EarlyAnswer }

// EarlyAnswer is one.
type EarlyAnswer struct {
	Corr    uint64
	From    peer.ID
	Asked   route.Fence // of the owner that the ask was sent to when the answer came
	Reason  route.Reason
	Payload []byte
}

// Judge is the verdict on an answer that was kept, where what is that on one that comes now: an ask that was sent to
// another owner meanwhile waits for that one's.
func (a *EarlyAnswer) Judge(what Verdict, asked route.Fence) Verdict {
	if a.Asked != asked {
		return Late
	}
	return what
}

// Keep keeps an answer, with a copy of its payload, unless that is longer than MaxEarlyPayload.
func (l *EarlyAnswers) Keep(a *EarlyAnswer) {
	if len(a.Payload) > MaxEarlyPayload {
		return
	}
	kept := *a
	kept.Payload = slices.Clone(a.Payload)
	l.put(kept)
}

func (l *EarlyAnswers) put(a EarlyAnswer) {
	if len(l.list) == MaxEarlyAnswers {
		l.list = slices.Delete(l.list, 0, 1)
	}
	l.list = append(l.list, a)
}

// Add adds those of another list, which gives them away.
func (l *EarlyAnswers) Add(o *EarlyAnswers) {
	for _, a := range o.list {
		l.put(a)
	}
	o.list = nil
}

// Len returns how many are kept.
func (l *EarlyAnswers) Len() int { return len(l.list) }

// Look removes and returns those that the verdict says are due, and forgets those that are late.
func (l *EarlyAnswers) Look(verdict func(a *EarlyAnswer) Verdict) (due []EarlyAnswer) {
	kept := l.list[:0]
	for i := range l.list {
		switch a := &l.list[i]; verdict(a) {
		case Due:
			due = append(due, *a)
		case Foreign:
			kept = append(kept, *a)
		}
	}
	clear(l.list[len(kept):])
	l.list = kept
	return due
}

// HasMoved reports whether the shard of a slot has gone to another home since an ask was sent to one under a fence:
// then the ask went with it, or has been answered.
func HasMoved(s *flow.Slot, asked route.Fence) bool {
	return s.State() >= flow.Local && s.Fence().Compare(asked) > 0
}

// LetGo is the text with which the asks of a handler end at the deadline of its shard's move: the answer may
// come of something that waits for the handler.
const LetGo = "the shard of who asks moves, and waits for its handlers no longer"
