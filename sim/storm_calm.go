// The end of a storm: first a core that is healed alone must make progress, then everything must come right.

package sim

import (
	"time"

	"github.com/kith-io/kith/membership"
)

// calm ends all faults, lets an operator down what is dead, and demands that everything comes right.
func (s *storm) calm() {
	w := s.w
	s.ending = true
	w.net.heal()
	s.check.core.links()
	w.net.Loss, w.net.Raw = 0, RawNetwork{}
	if s.core && !s.resolves() {
		s.healCore()
	}
	began := w.now
	w.net.heal()
	w.fault(0, "calm")
	for _, h := range w.hosts {
		if h.proc != nil {
			h.proc.resume()
		}
	}
	if s.resolves() {
		s.repair()
	} else {
		s.bury(func(q *proc) bool { return q.alive }, func() bool { return w.converged() })
	}
	w.after(doomedBound, s.endDoomed)
	right := func() bool { return s.pending == 0 && !s.leaving() && w.converged() }
	if !w.until(calmBound, right) {
		s.check.violate(nil, "calm", "not converged %v after the storm: %s", calmBound, w.whyNotConverged())
		return
	}
	s.calmTook = w.now - began
	s.demandHomes(w.running(), w.takeover()+homesBound)
	s.demandFates()
}

// healCore heals a majority of the nodes that are up, among themselves alone; an operator who sees only them downs all
// others. Whatever is still wrong outside, the core must agree on itself within coreBound.
func (s *storm) healCore() {
	w := s.w
	list := s.up()
	s.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:min(len(list), len(list)/2+1)]
	inside := make([]bool, len(w.hosts))
	for _, p := range list {
		inside[p.idx] = true
	}
	s.note("the core %v is healed", inside)
	var core []*proc
	for _, h := range w.hosts {
		switch p := h.proc; {
		case p == nil:
		case inside[p.idx]:
			core = append(core, p)
			p.resume()
		default:
			p.doomed, p.outside = true, true
		}
	}
	for a := range w.net.cuts {
		for b := range w.net.cuts[a] {
			w.net.cuts[a][b] = inside[a] != inside[b]
		}
	}
	began := w.now
	agreed := func() bool { return whyNotConverged(w, core) == "" }
	s.bury(func(q *proc) bool { return q.alive && inside[q.idx] }, agreed)
	if !w.until(coreBound, agreed) {
		s.check.violate(nil, "core", "the core %v has not converged %v after it was healed: %s", inside, coreBound,
			whyNotConverged(w, core))
		return
	}
	s.coreTook = w.now - began
}

// up returns the running processes that hold themselves for Up and are to stay.
func (s *storm) up() []*proc {
	var up []*proc
	for _, p := range s.w.running() {
		if m, ok := p.view.SelfMember(); ok && m.Status == membership.Up && !p.leaving && !p.doomed {
			up = append(up, p)
		}
	}
	return up
}

func (s *storm) leaving() bool {
	for _, p := range s.w.running() {
		if p.leaving {
			return true
		}
	}
	return false
}

// endDoomed kills processes that were downed while they stood still and have found nobody who could tell them: all who
// knew may be gone by now. And those who were admitted by such a one, and know nobody else.
func (s *storm) endDoomed() {
	for _, p := range s.w.running() {
		if _, down := s.check.gone[p.id]; down && p.doomed {
			s.endUntold(p)
		}
	}
	for _, p := range s.w.running() {
		if s.stranded(p) {
			s.endUntold(p)
		}
	}
}

// endUntold kills a process. A supervisor starts it again: it may have been the one that the others joined.
func (s *storm) endUntold(p *proc) {
	s.untold++
	p.crash(true)
	if s.resolves() {
		s.restartIn(p.idx, s.between(500*time.Millisecond, 8*time.Second))
	}
}

// stranded reports whether a process is alone, with members that all are gone, while others run who do not list it.
func (s *storm) stranded(p *proc) bool {
	for _, q := range s.w.running() {
		if q == p {
			continue
		}
		_, known := p.view.Member(q.id)
		_, knows := q.view.Member(p.id)
		if known || knows {
			return false
		}
	}
	return p.view != nil && len(p.view.Members) > 1
}

// bury is the operator who looks every two seconds and downs the members whose process does not belong, until all is
// right, or somebody else takes over.
func (s *storm) bury(belongs func(q *proc) bool, right func() bool) {
	s.shift++
	s.buryAs(s.shift, belongs, right)
}

func (s *storm) buryAs(shift int, belongs func(q *proc) bool, right func() bool) {
	w := s.w
	again := false
	for _, p := range w.running() {
		if p.view == nil || p.leaving || p.doomed || !belongs(p) {
			continue
		}
		if self, ok := p.view.SelfMember(); !ok || self.Status == membership.Down {
			continue
		}
		for _, m := range p.view.Members {
			if q := w.process(m.ID); q == nil || !belongs(q) {
				again = true
				if m.Status != membership.Down {
					s.down(p, m.ID)
				}
			}
		}
		break
	}
	if again || !right() {
		w.after(2*time.Second, func() {
			if shift == s.shift {
				s.buryAs(shift, belongs, right)
			}
		})
	}
}
