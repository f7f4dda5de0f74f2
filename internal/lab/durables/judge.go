// The judge: what must hold of the whole history when all is quiet.

package durables

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// place is where an entry stands in the whole history of its account.
type place struct {
	id    string
	at    int // over all lives
	life  *life
	entry entry
	when  time.Duration // it was stored; negative: with its deletion
}

// line names what may stand in the history one time.
type line struct {
	op, n int
	do    verb
}

// judge judges the history of a run.
type judge struct {
	*run
	all map[line][]place
}

// judges judges all of it.
func (s *judge) judges() {
	s.stops()
	for _, id := range slices.Sorted(maps.Keys(s.lives)) {
		s.judgesLives(id)
	}
	s.judgesOps()
	s.judgesSends()
	s.judgesReminders()
	s.judgesOrder()
	s.judgesEnd()
}

// stops demands that no node that runs has stopped a type.
func (s *run) stops() {
	for i := range s.nodes {
		if p := s.w.Hosts[i].Process; p != nil && p.Alive {
			if err := errors.Join(s.accounts.On(i).Err(), s.vaults.On(i).Err()); err != nil {
				s.violate("stopped", "n%d has stopped a type: %v", i+1, err)
			}
		}
	}
}

// judgesLives collects the entries of an account.
func (s *judge) judgesLives(id string) {
	at := 0
	for i, l := range s.lives[id] {
		sum := int64(0)
		for k, e := range l.list {
			sum += e.Amount
			key := line{e.Op, e.N, e.Do}
			if key.do == forget {
				key.n = 0
			}
			s.all[key] = append(s.all[key], place{id, at, l, e, l.at[k]})
			at++
		}
		if sum != l.balance {
			s.violate("sum", "%s has %d in its life %d, and its list makes %d", id, l.balance, l.gen, sum)
		}
		if !l.filed && i < len(s.lives[id])-1 {
			s.violate("lost", "%s begins anew behind its life %d, which nobody has archived: %v", id, l.gen, l.list)
		}
	}
	if n := len(s.lives[id]); n > 0 && !s.lives[id][n-1].filed && !s.stands(id) {
		s.violate("lost", "%s is gone, and nobody has archived it", id)
	}
}

// judgesOps holds what was asked against what is there.
func (s *judge) judgesOps() {
	for _, o := range s.ops {
		there := s.all[line{o.n, 0, o.do}]
		switch {
		case o.acked >= 0:
			s.counts.Acked++
		case !o.refused:
			s.counts.Open++
		}
		own := o.do != transfer && o.refused
		switch n := len(there); {
		case o.do == read:
		case n > 1:
			s.violate("twice", "%v stands there %d times", o, n)
		case n == 1 && there[0].id != o.id:
			s.violate("strange", "%v stands in %s", o, there[0].id)
		case n == 0 && o.acked >= 0:
			s.violate("lost", "%v was told as done, and is not there", o)
		case n == 1 && o.acked < 0 && (!o.maybe || own):
			s.violate("refused", "%v was told as not done, and is there: %v", o, o.why)
		case n == 1 && o.how != once && o.stumbled:
			s.violate("refused", "%v is there, and its handler has panicked", o)
		}
	}
}

// judgesSends: each message between accounts has its effect once, or is reported as not delivered.
func (s *judge) judgesSends() {
	for _, key := range slices.SortedFunc(maps.Keys(s.all), compareLines) {
		from := s.all[key]
		if key.do == credit && len(s.all[line{key.op, key.n, transfer}])+len(s.all[line{key.op, key.n, fired}]) == 0 {
			s.violate("phantom", "%s has a credit of %v, which nobody has given", from[0].id, s.ops[key.op])
		}
		if key.do != transfer && (key.do != fired || from[0].entry.Amount == 0) {
			continue
		}
		s.counts.Sent++
		to := s.all[line{key.op, key.n, credit}]
		back, maybe := s.all[line{key.op, key.n, refunded}], s.all[line{key.op, key.n, unsure}]
		s.counts.Delivered, s.counts.Refunded = s.counts.Delivered+min(len(to), 1), s.counts.Refunded+min(len(back), 1)
		s.counts.Undelivered += min(len(maybe), 1)
		switch o := s.ops[key.op]; {
		case len(to) > 1 || len(back) > 1 || len(maybe) > 1:
			s.violate("twice", "%v/%d: %d credits, %d refunds, told as not known %d times", o, key.n, len(to), len(back),
				len(maybe))
		case len(to)+len(back)+len(maybe) == 0:
			s.violate("lost", "%v/%d has left %s and never arrived", o, key.n, from[0].id)
		case len(back) == 1 && len(to)+len(maybe) > 0:
			s.violate("refunded", "%v/%d is refunded, and has arrived", o, key.n)
		case len(maybe) == 1 && !s.forgetful():
			s.violate("undelivered", "%v/%d was given up", o, key.n)
		case len(to) == 1 && to[0].when >= 0 && to[0].when < from[0].when:
			s.violate("phantom", "%v/%d arrived before it was given", o, key.n)
		case len(to) == 1 && to[0].entry.Amount != -from[0].entry.Amount:
			s.violate("sum", "%v/%d: %d given, %d taken", o, key.n, from[0].entry.Amount, to[0].entry.Amount)
		}
	}
}

func compareLines(a, b line) int {
	return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.n, b.n), cmp.Compare(a.do, b.do))
}

