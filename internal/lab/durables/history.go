// The history: what the store has carried out, as it watches, and what must hold of each commit at once.

package durables

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// rowKey names a record.
type rowKey struct {
	store.Shard
	id string
}

// row is a record as it is stored.
type row struct {
	there, full    bool   // full: it has a state, and is not there for an outbox alone
	version, most  uint64 // most: of all times
	nonce          [16]byte
	schema         uint32
	outbox, alarms bool
}

// life is what an account was from one time that it began without a record to its deletion.
type life struct {
	gen     int
	balance int64
	list    []entry
	at      []time.Duration // when each entry was stored
	waits   []int
	filed   bool // a vault has it
}

// book is what the laws that were broken are written into, and what was counted.
type book struct {
	w      *world.World
	found  []check.Violation
	counts Counts
}

// violate notes a broken law.
func (s *book) violate(rule, format string, args ...any) {
	v := check.Violation{At: s.w.Now, Rule: rule, Text: fmt.Sprintf(format, args...)}
	s.note("VIOLATION %s: %s", rule, v.Text)
	if len(s.found) < mostViolations {
		s.found = append(s.found, v)
	}
}

// note writes into the trace.
func (s *book) note(format string, args ...any) { s.w.Note(0, fmt.Sprintf(format, args...)) }

// history is all that was stored.
type history struct {
	*book
	shards  uint32
	claimed map[store.Shard]route.Fence
	rows    map[rowKey]*row
	lives   map[string][]*life // of each account, in order
	stand   map[line]bool      // what stands in any of them
	filed   []archive
	has     map[string]int // archives in each vault
	sealed  bool           // the store went back: nothing is judged any more
}

func newHistory(b *book, shards uint32) *history {
	return &history{book: b, shards: shards, claimed: map[store.Shard]route.Fence{}, rows: map[rowKey]*row{},
		lives: map[string][]*life{}, stand: map[line]bool{}, has: map[string]int{}}
}

// unsettled says what is still to be sent or to come, "" for nothing.
func (h *history) unsettled() string {
	for _, at := range slices.SortedFunc(maps.Keys(h.rows), func(a, b rowKey) int {
		return compare(a, b)
	}) {
		switch r := h.rows[at]; {
		case r.outbox:
			return fmt.Sprintf("%s %s has an outbox", at.Type, at.id)
		case r.alarms:
			return fmt.Sprintf("%s %s has reminders", at.Type, at.id)
		}
	}
	return ""
}

func compare(a, b rowKey) int {
	switch {
	case a.Type+a.id < b.Type+b.id:
		return -1
	case a.Type+a.id > b.Type+b.id:
		return 1
	}
	return 0
}

// sees gets each claim and commit.
func (s *history) sees(c store.Call, said error) {
	if s.sealed {
		return
	}
	if errors.Is(said, store.ErrFenced) {
		s.counts.Fenced++
	}
	if said != nil {
		return
	}
	if c.Do == "claim" {
		s.counts.Claims++
		if c.Fence.Compare(s.claimed[c.Shard]) > 0 {
			s.claimed[c.Shard] = c.Fence
		}
		return
	}
	s.counts.Commits++
	if c.Fence.Compare(s.claimed[c.Shard]) < 0 {
		s.violate("stale", "a commit of %v under %v took place behind the claim of %v", c.Shard, c.Fence, s.claimed[c.Shard])
	}
	for i := range c.Writes {
		s.writesRow(c.Shard, &c.Writes[i])
	}
}

// writesRow takes one write.
func (s *history) writesRow(at store.Shard, w *store.Write) {
	key := rowKey{at, w.ID}
	r := s.rows[key]
	if r == nil {
		r = &row{}
		s.rows[key] = r
	}
	if r.there && !w.Delete && w.Version == r.version && w.Nonce == r.nonce || w.Delete && !r.there {
		return // again
	}
	s.counts.Writes++
	if w.Version <= r.most {
		s.violate("versions", "%s %s: version %d is written behind %d", at.Type, w.ID, w.Version, r.most)
	}
	full := !w.Delete && len(w.State) > 0
	if held := r.full && full; held && w.Schema < r.schema {
		s.violate("schema", "%s %s: schema %d is written behind %d", at.Type, w.ID, w.Schema, r.schema)
	} else if held && w.Schema > r.schema {
		s.counts.Upgraded++
	}
	r.most, r.version, r.nonce, r.there = max(r.most, w.Version), w.Version, w.Nonce, !w.Delete
	r.schema, r.full = w.Schema, full
	r.outbox, r.alarms = r.there && len(w.Outbox) > 0, r.there && !w.Due.IsZero()
	if !full {
		return
	}
	if at.Type == string(vaults) {
		s.files(w)
		return
	}
	var a account
	if err := (build{w.Schema}).ParseInto(w.State, &a); err != nil {
		s.violate("strange", "%s is stored as %q: %v", w.ID, w.State, err)
		return
	}
	s.note("%s is stored as %d: life %d, %d entries", w.ID, w.Version, a.Gen, len(a.List))
	s.grows(w.ID, &a)
}

