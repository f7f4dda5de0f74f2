// Dispatch: what has messages delivered, and what becomes of each delivery.

package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
)

// hosts sends the messages of a shard until ctx ends.
func (d *desk) hosts(ctx context.Context, s kith.ShardID, f kith.Fence) {
	l := d.ledger(s, f)
	if l == nil {
		return
	}
	l.hosts(true)
	for ctx.Err() == nil {
		next := l.turn(d.ground.Now())
		d.ground.Wait(ctx, max(next.Sub(d.ground.Now()), 0), l.bell)
	}
	l.hosts(false)
}

// hosts says whether messages are sent from here.
func (l *ledger) hosts(here bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosted = here; here {
		l.starts()
	} else if !l.working {
		l.leaves()
	}
}

// turn sends all that is due and returns when the next is.
func (l *ledger) turn(now time.Time) time.Time {
	l.mu.Lock()
	if !l.ready || l.d.stopped.Load() != nil {
		l.mu.Unlock()
		return now.Add(time.Hour)
	}
	out, next := l.lanes.pick(now, l.d.window)
	era := l.era
	notes := make([]note, len(out))
	for i, s := range out {
		notes[i] = note{queue: l.d.name, shard: l.shard.N, fence: l.fence, number: s.number, before: s.before,
			try: s.tries + s.rests + 1, again: s.may}
	}
	l.mu.Unlock()
	for i, s := range out {
		l.ship(era, s.message, &notes[i])
	}
	return next
}

// ship sends one.
func (l *ledger) ship(era int, m *message, n *note) {
	over := func(answer []byte, err error) {
		v := verdict{err: err}
		if err == nil {
			v.outcome = outcomeOf(answer)
		}
		l.arrived(era, m, v)
	}
	if err := l.d.to.AskFunc(n.append(nil), l.d.ack, m.to, m.body, over); err != nil {
		over(nil, err)
	}
}

// verdict is what became of one delivery: an outcome, or an error.
type verdict struct {
	outcome outcome
	err     error
}

// isRefusal reports whether an error says that the consumer had the message and refused it.
func isRefusal(err error) bool {
	for _, is := range []error{kith.ErrHandler, kith.ErrHandlerNamed, kith.ErrPanic, kith.ErrNoReply, kith.ErrBadPayload,
		kith.ErrTooLarge} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// arrived says what became of a delivery.
func (l *ledger) arrived(era int, m *message, v verdict) {
	defer l.d.ground.Ring(l.bell)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.era != era {
		return
	}
	l.lanes.under--
	m.under = false
	switch {
	case v.err != nil && isRefusal(v.err):
		l.d.refused.Add(1)
		m.tries++
		m.reason = cut(v.err.Error())
		l.again(m, m.tries, m.tries >= l.d.tries)
	case v.err != nil:
		l.d.unheard.Add(1)
		m.may = m.may || kith.MayHaveRun(v.err)
		m.rests++
		m.reason = cut(v.err.Error())
		l.again(m, m.rests, false)
	case v.outcome == outcomeGap:
		l.d.gaps.Add(1)
		m.gap = true
		m.next = l.d.ground.Now().Add(l.d.retryFirst)
		l.lanes.look(m)
	case v.outcome == outcomeStale:
		m.rests++
		l.again(m, m.rests, false)
	default:
		if v.outcome == outcomeHad {
			l.d.had.Add(1)
		}
		l.d.acked.Add(1)
		l.lanes.remove(m)
		l.puts(&op{kind: opAck, m: m})
	}
}

// again delivers a message again after a rest, or makes it a dead letter.
func (l *ledger) again(m *message, failures int, over bool) {
	now := l.d.ground.Now()
	m.next = now.Add(rest(l.d.ground, l.d.retryFirst, l.d.retryMost, failures-1))
	l.lanes.look(m)
	why := "refused"
	if age := time.Duration(l.d.ground.Wall().UnixMilli()-m.made) * time.Millisecond; !over && age >= l.d.age {
		over, why = true, "not acknowledged in time"
	}
	switch {
	case !over:
	case l.graves >= l.d.dead:
		l.d.deadFull.Add(1)
		m.next = now.Add(l.d.retryMost)
	default:
		l.graves++
		m.buried = true
		m.reason = cut(fmt.Sprintf("%s: %s", why, m.reason))
		l.puts(&op{kind: opBury, m: m})
	}
}
