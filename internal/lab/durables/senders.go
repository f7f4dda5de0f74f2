// Senders: what accounts are asked from outside, how often, and what is reported of it.

package durables

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/internal/sim/world"
)

// manner is how an account is asked.
type manner string

const (
	once  manner = "once"  // by AskOnce, until the outcome is known
	plain manner = "plain" // by Ask, one time
	told  manner = "told"  // by Tell
)

// op is one thing that is asked of an account.
type op struct {
	n      int
	do     verb
	id, to string
	amount int64
	how    manner
	// What the handler makes of it.
	slow     time.Duration
	refused  bool
	panics   int
	stumbled bool // it has panicked
	fails    int  // of a reminder
	times    int
	every    time.Duration
	target   int // of a forget: the account of the reminder

	begun, acked time.Duration // acked is negative until it is acknowledged
	maybe        bool          // an attempt may have had its effect
	reply        account
	why          error // of the last attempt
	tries        int
	over         bool // nobody asks any more
}

// String names it.
func (o *op) String() string { return fmt.Sprintf("%d (%s %s of %s)", o.n, o.how, o.do, o.id) }

const mostOpen = 40

// sends asks the next thing, as long as the storm lasts.
func (s *run) sends() {
	if s.calm {
		return
	}
	s.w.After(between(s.load, s.pace/4, 2*s.pace), s.sends)
	if s.open >= mostOpen {
		return
	}
	o := s.drawOp()
	s.ops = append(s.ops, o)
	if s.load.IntN(100) < s.bad {
		o.panics = 1 + s.load.IntN(2)
	}
	s.counts.Asked++
	s.open++
	s.asks(o)
}

func anyID(s *run) string { return fmt.Sprint("a", s.load.IntN(s.entities)) }

// drawOp draws what is asked.
func (s *run) drawOp() *op {
	o := &op{n: len(s.ops), id: anyID(s), how: once, begun: s.w.Now, acked: -1}
	pick := s.load.IntN(100)
	switch {
	case pick < 15:
		o.do, o.amount = deposit, 1+s.load.Int64N(100)
		o.how = []manner{once, plain, plain, told}[s.load.IntN(4)]
	case pick < 60:
		o.do, o.amount, o.to = transfer, 1+s.load.Int64N(9), anyID(s)
		if s.load.IntN(5) == 0 {
			o.how = plain
		}
	case pick < 75:
		o.do, o.times, o.every = remind, 1, between(s.load, 100*time.Millisecond, 25*time.Second)
		if s.load.IntN(3) == 0 {
			o.times, o.every = 2+s.load.IntN(4), between(s.load, 500*time.Millisecond, 8*time.Second)
		}
		if s.load.IntN(3) == 0 {
			o.to = anyID(s)
		}
		if s.load.IntN(100) < s.bad {
			o.fails = 1 + s.load.IntN(2)
		}
	case pick < 80:
		o.do, o.target = forget, s.load.IntN(max(len(s.ops), 1))
		if t := o.target; t < len(s.ops) {
			o.id = s.ops[t].id
		}
	case pick < 85 && !s.forgetful():
		o.do = remove
	default:
		o.do, o.how = read, plain
	}
	o.refused = o.do != read && s.load.IntN(100) < s.bad
	if s.load.IntN(100) < s.bad {
		o.slow = between(s.load, time.Millisecond, 2*time.Second)
	}
	return o
}

