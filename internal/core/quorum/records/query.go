// Queries: what the state of a shard is asked, and the answers.

package records

import (
	"strings"

	"github.com/kith-io/kith/wire"
)

// Ask is what a Query asks.
type Ask uint8

const (
	// AskFloor asks for the floor.
	AskFloor Ask = 1
	// AskRecords asks for the records of IDs: as many as fit into an answer, Done says of how many ids.
	AskRecords Ask = 2
	// AskMarks asks for the marks of ID from IDs, as AskRecords.
	AskMarks Ask = 3
	// AskCount asks how many marks of ID are from one that begins with From.
	AskCount Ask = 4
	// AskDue asks for alarms up to By, behind the one at After of ID; at most Most, and More says that there are others.
	AskDue Ask = 5
	// AskUnsent asks for ids of records with an outbox, behind ID, as AskDue.
	AskUnsent Ask = 6
)

// Query is a question. Which fields count depends on Ask.
type Query struct {
	Ask   Ask
	ID    string
	From  string
	IDs   []string
	By    int64
	After int64
	First bool // of AskDue: from the first on
	Most  int
}

// Alarm is a record that is due, in milliseconds since 1970.
type Alarm struct {
	ID string
	At int64
}

// Answer is what a state says.
type Answer struct {
	Floor   uint64
	Count   int
	Done    int
	More    bool
	Records []Record
	Marks   []Mark
	Alarms  []Alarm
	IDs     []string
}

const maxMost = 1000

func appendStrings(b []byte, list []string) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = wire.AppendString(b, s)
	}
	return b
}

func readStrings(r *wire.Reader, most, size int) (list []string) {
	for range r.Count(1, most) {
		list = append(list, r.String(size))
	}
	return list
}

func appendQuery(b []byte, q *Query) []byte {
	b = wire.AppendString(wire.AppendString(append(b, byte(q.Ask)), q.ID), q.From)
	b = wire.AppendU64(wire.AppendU64(appendStrings(b, q.IDs), uint64(q.By)), uint64(q.After))
	return wire.AppendUvarint(wire.AppendBool(b, q.First), uint64(q.Most))
}

func readQuery(r *wire.Reader) Query {
	q := Query{Ask: Ask(r.U8()), ID: r.String(maxID), From: r.String(maxFrom)}
	q.IDs = readStrings(r, maxWrites, maxFrom)
	q.By, q.After, q.First, q.Most = int64(r.U64()), int64(r.U64()), r.Bool(), r.Count(0, maxMost)
	if q.Ask > AskUnsent {
		r.Fail(wire.ErrBadValue)
	}
	return q
}

// answer answers a query within about so many bytes.
func (s *state) answer(q *Query, room int) (a Answer) {
	switch q.Ask {
	case AskFloor:
		a.Floor = s.floor()
	case AskRecords:
		for _, id := range q.IDs {
			if is, ok := s.record(id); ok {
				if room -= 64 + len(id) + len(is.State) + len(is.Outbox) + len(is.Reminders); room < 0 && a.Done > 0 {
					break
				}
				a.Records = append(a.Records, is)
			}
			a.Done++
		}
	case AskMarks:
		for _, from := range q.IDs {
			if is, ok := s.mark(q.ID, from); ok {
				if room -= 32 + len(from) + len(is.Value); room < 0 && a.Done > 0 {
					break
				}
				a.Marks = append(a.Marks, is)
			}
			a.Done++
		}
	case AskCount:
		s.each(s.base+markPart+paired(q.ID, q.From), "", func(string, []byte) bool {
			a.Count++
			return true
		})
	case AskDue:
		s.due(q, &a)
	case AskUnsent:
		s.unsent(q, &a)
	}
	return a
}

func (s *state) due(q *Query, a *Answer) {
	prefix, after := s.base+alarmPart, ""
	if !q.First {
		after = prefix + ordered(q.After) + q.ID
	}
	s.each(prefix, after, func(key string, _ []byte) bool {
		at := unordered(key[len(prefix):][:8])
		if at > q.By {
			return false
		}
		if a.More = len(a.Alarms) == q.Most; !a.More {
			a.Alarms = append(a.Alarms, Alarm{strings.Clone(key[len(prefix)+8:]), at})
		}
		return !a.More
	})
}

func (s *state) unsent(q *Query, a *Answer) {
	prefix := s.base + unsentPart
	s.each(prefix, prefix+q.ID, func(key string, _ []byte) bool {
		if a.More = len(a.IDs) == q.Most; !a.More {
			a.IDs = append(a.IDs, strings.Clone(key[len(prefix):]))
		}
		return !a.More
	})
}

func appendAnswer(b []byte, a *Answer) []byte {
	b = wire.AppendUvarint(wire.AppendU64(b, a.Floor), uint64(a.Count))
	b = wire.AppendBool(wire.AppendUvarint(b, uint64(a.Done)), a.More)
	b = wire.AppendUvarint(b, uint64(len(a.Records)))
	for i := range a.Records {
		b = AppendRecord(wire.AppendString(b, a.Records[i].ID), &a.Records[i])
	}
	b = wire.AppendUvarint(b, uint64(len(a.Marks)))
	for i := range a.Marks {
		b = AppendMark(wire.AppendString(b, a.Marks[i].From), &a.Marks[i])
	}
	b = wire.AppendUvarint(b, uint64(len(a.Alarms)))
	for _, x := range a.Alarms {
		b = wire.AppendU64(wire.AppendString(b, x.ID), uint64(x.At))
	}
	return appendStrings(b, a.IDs)
}

func readAnswer(r *wire.Reader) (a Answer) {
	a.Floor, a.Count, a.Done, a.More = r.U64(), r.Count(0, 1<<40), r.Count(0, maxWrites), r.Bool()
	for range r.Count(32, maxWrites) {
		id := r.String(maxID)
		x := ReadRecord(r)
		x.ID = id
		a.Records = append(a.Records, x)
	}
	for range r.Count(11, maxWrites) {
		from := r.String(maxFrom)
		x := ReadMark(r)
		x.From = from
		a.Marks = append(a.Marks, x)
	}
	for range r.Count(9, maxMost) {
		a.Alarms = append(a.Alarms, Alarm{r.String(maxID), int64(r.U64())})
	}
	a.IDs = readStrings(r, maxMost, maxID)
	return a
}