// grows demands that what is stored of an account goes on from what was.
func (s *history) grows(id string, a *account) {
	all := s.lives[id]
	var last *life
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	switch {
	case last == nil || a.Gen > last.gen:
		last = &life{gen: a.Gen}
		s.lives[id] = append(all, last)
	case a.Gen < last.gen:
		s.violate("lost", "%s is in its life %d again, behind %d", id, a.Gen, last.gen)
		return
	case len(a.List) < len(last.list) || !slices.Equal(a.List[:len(last.list)], last.list):
		s.violate("lost", "%s had %v, and now has %v", id, last.list, a.List)
		return
	}
	for _, e := range a.List[len(last.list):] {
		last.at = append(last.at, s.w.Now)
		if key := (line{e.Op, e.N, e.Do}); s.stand[key] {
			s.violate("twice", "%s has %v again", id, e)
		} else {
			s.stand[key] = true
		}
	}
	last.list, last.balance, last.waits = a.List, a.Balance, a.Waits
}

// files takes what a vault has.
func (s *history) files(w *store.Write) {
	var v vault
	if err := json.Unmarshal(w.State, &v); err != nil || len(v.List) < s.has[w.ID] {
		s.violate("lost", "%s had %d archives, and now has %d: %v", w.ID, s.has[w.ID], len(v.List), err)
		return
	}
	for i := range v.List[s.has[w.ID]:] {
		s.file(&v.List[s.has[w.ID]+i])
	}
	s.has[w.ID] = len(v.List)
}

// file takes one archive: it is the whole life of an account, from which nothing that was stored is missing.
func (s *history) file(a *archive) {
	s.counts.Deleted++
	s.filed = append(s.filed, *a)
	i, known := slices.BinarySearchFunc(s.lives[a.ID], a.Gen, func(l *life, gen int) int { return l.gen - gen })
	if !known {
		s.lives[a.ID] = slices.Insert(s.lives[a.ID], i, &life{gen: a.Gen})
	}
	l := s.lives[a.ID][i]
	switch {
	case l.filed:
		s.violate("twice", "life %d of %s is archived again", a.Gen, a.ID)
		return
	case len(a.List) < len(l.list) || !slices.Equal(a.List[:len(l.list)], l.list):
		s.violate("lost", "%s had %v when it was deleted, and %v is archived", a.ID, l.list, a.List)
		return
	}
	l.filed, l.balance, l.list, l.waits = true, a.Balance, a.List, a.Waits
	for len(l.at) < len(l.list) {
		l.at = append(l.at, -1) // it was deleted with the same commit
	}
}

// shows judges what an asker is shown: it is all stored, or deleted with a commit that is.
func (s *history) shows(o *op, r *account) {
	if r.Gen == 0 {
		return
	}
	if n := len(r.List); o.do != read && (n == 0 || r.List[n-1].Op != o.n) {
		s.violate("strange", "%v is told as done, with a list that ends otherwise: %v", o, r.List)
	}
	all := s.lives[o.id]
	i, known := slices.BinarySearchFunc(all, r.Gen, func(l *life, gen int) int { return l.gen - gen })
	over := !known && len(all) > i || known && i < len(all)-1 // what is not there is archived, or the judge says so
	gone := !s.stands(o.id)
	if known && extends(all[i].list, r.List) || over || gone {
		return
	}
	s.violate("uncommitted", "%v is shown %v, which nobody has stored", o, r.List)
}

// extends reports whether a list begins with another one.
func extends(list, first []entry) bool {
	return len(list) >= len(first) && slices.Equal(list[:len(first)], first)
}

// stands reports whether an account has a state now.
func (s *history) stands(id string) bool {
	n := route.ShardOf(id, s.shards)
	r := s.rows[rowKey{store.Shard{Type: string(accounts), N: n}, id}]
	return r != nil && r.full
}
