// Desk: where requests come in, and what is done when their time has come.

package records

import (
	"fmt"
	"slices"

	"github.com/kith-io/kith/peer"
)

// request begins a request, at the owner of its fence.
func (m *desk) request(sh Shard, r *request) error {
	switch {
	case m.found.store == 0:
		return ErrUnfounded
	case sh.Type == "" || len(sh.Type) > maxType:
		return fmt.Errorf("%w: the type of the shard has %d bytes", ErrTooLarge, len(sh.Type))
	case len(r.body) > m.cfg.MaxEntry-64:
		return fmt.Errorf("%w: %d bytes of a commit", ErrTooLarge, len(r.body))
	case m.pending >= m.cfg.MaxRequests || m.bytes+len(r.body) > m.cfg.MaxBytes:
		return ErrBusy
	case r.fence.IsZero() && r.kind != reading:
		return fmt.Errorf("%w: the fence is zero", ErrTooLarge)
	}
	r.shard, r.deadline = sh, m.now+m.cfg.Timeout
	if r.fence.IsZero() {
		m.asksAnybody(r)
	} else {
		i, there := m.find(sh, r.fence)
		if !there && len(m.owners) >= m.cfg.MaxShards {
			return ErrBusy
		}
		if !there {
			o := &owner{shard: sh, fence: r.fence, at: never}
			m.owners = slices.Insert(m.owners, i, o)
		}
		o := m.owners[i]
		if r.kind == reading {
			o.reads = append(o.reads, r)
		} else {
			o.waiting = append(o.waiting, r)
		}
		m.starts(o, r.kind == claiming)
	}
	m.pending++
	m.bytes += len(r.body)
	m.wake(r.deadline)
	return nil
}

// starts has an owner go on, when a request has come.
func (m *desk) starts(o *owner, claim bool) {
	switch {
	case o.phase == rests && o.at == never, o.phase == looks && claim, o.phase == 0 && claim:
		m.claims(o)
	case o.phase == 0:
		o.phase, o.look = looks, m.rng.Uint64()|1
		o.poll = poll{all: m.own.known(o.shard)}
		m.asksAll(o)
		m.retry(o)
	default:
		m.goesOn(o)
	}
}

// tickOwners sends again what was not answered, and ends what has waited for too long.
func (m *desk) tickOwners() {
	for _, o := range slices.Clone(m.owners) {
		m.late(&o.waiting)
		m.late(&o.reads)
		m.lateFlying(o)
		if o.at != never && m.expired(o.at) {
			m.again(o)
		}
		m.readsAgain(o)
		if o.phase == serves {
			gone := m.missing(o.sets.Now, m.cfg.ReplaceAfter)
			if set := replaced(o.shard, o.sets.Now, gone, m.members); !set.Equal(o.sets.Now) {
				r := &request{kind: changing, shard: o.shard, fence: o.fence, set: set, deadline: m.now + m.cfg.Timeout}
				o.waiting = slices.Insert(o.waiting, 0, r)
				m.pending++
				m.goesOn(o)
			}
		}
		if o.idle() && o.phase != serves && o.phase != writes {
			m.drop(o)
		}
	}
	m.anybodyAgain()
}

// again sends again.
func (m *desk) again(o *owner) {
	o.at = never
	o.tries++
	switch o.phase {
	case looks, claims:
		if o.tries >= 2 {
			for _, id := range m.members {
				o.poll.all.Add(id)
			}
		}
		m.asksAll(o)
		m.retry(o)
	case rests:
		m.claims(o)
	case rewrites, writes, serves:
		for i := range o.reps {
			o.reps[i].sent = 0
		}
		if m.feeds(o, true) {
			m.retry(o)
		}
	}
}

// saidAnybody: a replica answers a read that asks for no fence, or a look. It returns a read that has its outcome by
// that, and the newest answer.
func (m *desk) saidAnybody(from peer.ID, x *message) (over *request, newest *message) {
	for _, o := range m.owners {
		if o.phase == looks && o.look == x.number && o.shard == x.shard {
			m.looked(o, from, x)
			return nil, nil
		}
	}
	i := slices.IndexFunc(m.polls, func(r *request) bool { return r.id == x.number && r.shard == x.shard })
	if i < 0 || x.code != yes {
		return nil, nil
	}
	r := m.polls[i]
	was := r.poll.all.Clone()
	r.poll.add(from, true, x)
	best, enough := r.poll.newest()
	if !enough || r.enough != nil && !r.enough(r, &best.sets) {
		for _, id := range r.poll.all {
			if !was.Has(id) {
				m.asksRest(r, peer.SetOf(id))
			}
		}
		return nil, nil
	}
	m.polls = slices.Delete(m.polls, i, i+1)
	m.done(r, Outcome{Answer: best.answer})
	return r, best
}
