// Instances: one entity as it lives here: its state as far as its handler has come, which may be ahead of the store.

package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/wire"
)

// Tx is one message to one entity, as its handler sees it. It is valid until the handler returns.
type Tx[S any] struct {
	// State is what the entity has, the zero S when nothing is stored. What the handler leaves there is committed.
	State *S

	c         *kith.Context
	deleted   bool
	reminded  bool // the type has Reminded
	reminders reminders
	e         poster
	posted    *post // what it sends; nil: nothing
}

// post returns what the handler sends.
func (t *Tx[S]) post() *post {
	if t.posted == nil {
		t.posted = t.e.posts()
	}
	return t.posted
}

// ID returns the id of the entity.
func (t *Tx[S]) ID() string { return t.c.ID }

// Context returns the context of the call, as kith.Context.Context does.
func (t *Tx[S]) Context() context.Context { return t.c.Context() }

// Now returns the time of day on this node.
func (t *Tx[S]) Now() time.Time { return t.c.Now() }

// Delete takes away what is stored of the entity when the handler returns without an error, whatever State says then.
// The next message finds the zero S.
func (t *Tx[S]) Delete() { t.deleted = true }

// instance is one entity.
type instance[S, M, R any] struct {
	t *Type[S, M, R]
	d *desk

	k      *keeper // nil: nothing is loaded
	head   head
	enc    []byte // the state as the last message left it; nil: no record
	live   *S     // the same, decoded; nil: it is decoded for the next message
	handed []byte // what the owner before has handed over

	reminders    reminders // as the last message left them, and encoded
	remindersEnc []byte
	mind
}

// mind is what an instance knows of its outbox and its marks, as far as its handler has come.
type mind struct {
	out     []*parcel // in order
	mailed  bool      // the shard's mail knows, or is to know, of an outbox
	last    uint64    // the highest number that was given to a parcel
	marks   map[string]store.Mark
	replies int // bytes of their values
	keys    int // marks of keys; -1: not counted yet
}

// keeps keeps a mark in memory.
func (e *mind) keeps(m store.Mark) {
	if e.marks == nil {
		e.marks = map[string]store.Mark{}
	}
	e.replies += len(m.Value) - len(e.marks[m.From].Value)
	e.marks[m.From] = m
}

// ready sees to it that the state is there: handed over, loaded, or as the last message left it.
func (e *instance[S, M, R]) ready(c *kith.Context) *failure {
	k := e.d.keeper(c.Shard, c.Fence)
	if k == nil {
		return fails(codeLost, nil)
	}
	if failed := k.died(); failed != nil {
		return failed
	}
	if e.k == k {
		return nil
	}
	ctx := c.Context()
	prior, failed := k.claims(ctx)
	if failed != nil {
		return failed
	}
	r, taken := e.takes(prior)
	if !taken || r.Schema > e.t.Schema { // a newer build has upgraded it; what is stored may be older
		if r, failed = k.load(ctx, c.ID); failed != nil {
			return failed
		}
	}
	e.handed = nil
	if r == nil {
		r = &store.Record{}
	}
	gone, failed := e.reads(k, r)
	if failed != nil {
		return failed
	}
	l, err := parseReminders(r.Reminders)
	if err != nil {
		return fails(codeRecord, err)
	}
	e.remembers(l, r.Reminders)
	var enc []byte
	if !gone {
		if enc, failed = e.upgrade(r); failed != nil {
			return failed
		}
	}
	e.k, e.head, e.enc, e.live = k, head{base: r.Version}, enc, nil
	return nil
}

// reads takes up the outbox of a record that was read, and forgets all marks: they are read when they are asked for.
func (e *instance[S, M, R]) reads(k *keeper, r *store.Record) (gone bool, failed *failure) {
	gone, out, err := parseOutbox(r.Outbox)
	if err != nil {
		return false, fails(codeRecord, err)
	}
	e.mind = mind{out: out, keys: -1, mailed: len(out) > 0}
	if len(out) == 0 {
		return false, nil
	}
	e.last = out[len(out)-1].number
	if m := e.d.mailOf(k.shard.N, k.fence); m != nil {
		m.set(r.ID, r.Version, out)
	}
	return gone, nil
}

