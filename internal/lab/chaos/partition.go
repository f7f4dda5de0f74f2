// Partition: a cut between real processes under traffic. Measured is when each side sees it, decides, stops or takes
// over; meanwhile an operator on either side asks what there is to ask.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// PartitionConfig says what is measured.
type PartitionConfig struct {
	Trial  // the smaller side has fewer than half of the nodes
	Cases  []PartitionCase
	Net    string      // one of Nets
	NoHeal bool        // the cut lasts until the end
	Verbs  cli.Options // how the program is started that has the verbs: the verb and its flags come behind Args
}

// ErrPartition is returned when an entity began on one side before it had stopped on the other, or when anything else
// was found that must not be.
var ErrPartition = errors.New("partition found something")

// Partition measures the cases, one cluster at a time, until ctx ends. The error wraps ErrPartition when the result has
// what must not be.
func Partition(ctx context.Context, cfg PartitionConfig) (*PartitionResult, error) {
	r := newPartitionResult(cfg.Nodes, cfg.Rounds, cfg.StableAfter)
	began := cli.MachineTime()
	of := func(c PartitionCase) Config { return Config{Net: cfg.Net, Proof: c.proof(), Admin: true} }
	try := func(c PartitionCase, h *harness) (*parted, error) { return part(ctx, &cfg, h, c) }
	err := trials(&cfg.Trial, cfg.Cases, try, of,
		func(c PartitionCase, round int, p *parted) {
			cfg.Progress.Printf("%s, round %d of %d: %s", c, round+1, cfg.Rounds, p)
			r.add(c, p)
		})
	if err != nil {
		return nil, err
	}
	r.WallTime = *inSeconds(cli.MachineTime() - began)
	if faults := r.faults(); len(faults) > 0 {
		return r, fmt.Errorf("%w: %w", ErrPartition, faults.Err())
	}
	return r, nil
}

// part cuts a cluster in two, and reads what that left.
func part(ctx context.Context, cfg *PartitionConfig, h *harness, c PartitionCase) (p *parted, err error) {
	p = &parted{net: kindOf(h.net), steps: map[stepName]time.Duration{}, exits: map[int]int{}}
	if p.asked, err = newOperator(h, cfg.Verbs); err != nil {
		return nil, h.close(err, 0)
	}
	s := &separation{h, p.asked, p}
	p.cost, err = costs(ctx, h, func(ctx context.Context) error { return s.live(ctx, c, !cfg.NoHeal) })
	_ = p.asked.f.Close()
	if err == nil {
		err = s.measure()
	}
	return p, h.close(err, p.violations())
}

// separation is one cut, with the operator on both sides of it.
type separation struct {
	h *harness
	o *operator
	p *parted
}

// sides divides the nodes: the losing side has the fewer.
func (s *separation) sides(c PartitionCase) error {
	hosted := map[int]int{}
	s.h.watcher.each(func(i int, _ *life, st *status) { hosted[i] = st.Hosted })
	oldest := s.h.watcher.victims(Fault{Victims: 1, First: Coordinator})
	if len(oldest) == 0 {
		return errUneven
	}
	s.p.losing, s.p.winning = pickSides(c, oldest[0], hosted, s.h.cfg.Nodes)
	if len(s.p.losing) == 0 {
		return errUneven
	}
	return nil
}

// endBound is how long the losing processes may take to end.
const endBound = 60 * time.Second

