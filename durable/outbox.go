// Outboxes: what a message leaves is committed with what it sends, and what has arrived leaves with a later commit.

package durable

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/store"
)

// leave is what a message leaves beside a state.
type leave struct {
	sent []*parcel
	gone map[uint64]bool // parcels that are settled
	mark store.Mark      // Number 0: none
	key  bool            // the mark is that of a key: it keeps the answer
	void bool            // a message that the handler refuses is void: the mark says so
}

// posts returns what a handler begins to send with.
func (e *instance[S, M, R]) posts() *post {
	p := &post{office: e.d.office, count: len(e.out), room: true}
	for _, a := range e.out {
		p.bytes += a.size()
	}
	if m := e.d.mailOf(e.k.shard.N, e.k.fence); m != nil {
		p.room = m.room()
	}
	return p
}

// begins returns what a handler gets.
func (e *instance[S, M, R]) begins(c *kith.Context, s *S) *Tx[S] {
	return &Tx[S]{State: s, c: c, reminded: e.t.Reminded != nil, reminders: e.reminders, e: e}
}

// same returns the write of a record that stays as it is.
func (e *instance[S, M, R]) same(c *kith.Context) store.Write {
	return store.Write{Record: store.Record{ID: c.ID, Schema: e.t.Schema, State: e.enc, Reminders: e.remindersEnc,
		Due: e.reminders.due()}, Delete: e.enc == nil}
}

// leaves commits what a message leaves: a record, and x. tx is what its handler had, nil for none. answer is sent then.
// A failure: nothing of the message is left.
func (e *instance[S, M, R]) leaves(c *kith.Context, tx *Tx[S], w store.Write, x *leave, answer []byte) *failure {
	s, l := (*S)(nil), e.reminders
	if tx != nil {
		s, l = tx.State, tx.reminders
	}
	same := e.unchanged(&w)
	if x.mark.Number == 0 && len(x.sent)+len(x.gone) == 0 && same {
		if !w.Delete && s != nil {
			e.live = s
		}
		e.k.tell(&e.head, answers(c, answer))
		return nil
	}
	if e.enc == nil && same { // a zero state makes no record
		w.Delete, w.State = true, nil
	}
	if failed := e.k.died(); failed != nil {
		return failed
	}
	out := e.outbox(c, x)
	if x.mark.Number != 0 {
		w.Marks = []store.Mark{x.mark}
	}
	e.fills(&w, out)
	if size := w.Size(); size > store.MaxBytes {
		return fails(codeTooLarge, fmt.Errorf("%d bytes of record, must be at most %d", size, store.MaxBytes))
	}
	if !e.puts(&w, out, l, answers(c, answer)) {
		return nil
	}
	if e.enc != nil {
		e.live = s
	}
	if x.mark.Number != 0 {
		if x.key && e.marks[x.mark.From].Number == 0 {
			e.keys++
		}
		e.keeps(x.mark)
	}
	return nil
}

// fills puts an outbox into a write. One that deletes keeps the record for its sake.
func (e *instance[S, M, R]) fills(w *store.Write, out []*parcel) {
	if w.Outbox = appendOutbox(nil, w.Delete, out); len(out) > 0 {
		w.Delete = false
	}
}

// puts writes a record, with an outbox and reminders that it has already, and takes it as that of the entity. False:
// nothing is written any more, and the asker has its answer.
func (e *instance[S, M, R]) puts(w *store.Write, out []*parcel, l reminders, ask reply) bool {
	mailed := e.mailed || len(out) > 0
	if failed := e.k.put(&e.head, *w, mailing{out, mailed}, ask); failed != nil {
		ask.b = failed.answer()
		ask.leaves()
		return false
	}
	e.out, e.mailed, e.live, e.enc = out, mailed, nil, w.State
	e.remembers(l, w.Reminders)
	return true
}

