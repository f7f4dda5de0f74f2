// Reminders: messages of an entity to itself, for later: stored with its state, handled by its owner of that time.

package durable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/wire"
)

// Bounds of reminders. They count against the size of the record, too.
const (
	MaxReminders    = 64      // of one entity
	MaxReminderName = 255     // bytes of a name, at least one
	MaxReminderBody = 4 << 10 // bytes of a body
	// DefaultReminderRate is how many reminders of one shard are begun in a second, at most.
	DefaultReminderRate = 100
	mostReminderRate    = 1 << 20
)

// What Tx.Remind returns. Test with errors.Is.
var (
	// ErrRemindersFull: the entity has MaxReminders, none of them of this name.
	ErrRemindersFull = errors.New("durable: the entity has as many reminders as it may have")
	// ErrBadReminder: a bound is exceeded, the time is none, or the type has no Reminded.
	ErrBadReminder = errors.New("durable: no reminder can be like this")
)

// A reminder with a handler that fails is stored again, for later.
const (
	againFirst = time.Second // it doubles
	againMost  = time.Minute
)

// reminder is one of an entity.
type reminder struct {
	at    int64 // in milliseconds since 1970
	name  string
	body  []byte
	tries uint64 // of its handler that failed
}

// reminders are those of one entity, the first one first. They are not changed: with and without return others.
type reminders []reminder

// order orders them.
func (r *reminder) order(o *reminder) int {
	return cmp.Or(cmp.Compare(r.at, o.at), cmp.Compare(r.name, o.name))
}

// named returns the place of a name, -1 for none.
func (l reminders) named(name string) int {
	return slices.IndexFunc(l, func(r reminder) bool { return r.name == name })
}

// without returns the list without a name.
func (l reminders) without(name string) reminders {
	i := l.named(name)
	if i < 0 {
		return l
	}
	return slices.Concat(l[:i], l[i+1:])
}

// with returns the list with one more, in the place of one of its name.
func (l reminders) with(r reminder) reminders {
	l = slices.Clone(l.without(r.name))
	i, _ := slices.BinarySearchFunc(l, r, func(a, b reminder) int { return a.order(&b) })
	return slices.Insert(l, i, r)
}

// due returns when the first one is due, zero for none.
func (l reminders) due() time.Time {
	if len(l) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(l[0].at)
}

// remindersForm is the form of encoded reminders.
const remindersForm = 1

// encode returns them as they are stored: nil for none.
func (l reminders) encode() (b []byte) {
	if len(l) == 0 {
		return nil
	}
	b = wire.AppendUvarint(wire.AppendU8(nil, remindersForm), uint64(len(l)))
	for _, r := range l {
		b = wire.AppendString(wire.AppendU64(b, uint64(r.at)), r.name)
		b = wire.AppendBytes(wire.AppendUvarint(b, r.tries), r.body)
	}
	return b
}

// parseReminders is the inverse. What it returns points into b.
func parseReminders(b []byte) (l reminders, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	in := wire.NewReader(0, b)
	if form := in.U8(); form != remindersForm {
		return nil, fmt.Errorf("reminders of form %d, this build knows %d", form, remindersForm)
	}
	for range in.Count(8+1+1+1+1, MaxReminders) {
		r := reminder{at: int64(in.U64()), name: in.String(MaxReminderName), tries: in.Uvarint(),
			body: in.Bytes(MaxReminderBody)}
		if n := len(l); in.Err() == nil && (r.name == "" || l.named(r.name) >= 0 || n > 0 && l[n-1].order(&r) >= 0) {
			return nil, fmt.Errorf("reminders out of order at %.64q", r.name)
		}
		l = append(l, r)
	}
	if err := in.Done(); err != nil {
		return nil, fmt.Errorf("reminders: %w", err)
	}
	return l, nil
}