// upgrade returns the state of a record as one of this schema, nil where there is none, and checks that it can be read.
func (e *instance[S, M, R]) upgrade(r *store.Record) (enc []byte, failed *failure) {
	if r.Version == 0 {
		return nil, nil
	}
	enc = r.State
	switch {
	case r.Schema > e.t.Schema:
		return nil, fails(codeRecord, fmt.Errorf("it is of schema %d, this build knows %d", r.Schema, e.t.Schema))
	case r.Schema < e.t.Schema && e.t.Upgrade != nil:
		var err error
		if enc, err = e.t.Upgrade(r.Schema, enc); err != nil {
			return nil, fails(codeRecord, err)
		}
	}
	var s S
	if err := e.t.State.ParseInto(enc, &s); err != nil {
		return nil, fails(codeRecord, err)
	}
	if enc == nil {
		enc = []byte{}
	}
	return enc, nil
}

// state returns the state for the next message.
func (e *instance[S, M, R]) state() (*S, error) {
	if e.live != nil {
		return e.live, nil
	}
	s := new(S)
	if e.enc == nil {
		return s, nil
	}
	// A copy: what a codec leaves of its bytes in the value is the handler's to change, and enc is compared with later.
	return s, e.t.State.ParseInto(bytes.Clone(e.enc), s)
}

// rejects answers a message that leaves nothing. What its handler saw may be ahead of the store, so the answer waits as
// that of a read does.
func (e *instance[S, M, R]) rejects(c *kith.Context, f *failure) *failure {
	e.k.tell(&e.head, answers(c, f.answer()))
	return nil
}

// answers takes the duty to answer an ask.
func answers(c *kith.Context, b []byte) reply {
	if !c.Asked() {
		return reply{}
	}
	return reply{true, c.Detach(), b}
}

// unchanged reports whether a write would leave all as it is.
func (e *instance[S, M, R]) unchanged(w *store.Write) bool {
	if !bytes.Equal(w.Reminders, e.remindersEnc) {
		return false
	}
	if w.Delete || e.enc != nil {
		return w.Delete == (e.enc == nil) && bytes.Equal(w.State, e.enc)
	}
	zero, err := e.t.State.Append(nil, new(S)) // a read of an entity that is not stored makes no record
	return err == nil && bytes.Equal(w.State, zero)
}

// Stop waits until all that the entity has left is known, as long as that may take. What is not then, the store knows:
// the next owner claims the shard first.
func (e *instance[S, M, R]) Stop(c *kith.Context) { e.settles(c) }

// settles reports whether all is known, and stored.
func (e *instance[S, M, R]) settles(c *kith.Context) bool {
	if e.k == nil {
		return false
	}
	e.k.mu.Lock()
	last := e.head.last
	e.k.mu.Unlock()
	return e.k.wait(c.Context(), last) && e.k.died() == nil
}

// handedMost is how many bytes HandOver adds to a state.
const handedMost = 64

// HandOver gives the committed state to the next owner, which need not read it then. Nothing, if it is not known, or
// the record has more than a state.
func (e *instance[S, M, R]) HandOver(c *kith.Context) ([]byte, error) {
	if !e.settles(c) || e.enc == nil || len(e.reminders)+len(e.out) > 0 {
		return nil, nil
	}
	e.k.mu.Lock()
	version := e.head.version()
	e.k.mu.Unlock()
	b := append(make([]byte, 0, len(e.enc)+handedMost), e.k.fence[:]...)
	b = wire.AppendUvarint(wire.AppendUvarint(b, version), uint64(e.t.Schema))
	return append(b, e.enc...), nil
}

// TakeUp keeps what was handed over until the shard is claimed.
func (e *instance[S, M, R]) TakeUp(_ *kith.Context, state []byte) error {
	if len(state) < route.FenceSize {
		return errors.New("durable: a state that was handed over is cut short")
	}
	e.handed = state
	return nil
}

// takes returns what was handed over, if nobody has claimed the shard between its giver and this owner.
func (e *instance[S, M, R]) takes(prior kith.Fence) (r *store.Record, taken bool) {
	if len(e.handed) < route.FenceSize || kith.Fence(e.handed[:route.FenceSize]) != prior {
		return nil, false
	}
	in := wire.NewReader(0, e.handed[route.FenceSize:])
	r = &store.Record{Version: in.Uvarint(), Schema: uint32(in.Uvarint())}
	if in.Err() != nil || r.Version == 0 {
		return nil, false
	}
	r.State = e.handed[route.FenceSize+in.Offset():]
	return r, true
}