// outbox returns what is in the outbox behind a message: what was there and is not known to be handled, or settled, and
// what it sends, which gets its numbers.
func (e *instance[S, M, R]) outbox(c *kith.Context, x *leave) (out []*parcel) {
	if len(e.out)+len(x.sent) == 0 {
		return nil
	}
	var known map[uint64]*sending
	if m := e.d.mailOf(e.k.shard.N, e.k.fence); m != nil && len(e.out) > 0 {
		known = m.ended(c.ID)
	}
	for _, p := range e.out {
		if at := known[p.number]; !x.gone[p.number] && (at == nil || at.ended != outcomeHandled) {
			out = append(out, p)
		}
	}
	e.last = max(e.last, e.k.below(&e.head))
	for _, p := range x.sent {
		e.last++
		p.number = e.last
		out = append(out, p)
	}
	return out
}

// sends takes what a handler has sent.
func (x *leave) sends(p *post) {
	if p != nil {
		x.sent = p.sent
	}
}

// encodes returns what a handler has left.
func (e *instance[S, M, R]) encodes(tx *Tx[S]) (w store.Write, failed *failure) {
	if tx.posted != nil && tx.posted.failed != nil {
		return w, tx.posted.failed
	}
	w = store.Write{Record: store.Record{ID: tx.c.ID, Schema: e.t.Schema}, Delete: tx.deleted}
	if tx.deleted {
		tx.reminders = nil
		return w, nil
	}
	var err error
	if w.State, err = e.t.State.Append([]byte{}, tx.State); err != nil {
		return w, fails(codeRejected, err)
	}
	if len(w.State) > MaxState {
		return w, fails(codeTooLarge, fmt.Errorf("%d bytes, must be at most %d", len(w.State), MaxState))
	}
	w.Reminders, w.Due = tx.reminders.encode(), tx.reminders.due()
	if size := w.Size(); size > store.MaxBytes {
		return w, fails(codeTooLarge, fmt.Errorf("%d bytes of record, must be at most %d", size, store.MaxBytes))
	}
	return w, nil
}

// settle has parcels leave the outbox of which something is known. What was not delivered is reported, in the same
// commit.
func (e *instance[S, M, R]) settle(c *kith.Context) *failure {
	ok := []byte{byte(codeOK)}
	x := &leave{gone: map[uint64]bool{}}
	var known map[uint64]*sending
	if m := e.d.mailOf(e.k.shard.N, e.k.fence); m != nil {
		known = m.ended(c.ID)
	}
	var lost []*sending
	for _, p := range e.out {
		if at := known[p.number]; at != nil {
			x.gone[p.number] = true
			if at.ended != outcomeHandled {
				lost = append(lost, at)
			}
		}
	}
	if len(lost) == 0 || e.t.Undelivered == nil {
		e.d.undelivered.Add(uint64(len(lost)))
		return e.leaves(c, nil, e.same(c), x, ok)
	}
	s, err := e.state()
	if err != nil {
		return fails(codeRecord, err)
	}
	e.live = nil
	tx := e.begins(c, s)
	tx.posted = e.posts()
	tx.posted.room = true // for what is sent in the place of what leaves
	for _, p := range e.out {
		if x.gone[p.number] {
			tx.posted.count--
			tx.posted.bytes -= p.size()
		}
	}
	for _, p := range lost {
		u := &Undelivered{Type: p.typ, ID: p.id, Body: bytes.Clone(p.body), MayHaveRun: p.ended != outcomeVoid,
			Err: ErrExpired, office: e.d.office}
		if text, ok := strings.CutPrefix(p.text, refused); ok && p.ended == outcomeVoid {
			u.Err = fmt.Errorf("%w: %s", ErrRejected, text)
		}
		e.t.Undelivered(tx, u)
	}
	w, failed := e.encodes(tx)
	if failed != nil {
		return failed
	}
	x.sends(tx.posted)
	e.d.undelivered.Add(uint64(len(lost)))
	return e.leaves(c, tx, w, x, ok)
}