// Remind has Type.Reminded called for this entity at a time, or soon after, with a name of its own choice and a body,
// which is copied. It is stored with what the handler leaves, and takes the place of the entity's one of that name.
// A time that is over is soon. It is never early by the clock of the entity's owner; times are rounded up to
// milliseconds. Errors, after which nothing has changed: ErrRemindersFull, ErrBadReminder.
func (t *Tx[S]) Remind(name string, at time.Time, body []byte) error {
	switch {
	case !t.reminded:
		return fmt.Errorf("%w: Type.Reminded is nil", ErrBadReminder)
	case name == "" || len(name) > MaxReminderName:
		return fmt.Errorf("%w: the name has %d bytes, must have 1 to %d", ErrBadReminder, len(name), MaxReminderName)
	case len(body) > MaxReminderBody:
		return fmt.Errorf("%w: the body of %.64q has %d bytes, must have at most %d", ErrBadReminder, name, len(body),
			MaxReminderBody)
	case at.IsZero() || at.Year() > 9999:
		return fmt.Errorf("%w: the time of %.64q is %v", ErrBadReminder, name, at)
	case len(t.reminders) >= MaxReminders && t.reminders.named(name) < 0:
		return fmt.Errorf("%w: %d", ErrRemindersFull, MaxReminders)
	}
	t.reminders = t.reminders.with(reminder{at: max(at.Add(time.Millisecond-1).UnixMilli(), 1), name: name,
		body: bytes.Clone(body)})
	return nil
}

// Forget takes the entity's reminder of a name away, with what the handler leaves, and reports whether there was one.
// The one being handled is none any more.
func (t *Tx[S]) Forget(name string) bool {
	was := len(t.reminders)
	t.reminders = t.reminders.without(name)
	return len(t.reminders) < was
}

// Reminder returns when the entity's reminder of a name is due, false if there is none.
func (t *Tx[S]) Reminder(name string) (at time.Time, ok bool) {
	i := t.reminders.named(name)
	if i < 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(t.reminders[i].at), true
}

// wakeMark are the headers of what wakes an entity with a reminder that may be due. It says no more: so a forged one
// causes nothing that would not happen otherwise.
const wakeMark = "\x00kith reminder\x01"

// wakes reports whether a message only wakes its entity.
func wakes(c *kith.Context) bool { return string(c.Headers()) == wakeMark }

// remembers keeps what the entity will be reminded of.
func (e *instance[S, M, R]) remembers(l reminders, encoded []byte) {
	e.reminders, e.remindersEnc = l, encoded
}

// remind handles the first reminder of the entity, if it is due.
func (e *instance[S, M, R]) remind(c *kith.Context) *failure {
	now := e.d.now().UnixMilli()
	if e.t.Reminded == nil || len(e.reminders) == 0 || e.reminders[0].at > now {
		e.k.tell(&e.head, answers(c, e.reminders.answer()))
		return nil
	}
	s, err := e.state()
	if err != nil {
		return fails(codeRecord, err)
	}
	e.live = nil
	r := e.reminders[0]
	tx := e.begins(c, s)
	tx.reminders = e.reminders.without(r.name)
	over := false
	defer func() {
		if !over { // an error, or a panic, which goes on
			e.d.remindersFailed.Add(1)
			e.remindAgain(c, r, now)
		}
	}()
	if err := e.t.Reminded(tx, r.name, bytes.Clone(r.body)); err != nil {
		return fails(codeRejected, fmt.Errorf("reminder %.64q: %w", r.name, err))
	}
	w, failed := e.encodes(tx)
	if failed != nil {
		return failed
	}
	x := &leave{}
	x.sends(tx.posted)
	if failed = e.leaves(c, tx, w, x, tx.reminders.answer()); failed != nil && failed.code == codeTooLarge {
		return failed
	}
	over = true
	e.d.reminded.Add(1)
	return failed
}

// remindAgain stores a reminder again for later after its handler has failed, with the state as it was.
func (e *instance[S, M, R]) remindAgain(c *kith.Context, r reminder, now int64) {
	r.at, r.tries = now+min(againFirst<<min(r.tries, 10), againMost).Milliseconds(), r.tries+1
	l := e.reminders.with(r)
	w := e.same(c)
	w.Reminders, w.Due = l.encode(), l.due()
	e.fills(&w, e.out)
	if w.Size() > store.MaxBytes { // Upgrade made it so: it is as it was, and the agenda rests
		return
	}
	e.puts(&w, e.out, l, answers(c, l.answer()))
}

// answer tells the agenda of the shard when the next reminder is due: nothing more for none.
func (l reminders) answer() []byte {
	b := []byte{byte(codeOK)}
	if len(l) == 0 {
		return b
	}
	return wire.AppendU64(b, uint64(l[0].at))
}