// live cuts a side off, waits until the other one has taken over, and heals the cut.
func (s *separation) live(ctx context.Context, c PartitionCase, heal bool) error {
	h, p := s.h, s.p
	if !cli.Pause(ctx, h.restFor(c.proof() && c.coordinator())) {
		return ctx.Err()
	}
	if err := s.sides(c); err != nil {
		return err
	}
	lives := make([]*life, len(h.slots))
	for i, slot := range h.slots {
		if lives[i] = slot.current(); lives[i] == nil {
			return fmt.Errorf("%s does not run", name(i))
		}
	}
	for _, slot := range p.losing {
		p.gone, p.lives = append(p.gone, lives[slot].sender), append(p.lives, lives[slot])
	}
	cut := &struck{Fault{Kind: Cut, Victims: len(p.losing), For: endBound}, p.losing}
	h.line.printf("cut: %s from %s", names(p.losing), names(p.winning))
	p.at = h.clock.Now()
	h.mu.Lock()
	round := Round{Number: 1, Faults: []Fault{cut.Fault}}
	h.rounds = append(h.rounds, past{Round: round, faults: []struck{*cut}, from: p.at})
	h.mu.Unlock()
	h.inNet(cut, true)
	h.line.notef("the cut is complete")
	var busy sync.WaitGroup
	for _, l := range lives {
		busy.Go(func() { s.witness(ctx, l) })
	}
	err := s.takenOver(ctx)
	busy.Wait()
	if err != nil || !heal {
		return err
	}
	return s.healed(ctx, cut)
}

// takenOver waits until the losing processes have ended and everything has answered on the other side.
func (s *separation) takenOver(ctx context.Context) error {
	h, p := s.h, s.p
	limited, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	for _, l := range p.lives {
		select {
		case <-l.child.Done():
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.o.fault("%s has not ended within %v of the cut", name(l.slot), endBound)
		}
	}
	h.line.printf("%s ended %.1f s after the cut", names(p.losing), (h.clock.Now() - p.at).Seconds())
	why, ok := h.watcher.await(ctx, answerBound, func() (string, bool) { return h.book.answered(p.winning, p.at) })
	if !ok {
		return fmt.Errorf("not everything answers on the side that lives within %v: %s", answerBound, why)
	}
	h.line.printf("everything answers on the side that lives %.1f s after the cut", (h.clock.Now() - p.at).Seconds())
	for _, slot := range p.winning {
		if l := h.slots[slot].current(); l != nil {
			if says := s.o.ask(ctx, l, "status"); says.code != 0 {
				s.o.fault("kith status: %s is not ready after the takeover: %s", name(slot), says.tail())
			}
		}
	}
	for _, slot := range p.losing { // started again by now, and cut off still
		if l := h.slots[slot].current(); l != nil {
			if says := s.o.ask(ctx, l, "status"); says.code == 0 {
				s.o.fault("kith status: %s is ready behind the cut: %s", name(slot), says.tail())
			}
			s.o.ask(ctx, l, "explain")
		}
	}
	return nil
}

// healed ends the cut, and waits until the nodes that were cut off are back.
func (s *separation) healed(ctx context.Context, cut *struck) error {
	healed := s.h.clock.Now()
	s.h.inNet(cut, false)
	s.h.line.printf("the cut is healed")
	if why, ok := s.h.well(ctx, healed, wellBound); !ok {
		return fmt.Errorf("not well within %v after the cut: %s", wellBound, why)
	}
	took := s.h.clock.Now() - healed
	s.p.steps[stepRejoined] = took
	s.h.line.printf("all are back %.1f s after the cut was healed", took.Seconds())
	return nil
}

// witnessEvery is how often is looked whether there is something to ask about. A loser lives for a fifth of a second
// after its decision: it is asked without a pause, from explainBefore that is due on.
const (
	witnessEvery  = 50 * time.Millisecond
	explainBefore = 300 * time.Millisecond
)

