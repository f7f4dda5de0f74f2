// Package survey asks all members what they have of a type: shards, entities, moves under way. Answers are pictures of
// one moment each, and nothing is decided by them.
package survey

import (
	"math"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Bounds of one answer.
const (
	MaxShards = 4096 // of its list; a question from a later shard on gets the next ones
	MaxMoves  = 1024
)

// Question asks a node what it has of a type, its shards from one on.
type Question struct {
	Nonce uint64 // which question it is
	Type  route.TypeID
	From  route.ShardID
}

// Answer says what a node has of a type.
type Answer struct {
	Question
	Known    bool   // the type is registered there
	Shards   uint32 // of the type, as it is registered there
	Hosted   uint32 // shards that live there
	Entities uint64 // in all of them
	List     []Shard
	More     bool // there are shards behind those of List

	Term  uint32 // of the term over the type there; zero when it does not coordinate
	Moves []shard.MoveState
}

// Shard is one that lives there.
type Shard struct {
	ID       route.ShardID
	Stopping bool
	Entities uint32
}

const (
	minShard = 3
	minMove  = 1 + 2*peer.MinIDSize + 4 + 4 + 1 + 1
)

// AppendQuestion appends the body of a KindSurvey frame: nonce (8), type (4), shard (varint).
func AppendQuestion(b []byte, q Question) []byte {
	return wire.AppendUvarint(wire.AppendU32(wire.AppendU64(b, q.Nonce), uint32(q.Type)), uint64(q.From))
}

func readQuestion(r *wire.Reader) Question {
	return Question{Nonce: r.U64(), Type: route.TypeID(r.U32()), From: readShard(r, 0)}
}

// ParseQuestion reads what AppendQuestion appended. Errors: those of wire.Reader.
func ParseQuestion(body []byte) (Question, error) {
	r := wire.NewReader(wire.KindSurvey, body)
	q := readQuestion(&r)
	return q, r.Done()
}

// Heading reads which question a body is, or answers, without the rest of it.
func Heading(k wire.Kind, body []byte) (q Question, ok bool) {
	r := wire.NewReader(k, body)
	q = Question{Nonce: r.U64(), Type: route.TypeID(r.U32())}
	return q, r.Err() == nil
}

// readShard reads a shard as the distance from another one.
func readShard(r *wire.Reader, from uint64) route.ShardID {
	v := r.Uvarint()
	if from+v < from || from+v >= route.MaxShards {
		r.Fail(wire.ErrBadValue)
		return 0
	}
	return route.ShardID(from + v)
}

// AppendAnswer appends the body of a KindSurveyAnswer frame: the question; then known (bool), shards (4), hosted (4),
// entities (varint), the list's length (varint) and for each shard, rising, its distance from the one before (varint),
// stopping (bool), entities (varint); more (bool), term (4), the number of moves (varint) and for each its shard
// (varint), from, to, term (4), sequence (4), phase (1), age in milliseconds (varint).
func AppendAnswer(b []byte, a *Answer) []byte {
	b = wire.AppendBool(AppendQuestion(b, a.Question), a.Known)
	b = wire.AppendUvarint(wire.AppendU32(wire.AppendU32(b, a.Shards), a.Hosted), a.Entities)
	b = wire.AppendUvarint(b, uint64(len(a.List)))
	at := uint64(a.From)
	for _, s := range a.List {
		b = wire.AppendBool(wire.AppendUvarint(b, uint64(s.ID)-at), s.Stopping)
		b = wire.AppendUvarint(b, uint64(s.Entities))
		at = uint64(s.ID) + 1
	}
	b = wire.AppendU32(wire.AppendBool(b, a.More), a.Term)
	b = wire.AppendUvarint(b, uint64(len(a.Moves)))
	for _, m := range a.Moves {
		b = peer.AppendID(peer.AppendID(wire.AppendUvarint(b, uint64(m.Shard)), m.From), m.To)
		b = wire.AppendU8(wire.AppendU32(wire.AppendU32(b, m.Number.Term), m.Number.Seq), uint8(m.Phase))
		b = wire.AppendUvarint(b, uint64(max(m.Age, 0)/time.Millisecond))
	}
	return b
}

// ParseAnswer reads what AppendAnswer appended. Errors: those of wire.Reader.
func ParseAnswer(body []byte) (*Answer, error) {
	r := wire.NewReader(wire.KindSurveyAnswer, body)
	a := &Answer{Question: readQuestion(&r), Known: r.Bool(), Shards: r.U32(), Hosted: r.U32(), Entities: r.Uvarint()}
	at := uint64(a.From)
	for range r.Count(minShard, MaxShards) {
		s := Shard{ID: readShard(&r, at), Stopping: r.Bool()}
		n := r.Uvarint()
		if n > math.MaxUint32 {
			r.Fail(wire.ErrBadValue)
		}
		if r.Err() != nil {
			break
		}
		s.Entities, at = uint32(n), uint64(s.ID)+1
		a.List = append(a.List, s)
	}
	a.More, a.Term = r.Bool(), r.U32()
	for range r.Count(minMove, MaxMoves) {
		m := shard.MoveState{Shard: readShard(&r, 0), From: peer.ReadID(&r), To: peer.ReadID(&r)}
		m.Number = shard.Number{Term: r.U32(), Seq: r.U32()}
		m.Phase = shard.MovePhase(r.U8())
		ms := r.Uvarint()
		if ms > math.MaxInt64/uint64(time.Millisecond) {
			r.Fail(wire.ErrBadValue)
		}
		if r.Err() != nil {
			break
		}
		m.Age = time.Duration(ms) * time.Millisecond
		a.Moves = append(a.Moves, m)
	}
	if r.Err() == nil && (!a.Known && len(a.List) > 0 || a.More && len(a.List) == 0) {
		r.Fail(wire.ErrBadValue)
	}
	return a, r.Done()
}
