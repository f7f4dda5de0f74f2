// Once: messages that have their effect on an entity once, by the marks that are committed with its state.

package durable

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/store"
)

const (
	keyPrefix   = "\x00"  // From of a key's mark begins so; that of a sender begins with the name of its type
	digest      = 16      // bytes of a mark's Value that tell the message of a key from another one
	mostInMind  = 4096    // marks of an entity in memory
	mostReplies = 1 << 20 // bytes of their values, but for the last one
)

// Receive handles one message.
func (e *instance[S, M, R]) Receive(c *kith.Context, payload []byte) error {
	if failed := e.receive(c, payload); failed != nil {
		if c.Asked() {
			_ = c.Reply(failed.answer()) // the asker is gone, or its connection
		}
		return failed
	}
	return nil
}

// receive is Receive; what it returns has had no effect.
func (e *instance[S, M, R]) receive(c *kith.Context, payload []byte) *failure {
	if err := e.d.stopped.Load(); err != nil {
		return fails(codeWentBack, nil)
	}
	h, wakes := c.Headers(), wakes(c)
	if len(h) > 0 && !wakes {
		if n, is, err := parseNote(h); err != nil {
			return fails(codeBadPayload, err)
		} else if is {
			return e.once(c, &n, payload)
		}
	}
	var m M
	if !wakes {
		if err := e.t.Message.ParseInto(payload, &m); err != nil {
			return fails(codeBadPayload, err)
		}
	}
	if failed := e.ready(c); failed != nil {
		return failed
	}
	if failed := e.k.enters(c); failed != nil {
		return failed
	}
	if wakes {
		return e.remind(c)
	}
	return e.handle(c, &m, &leave{}, nil)
}

// once handles a message that goes with a note.
func (e *instance[S, M, R]) once(c *kith.Context, n *note, payload []byte) *failure {
	if failed := e.ready(c); failed != nil {
		return failed
	}
	if n.kind == kindWake {
		return e.wakes(c)
	}
	if failed := e.k.enters(c); failed != nil {
		return failed
	}
	switch n.kind {
	case kindParcel, kindVoid:
		return e.takesParcel(c, n, payload)
	case kindKey:
		return e.takesKey(c, n, payload)
	}
	return e.settle(c)
}

// wakes tells the shard's mail of the outbox, where it began when the entity lived already.
func (e *instance[S, M, R]) wakes(c *kith.Context) *failure {
	if !e.settles(c) {
		return fails(codeBusy, nil)
	}
	if m := e.d.mailOf(e.k.shard.N, e.k.fence); m != nil {
		e.k.mu.Lock()
		version := e.head.version()
		e.k.mu.Unlock()
		m.set(c.ID, version, e.out)
	}
	e.k.tell(&e.head, answers(c, []byte{byte(codeOK)}))
	return nil
}

// takesParcel handles a parcel, or makes it void, unless it was before or may not be yet.
func (e *instance[S, M, R]) takesParcel(c *kith.Context, n *note, payload []byte) *failure {
	seen, failed := e.seen(c, n.from)
	if failed != nil {
		return failed
	}
	void := len(seen.Value) > 0
	switch {
	case n.number < seen.Number, n.number == seen.Number && !void:
		e.k.tell(&e.head, answers(c, outcomeHandled.tells(nil)))
		return nil
	case n.number == seen.Number:
		e.k.tell(&e.head, answers(c, outcomeVoid.tells(seen.Value[1:])))
		return nil
	case n.before > seen.Number, n.before == seen.Number && n.before > 0 && void:
		e.k.tell(&e.head, answers(c, outcomeGap.tells(nil)))
		return nil
	}
	age := time.Duration(c.Now().UnixMilli()-n.made) * time.Millisecond
	if age >= giveUpAfter(e.t.SeenFor) {
		e.k.tell(&e.head, answers(c, outcomeOld.tells(nil)))
		return nil
	}
	x := &leave{mark: store.Mark{From: n.from, Number: n.number, At: c.Now()}, void: true}
	if n.kind == kindVoid {
		return e.voids(c, x, "")
	}
	var m M
	if err := e.t.Message.ParseInto(payload, &m); err != nil {
		return fails(codeBadPayload, err)
	}
	return e.handle(c, &m, x, outcomeHandled.tells(nil))
}