// asks makes one attempt, from any node that runs.
func (s *run) asks(o *op) {
	var list []int
	for i := range s.nodes {
		if p := s.w.Hosts[i].Process; p != nil && p.Alive {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		s.again(o)
		return
	}
	o.tries++
	if o.tries > 1 {
		s.counts.Repeated++
	}
	p := s.w.Hosts[list[s.load.IntN(len(list))]].Process
	d, heard := between(s.load, 500*time.Millisecond, 10*time.Second), false
	ends := func(r account, err error) {
		if !heard {
			heard = true
			s.hears(o, r, err)
		}
	}
	e := s.accounts.On(p.Index)
	world.Guest{Process: p}.Begin(func() { ends(s.attempt(e, o, d)) })
	s.w.After(d+3*time.Second, func() { ends(account{}, errUnheard) })
}

var errUnheard = errors.New("nothing was heard")

// order is what an op is to its account.
func (o *op) order() *order { return &order{Op: o.n, Do: o.do, Amount: o.amount, To: o.to} }

// attempt asks from a node.
func (s *run) attempt(e *durable.Entities[order, account], o *op, d time.Duration) (account, error) {
	within := s.kit.Within(d)
	switch o.how {
	case once:
		return e.AskOnce(within, key(o), o.id, o.order())
	case told:
		if err := e.Tell(o.id, o.order()); err != nil {
			return account{}, err
		}
		return account{}, errUnheard
	}
	return e.Ask(within, o.id, o.order())
}

func key(o *op) string { return fmt.Sprint("op", o.n) }

// again plans the next attempt, unless nobody wants it.
func (s *run) again(o *op) {
	stale := s.forgetful() && o.tries > 0 && s.w.Now-o.begun > s.seen/3 // the key might be forgotten
	if o.how != once || stale {
		s.endsOp(o)
		return
	}
	s.w.After(between(s.load, 50*time.Millisecond, 2*time.Second), func() { s.asks(o) })
}

// endsOp: nobody asks any more.
func (s *run) endsOp(o *op) {
	if !o.over {
		o.over = true
		s.open--
	}
}

// hears takes what an attempt came to.
func (s *run) hears(o *op, r account, err error) {
	o.why = err
	switch {
	case err == nil:
		s.note("%v is told as done", o)
		o.acked, o.reply = s.w.Now, r
		s.shows(o, &r)
		s.endsOp(o)
		if o.how == once && s.load.IntN(8) == 0 {
			asksAgain(s, o)
		}
	case errors.Is(err, durable.ErrRejected):
		s.note("%v is refused: %v", o, err)
		if !o.refused {
			s.violate("strange", "%v is refused: %v", o, err)
		}
		s.counts.Rejected++
		o.maybe = o.maybe && o.how == once // no attempt has had its effect, or this one had said so
		s.endsOp(o)
	default:
		s.note("%v: %v, may have run %t", o, err, kith.MayHaveRun(err))
		unwanted(s, o, err)
		o.maybe = o.maybe || errors.Is(err, errUnheard) || kith.MayHaveRun(err)
		s.again(o)
	}
}

// unwanted says that an error ought not to come in any storm.
func unwanted(s *run, o *op, err error) {
	for _, e := range []error{durable.ErrKeyUsed, durable.ErrKeysFull, durable.ErrTooLarge, durable.ErrNoType,
		kith.ErrBadPayload} {
		if errors.Is(err, e) {
			s.violate("strange", "%v: %v", o, err)
		}
	}
}

// asksAgain asks by the key of what was done, and by it for something else.
func asksAgain(s *run, o *op) {
	p := somebody(s)
	if p == nil || s.forgetful() {
		return
	}
	s.counts.Repeated++
	e, other := s.accounts.On(p.Index), s.load.IntN(3) == 0
	world.Guest{Process: p}.Begin(func() {
		m := o.order()
		if other {
			m.Amount += 1000
		}
		r, err := e.AskOnce(s.kit.Within(5*time.Second), key(o), o.id, m)
		s.note("%v again, another message %t: %v", o, other, err)
		switch {
		case err == nil && other:
			s.violate("twice", "%v: another message with its key is told as done", o)
		case err == nil && !reflect.DeepEqual(r, o.reply):
			s.violate("twice", "%v: its key got %v, and now %v", o, o.reply, r)
		case errors.Is(err, durable.ErrKeyUsed) && !other:
			s.violate("twice", "%v: its own message is told as another one", o)
		}
	})
}

// somebody returns a process that runs, nil when none does.
func somebody(s *run) *world.Process {
	list := s.w.Running()
	if len(list) == 0 {
		return nil
	}
	return list[s.load.IntN(len(list))]
}

// firstOpen returns one that has no answer.
func firstOpen(s *run) string {
	for _, o := range s.ops {
		if !o.over {
			return fmt.Sprintf("%v, asked %d times, the last said: %v", o, o.tries, o.why)
		}
	}
	return "none"
}

// asksNow asks while virtual time passes, from a host.
func asksNow[M, R any](s *run, e *durable.Entities[M, R], id string, m *M) (R, error) {
	return e.Ask(s.kit.Within(time.Minute), id, m)
}
