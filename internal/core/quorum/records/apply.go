// Apply: what an entry does to the state of its shard, the same on each replica.

package records

import (
	"fmt"

	"github.com/kith-io/kith/wire"
)

// state is that of one shard, as it is read and as an entry changes it.
type state struct {
	*view
	base string  // of its keys
	made changes // the topmost layer of view
}

// stateAt returns the state under base with a new layer over it.
func stateAt(v *view, base string) *state {
	made := changes{}
	return &state{v.with(made), base, made}
}

func (s *state) set(part string, value []byte) { s.made[s.base+part] = value }

func (s *state) floor() uint64 {
	b := s.get(s.base + floorPart)
	if b == nil {
		return 0
	}
	r := wire.NewReader(0, b)
	floor := r.U64()
	s.fail(r.Done())
	return floor
}

// record returns the record of an id.
func (s *state) record(id string) (Record, bool) {
	b := s.get(s.base + recordPart + id)
	if b == nil {
		return Record{}, false
	}
	r := wire.NewReader(0, b)
	x := ReadRecord(&r)
	x.ID = id
	s.fail(r.Done())
	return x, true
}

// mark returns a mark of an entity.
func (s *state) mark(id, from string) (Mark, bool) {
	b := s.get(s.base + markPart + paired(id, from))
	if b == nil {
		return Mark{}, false
	}
	r := wire.NewReader(0, b)
	x := ReadMark(&r)
	x.From = from
	s.fail(r.Done())
	return x, true
}

// fail keeps the first error.
func (s *state) fail(err error) {
	if s.failed == nil && err != nil {
		s.failed = fmt.Errorf("records: a damaged value: %w", err)
	}
}

// apply returns what an entry changes, and what became of its commands.
func apply(v *view, base string, body []byte) (changes, []result, error) {
	s := stateAt(v, base)
	e, err := readEntry(body)
	if err != nil {
		return nil, nil, err
	}
	var all []result
	for i := range e.commands {
		switch c := &e.commands[i]; c.kind {
		case commitWrites:
			all = append(all, s.commits(c.writes))
		case forgetMarks:
			all = append(all, result{count: s.forgets(c.by, c.most)})
		}
	}
	return s.made, all, s.failed
}

// commits writes all or none.
func (s *state) commits(writes []Write) result {
	floor := s.floor()
	for i := range writes {
		if !s.follows(&writes[i], floor) {
			return result{version: true}
		}
	}
	for i := range writes {
		w := &writes[i]
		s.remember(w)
		s.forgetRecord(w.ID)
		if w.Delete {
			floor = max(floor, w.Version, w.Floor)
			continue
		}
		s.set(recordPart+w.ID, AppendRecord(nil, &w.Record))
		if w.Alarm {
			s.set(alarmPart+ordered(w.Due)+w.ID, []byte{1})
		}
		if len(w.Outbox) > 0 {
			s.set(unsentPart+w.ID, []byte{1})
		}
	}
	if floor != s.floor() {
		s.set(floorPart, wire.AppendU64(nil, floor))
	}
	return result{}
}

// follows reports whether a write may take place, or has.
func (s *state) follows(w *Write, floor uint64) bool {
	is, ok := s.record(w.ID)
	switch {
	case w.Delete:
		return !ok || is.Version == w.Version-1
	case ok && is.Version == w.Version && is.Nonce == w.Nonce:
		return true
	case w.New || w.Version == 1:
		return !ok && w.Version > floor
	}
	return ok && is.Version == w.Version-1
}

// forgetRecord takes a record away, and its places in the other parts.
func (s *state) forgetRecord(id string) {
	is, ok := s.record(id)
	if !ok {
		return
	}
	s.set(recordPart+id, nil)
	if is.Alarm {
		s.set(alarmPart+ordered(is.Due)+id, nil)
	}
	if len(is.Outbox) > 0 {
		s.set(unsentPart+id, nil)
	}
}

// remember writes the marks of a write, but for those that are there with as high a number.
func (s *state) remember(w *Write) {
	for i := range w.Marks {
		m := &w.Marks[i]
		key := paired(w.ID, m.From)
		is, ok := s.mark(w.ID, m.From)
		if ok && is.Number >= m.Number {
			continue
		}
		if ok {
			s.set(oldPart+ordered(is.At)+key, nil)
		}
		s.set(markPart+key, AppendMark(nil, m))
		s.set(oldPart+ordered(m.At)+key, []byte{1})
	}
}

// forgets takes marks away that are older than by, the oldest first.
func (s *state) forgets(by int64, most int) int {
	prefix := s.base + oldPart
	var keys []string
	s.each(prefix, "", func(key string, _ []byte) bool {
		if len(keys) == most || unordered(key[len(prefix):][:8]) >= by {
			return false
		}
		keys = append(keys, key[len(prefix):])
		return true
	})
	for _, key := range keys {
		s.set(oldPart+key, nil)
		s.set(markPart+key[8:], nil)
	}
	return len(keys)
}