// witness is the operator at one node: asks when the node holds the other side unreachable, and when it has decided.
func (s *separation) witness(ctx context.Context, l *life) {
	ctx, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	loses := slices.Contains(s.p.losing, l.slot)
	here, there := s.addrs(s.p.winning), s.addrs(s.p.losing)
	if loses {
		here, there = there, here
	}
	sees := l.until(ctx, func(st *status) bool {
		gone := map[string]bool{}
		for _, m := range st.Members {
			gone[m.Addr] = m.Unreachable
		}
		return every(there, func(addr string) bool { return gone[addr] })
	})
	if !sees {
		s.o.fault("%s never held all of the other side unreachable", name(l.slot))
		return
	}
	soon := s.h.clock.Now() + paceOf(s.h.cfg.Nodes, s.h.cfg.Patience, s.h.cfg.StableAfter).stable - explainBefore
	if loses {
		events := make(chan said, 1)
		go func() { events <- s.o.run(ctx, l.slot, "events", "--admin", l.admin) }() // ends with the node
		s.o.duringCut(ctx, l, here, there)
		cli.Pause(ctx, soon-s.h.clock.Now())
		_, live := s.o.explained(ctx, l, there, here, false)
		s.ended(ctx, l, here, there, live, <-events)
		return
	}
	s.o.duringCut(ctx, l, here, there)
	decided := false
	gone := l.until(ctx, func(st *status) bool {
		decided = st.Decided > 0
		return decided || len(st.Members) > 0 &&
			!slices.ContainsFunc(st.Members, func(m seen) bool { return slices.Contains(there, m.Addr) })
	})
	if gone && !decided {
		return // another one has decided a moment before, and has downed the other side: there was nothing left to decide
	}
	says, told := s.o.explained(ctx, l, there, there, true)
	if !told {
		s.o.fault("kith explain at %s does not name the decision: %s", name(l.slot), says.tail())
	}
	s.o.count(func(a *Answers) { a.Living += one(told) })
}

// ended reads from the flight record of a losing node why it ended, and counts what has reported that.
func (s *separation) ended(ctx context.Context, l *life, here, there []string, live bool, events said) {
	select {
	case <-l.child.Done():
	case <-ctx.Done():
		return // takenOver reports it
	}
	says := s.o.replay(ctx, l.slot)
	by := tellings{Explain: one(live), Events: one(eventsTell(events, s.h.seeds[l.slot])),
		Replay: one(explainTells(says, there, here, false))}
	if by.Replay == 0 {
		by.Downed = one(recordTellsWho(says, here))
	}
	if by.Explain+by.Replay+by.Downed == 0 {
		s.o.fault("neither kith explain nor the flight record of %s names the decision: %s", name(l.slot), says.tail())
	}
	s.o.count(func(a *Answers) { a.Told.add(by) })
}

// until waits until what a process reports of itself is so, and reports false when it has ended before.
func (l *life) until(ctx context.Context, is func(*status) bool) bool {
	for l.running() && cli.Pause(ctx, witnessEvery) {
		if st, _, ok := l.told(); ok && is(&st) {
			return true
		}
	}
	return false
}

// addrs returns the addresses of slots.
func (s *separation) addrs(slots []int) (all []string) {
	for _, slot := range slots {
		all = append(all, s.h.seeds[slot])
	}
	return all
}

// measure reads off journals and logs when each step came.
func (s *separation) measure() error {
	h, p := s.h, s.p
	p.gaps, p.silent = h.book.gaps(p.gone, p.at)
	for _, l := range p.lives {
		l.mu.Lock()
		if l.over {
			p.exits[l.code]++
			p.steps[stepEnded] = max(p.steps[stepEnded], l.end-p.at)
		} else {
			p.exits[codeRunning]++
		}
		l.mu.Unlock()
	}
	losers, err := survivorsLogs(h.dir, p.winning)
	if err != nil {
		return err
	}
	winners, err := survivorsLogs(h.dir, p.losing)
	if err != nil {
		return err
	}
	of := func(b breakdown, names map[stepName]stepName) {
		for from, to := range names { // a map into a map: no order
			if d, some := b[from]; some {
				p.steps[to] = d
			}
		}
	}
	of(makeBill(losers, s.addrs(p.winning), p.at), map[stepName]stepName{stepUnreachable: stepLosingSees,
		stepDecided: stepLosingDecides})
	of(makeBill(winners, s.addrs(p.losing), p.at), map[stepName]stepName{stepUnreachable: stepWinningSees,
		stepDecided: stepWinningDecides, stepAllocated: stepAllocated})
	for i, g := range p.gaps {
		p.steps[stepLastHandled] = max(p.steps[stepLastHandled], g.stopped-p.at)
		p.steps[stepAllHandled] = max(p.steps[stepAllHandled], g.started-p.at)
		if first := g.started - p.at; i == 0 || first < p.steps[stepFirstHandled] {
			p.steps[stepFirstHandled] = first
		}
	}
	return nil
}
