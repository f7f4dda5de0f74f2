// Records, marks and writes as bytes: what package store speaks of, in numbers.

package records

import (
	"github.com/kith-io/kith/wire"
)

// Record is one entity as it is stored.
type Record struct {
	ID                       string
	Version                  uint64
	Schema                   uint32
	State, Outbox, Reminders []byte
	Due                      int64 // milliseconds since 1970; counts with Alarm alone
	Alarm                    bool
	Nonce                    [16]byte
}

// Mark is what an entity remembers of one sender.
type Mark struct {
	From   string
	Number uint64
	At     int64 // milliseconds since 1970
	Value  []byte
}

// Write is one record as it is to be, or its deletion. It follows the version before, and is taken as written where the
// record has its version and its nonce. A write that is New makes a record, above the floor of the shard; one that
// deletes raises that to Floor.
type Write struct {
	Record
	New, Delete bool
	Floor       uint64
	Marks       []Mark
}

// leastWrite is the fewest bytes of an encoded write.
const leastWrite = 1 + 1 + 4 + 3 + 1 + 8 + 16 + 1 + 1 + 1 + 1

// AppendRecord appends a record without its ID.
func AppendRecord(b []byte, r *Record) []byte {
	b = wire.AppendU32(wire.AppendUvarint(b, r.Version), r.Schema)
	b = wire.AppendBytes(wire.AppendBytes(wire.AppendBytes(b, r.State), r.Outbox), r.Reminders)
	b = wire.AppendU64(wire.AppendBool(b, r.Alarm), uint64(r.Due))
	return append(b, r.Nonce[:]...)
}

// ReadRecord reads what AppendRecord wrote. Bytes lie in the input.
func ReadRecord(r *wire.Reader) (x Record) {
	x.Version, x.Schema = r.Uvarint(), r.U32()
	x.State, x.Outbox, x.Reminders = r.Bytes(maxValue), r.Bytes(maxValue), r.Bytes(maxValue)
	x.Alarm, x.Due = r.Bool(), int64(r.U64())
	copy(x.Nonce[:], r.Fixed(len(x.Nonce)))
	return x
}

// AppendMark appends a mark without its From.
func AppendMark(b []byte, m *Mark) []byte {
	return wire.AppendBytes(wire.AppendU64(wire.AppendUvarint(b, m.Number), uint64(m.At)), m.Value)
}

// ReadMark reads what AppendMark wrote. Bytes lie in the input.
func ReadMark(r *wire.Reader) Mark {
	return Mark{Number: r.Uvarint(), At: int64(r.U64()), Value: r.Bytes(maxValue)}
}

func appendWrite(b []byte, w *Write) []byte {
	b = AppendRecord(wire.AppendString(b, w.ID), &w.Record)
	b = wire.AppendUvarint(wire.AppendBool(wire.AppendBool(b, w.New), w.Delete), w.Floor)
	b = wire.AppendUvarint(b, uint64(len(w.Marks)))
	for i := range w.Marks {
		b = AppendMark(wire.AppendString(b, w.Marks[i].From), &w.Marks[i])
	}
	return b
}

func readWrite(r *wire.Reader) Write {
	id := r.String(maxID)
	w := Write{Record: ReadRecord(r), New: r.Bool(), Delete: r.Bool(), Floor: r.Uvarint()}
	w.ID = id
	for range r.Count(1+1+8+1, maxMarks) {
		from := r.String(maxFrom)
		m := ReadMark(r)
		m.From = from
		w.Marks = append(w.Marks, m)
	}
	return w
}