// handle calls the handler, and has what it left committed, with x. answer nil: it is the handler's.
func (e *instance[S, M, R]) handle(c *kith.Context, m *M, x *leave, answer []byte) *failure {
	s, err := e.state()
	if err != nil {
		return fails(codeRecord, err)
	}
	e.live = nil // unless all goes well: a panic leaves nothing of the message
	tx := e.begins(c, s)
	r, err := e.t.Handle(tx, m)
	if err == nil && answer == nil {
		answer, err = e.t.Reply.Append([]byte{byte(codeOK)}, &r)
	}
	if err != nil {
		x.void = x.void && !ended(c.Context(), err)
		return e.refuses(c, x, fails(codeRejected, err))
	}
	if x.key {
		if len(answer) > MaxKeptReply {
			return e.rejects(c, fails(codeTooLarge, fmt.Errorf("a reply of %d bytes, must be at most %d", len(answer),
				MaxKeptReply)))
		}
		x.mark.Value = append(x.mark.Value, answer...)
	}
	w, failed := e.encodes(tx)
	if failed == nil {
		x.sends(tx.posted)
		failed = e.leaves(c, tx, w, x, answer)
	}
	if failed != nil && meanings[failed.code].maybe { // it is the handler's, as it was before
		return e.refuses(c, x, failed)
	}
	return failed
}

// voids commits that a parcel was not handled and will not be. text is why, where its handler has refused it; it begins
// with a byte that says so.
func (e *instance[S, M, R]) voids(c *kith.Context, x *leave, text string) *failure {
	x.sent, x.mark.Value = nil, append([]byte{byte(outcomeVoid)}, text...)
	return e.leaves(c, nil, e.same(c), x, outcomeVoid.tells([]byte(text)))
}

// ended reports whether a handler has failed since its context had ended, which says nothing of the message.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Cause(ctx)) || errors.Is(err, kith.ErrTimeout))
}

// refuses answers a message that leaves nothing. A parcel is void then, if it would be refused again.
func (e *instance[S, M, R]) refuses(c *kith.Context, x *leave, f *failure) *failure {
	again := f.code != codeRejected && f.code != codeTooLarge && f.code != codeBadSend
	if x.void && x.mark.Value == nil && !again {
		return e.voids(c, x, refused+f.text)
	}
	return e.rejects(c, f)
}

// takesKey handles an ask with a key, or gives the answer that it has had.
func (e *instance[S, M, R]) takesKey(c *kith.Context, n *note, payload []byte) *failure {
	from, now := keyPrefix+n.from, c.Now()
	seen, failed := e.seen(c, from)
	if failed != nil {
		return failed
	}
	sum := sha256.Sum256(payload)
	fresh := seen.Number == 0
	if !fresh && now.Sub(seen.At) < e.t.SeenFor && len(seen.Value) > digest {
		if !bytes.Equal(seen.Value[:digest], sum[:digest]) {
			return e.rejects(c, fails(codeKeyUsed, nil))
		}
		e.k.tell(&e.head, answers(c, bytes.Clone(seen.Value[digest:])))
		return nil
	}
	if fresh {
		if failed := e.countsKeys(c); failed != nil {
			return failed
		}
	}
	var m M
	if err := e.t.Message.ParseInto(payload, &m); err != nil {
		return fails(codeBadPayload, err)
	}
	mark := store.Mark{From: from, Number: max(uint64(now.UnixMilli()), seen.Number+1), At: now,
		Value: bytes.Clone(sum[:digest])}
	return e.handle(c, &m, &leave{mark: mark, key: true}, nil)
}

// countsKeys says whether the entity may remember one more key.
func (e *instance[S, M, R]) countsKeys(c *kith.Context) *failure {
	if e.keys >= 0 && e.keys < MaxKeys {
		return nil
	}
	if !e.k.wait(c.Context(), e.head.last) { // what is counted is stored
		return fails(codeBusy, nil)
	}
	ctx, cancel := e.d.ground.Within(c.Context(), e.d.patience)
	defer cancel()
	n, err := e.d.store.CountMarks(ctx, e.k.shard, e.k.fence, c.ID, keyPrefix)
	if err != nil {
		return e.k.judge(err)
	}
	if e.keys = n; n >= MaxKeys {
		return fails(codeKeysFull, nil)
	}
	return nil
}

// seen returns the mark of a sender or a key, as the last message has left it; Number 0: there is none.
func (e *instance[S, M, R]) seen(c *kith.Context, from string) (store.Mark, *failure) {
	if m, ok := e.marks[from]; ok {
		return m, nil
	}
	if len(e.marks) >= mostInMind || e.replies >= mostReplies { // what is stored is forgotten here
		if !e.k.wait(c.Context(), e.head.last) {
			return store.Mark{}, fails(codeBusy, nil)
		}
		clear(e.marks)
		e.replies = 0
	}
	ctx, cancel := e.d.ground.Within(c.Context(), e.d.patience)
	defer cancel()
	list, err := e.d.store.Marks(ctx, e.k.shard, e.k.fence, c.ID, from)
	if err != nil {
		return store.Mark{}, e.k.judge(err)
	}
	m := store.Mark{From: from}
	if len(list) > 0 {
		m = list[0]
	}
	e.keeps(m)
	return m, nil
}
