// The store goes back: when all has been judged it holds what it did some changes ago.

package durables

import (
	"errors"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable/durabletest"
	"github.com/kith-io/kith/store"
)

// goesBack demands that owners notice: the owner of what the store has lost says so, and stops.
func (s *run) goesBack() {
	if !s.wentBack || len(s.found) > 0 {
		return
	}
	s.counts.WentBack++
	s.sealed = true
	s.kit.Store().Fail(durabletest.Faults{})
	s.kit.Store().Keep()
	n := s.faults.IntN(s.nodes)
	o := &op{n: len(s.ops), do: deposit, how: plain, id: anyID(s), amount: 1}
	s.ops = append(s.ops, o)
	e := s.accounts.On(n)
	if _, err := asksNow(s, e, o.id, o.order()); err != nil {
		s.violate("settle", "%v: %v", o, err)
		return
	}
	s.kit.Store().GoBack()
	owner := s.c.Owner(string(accounts), o.id)
	switch _, err := asksNow(s, e, o.id, o.order()); {
	case !errors.Is(err, store.ErrStoreWentBack) || kith.MayHaveRun(err):
		s.violate("went-back", "%s is asked when the store has lost what it had written: %v", o.id, err)
	case s.accounts.On(owner).Err() == nil:
		s.violate("went-back", "n%d goes on with what the store has lost", owner+1)
	}
	for i := range s.nodes {
		s.c.Restart(i)
		s.c.AwaitUp()
	}
	if !s.c.Until(5*time.Minute, func() bool { return s.c.Owner(string(accounts), o.id) >= 0 }) {
		s.violate("settle", "%s has no owner when all have begun anew", o.id)
	} else if _, err := asksNow(s, s.accounts.On(n), o.id, o.order()); err != nil {
		s.violate("settle", "%s, when all have begun anew: %v", o.id, err)
	}
}