// judgesReminders: each comes as often as it was to, in order, and no more when it was taken away.
func (s *judge) judgesReminders() {
	for _, o := range s.ops {
		set := s.all[line{o.n, 0, remind}]
		if o.do != remind || len(set) != 1 {
			continue
		}
		s.counts.Reminders++
		ends, over := s.endOf(o, set[0])
		last, n := set[0], 0
		for ; len(s.all[line{o.n, n, fired}]) > 0; n++ {
			at := s.all[line{o.n, n, fired}]
			switch {
			case len(at) > 1:
				s.violate("twice", "%v: time %d came %d times", o, n, len(at))
			case at[0].life != set[0].life:
				s.violate("strange", "%v: time %d came to another life of %s", o, n, o.id)
			case at[0].at < last.at || over && at[0].at > ends:
				s.violate("order", "%v: time %d came before the one before it, or behind its end", o, n)
			}
			if at[0].when >= 0 && last.when >= 0 && !s.clocks {
				s.late = max(s.late, at[0].when-max(last.when+o.every, s.calmed))
			}
			last = at[0]
		}
		s.counts.Fired += n
		switch {
		case over && n < o.times:
			s.counts.Cancelled++
		case n < o.times:
			s.violate("unfired", "%v came %d times of %d", o, n, o.times)
		}
		if n > o.times {
			s.violate("twice", "%v came %d times of %d", o, n, o.times)
		}
	}
}

// endOf returns where a reminder was taken away, by a word or with its entity, and whether it was.
func (s *judge) endOf(o *op, set place) (at int, over bool) {
	for _, f := range s.ops {
		if f.do == forget && f.target == o.n {
			if there := s.all[line{f.n, 0, forget}]; len(there) == 1 && there[0].entry.N == 1 && there[0].life == set.life {
				return there[0].at, true
			}
		}
	}
	if l := set.life; l.filed && slices.Contains(l.waits, o.n) {
		return 1 << 30, true
	}
	return 0, false
}

// judgesOrder: what was acknowledged before something else was asked stands before it; what one account sends to
// another is handled in order; what an asker was shown is how its account has begun.
func (s *judge) judgesOrder() {
	byID := map[string][]*op{}
	at := map[*op]int{}
	for _, o := range s.ops {
		if there := s.all[line{o.n, 0, o.do}]; o.acked >= 0 && o.do != read && len(there) == 1 {
			byID[o.id], at[o] = append(byID[o.id], o), there[0].at
		}
		if o.acked >= 0 && o.reply.Gen > 0 && !s.began(o.id, &o.reply) {
			s.violate("uncommitted", "%v was shown %v, which was never stored", o, o.reply.List)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		for _, a := range byID[id] {
			for _, b := range byID[id] {
				if a.acked < b.begun && at[a] > at[b] {
					s.violate("order", "%v was told as done before %v was asked, and stands behind it", a, b)
				}
			}
		}
	}
	s.judgesMail()
}

// began reports whether the list of a reply is how a life of the account begins.
func (s *judge) began(id string, r *account) bool {
	return slices.ContainsFunc(s.lives[id], func(l *life) bool { return l.gen == r.Gen && extends(l.list, r.List) })
}

// judgesMail: messages of one account to another are handled in the order in which they were sent.
func (s *judge) judgesMail() {
	type pair struct{ from, to string }
	sent := map[pair]place{}
	for _, to := range slices.Sorted(maps.Keys(s.lives)) {
		for _, l := range s.lives[to] {
			for _, e := range l.list {
				if e.Do != credit {
					continue
				}
				from := append(slices.Clip(s.all[line{e.Op, e.N, transfer}]), s.all[line{e.Op, e.N, fired}]...)
				if len(from) != 1 {
					continue // which is reported elsewhere
				}
				way := pair{from[0].id, to}
				if last, ok := sent[way]; ok && from[0].at < last.at {
					s.violate("order", "%s handled %v before %v of %s, which was sent later", to, s.ops[last.entry.Op],
						s.ops[e.Op], way.from)
				}
				sent[way] = from[0]
			}
		}
	}
}

// judgesEnd asks each account, and holds what it says against what is stored.
func (s *judge) judgesEnd() {
	if len(s.found) > 0 {
		return
	}
	o := &op{n: len(s.ops), do: read, how: plain}
	s.ops = append(s.ops, o)
	for _, id := range slices.Sorted(maps.Keys(s.lives)) {
		a, err := asksNow(s.run, s.accounts.On(s.faults.IntN(s.nodes)), id, o.order())
		all := s.lives[id]
		last := all[len(all)-1]
		switch {
		case err != nil:
			s.violate("settle", "%s does not answer: %v", id, err)
		case last.filed && a.Gen != 0, !last.filed && (a.Gen != last.gen || !slices.Equal(a.List, last.list)):
			s.violate("lost", "%s says %v, stored is life %d, deleted %t: %v", id, a, last.gen, last.filed, last.list)
		}
	}
	s.judgesStore()
}

// judgesStore holds what was seen of the store against what it has.
func (s *judge) judgesStore() {
	held := s.kit.Store().Copy()
	for n := range s.drawn.shards {
		at := store.Shard{Type: string(accounts), N: route.ShardID(n)}
		for id, err := range held.Unsent(context.Background(), at) {
			s.violate("settle", "the outbox of %s: %v", id, err)
		}
	}
}
