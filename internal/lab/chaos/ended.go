// The end of a process: what it means that one ended, and whether it may have.

package chaos

import (
	"fmt"
	"slices"
	"time"
)

// codeCrash is the exit code of a Go program that panicked.
const codeCrash = 2

// ended notes the end of a process that nobody of the harness has ordered to end as a whole.
func (h *harness) ended(l *life, code int) {
	word := fmt.Sprint(code)
	if code < 0 {
		word = "signal"
	}
	crash := l.log.crashed()
	must := h.mustLive(l.slot)
	h.mu.Lock()
	h.found.exits[word]++
	switch {
	case crash != "" || code == codeCrash:
		h.found.panics++
		if p := h.now(); p != nil {
			p.faults = append(p.faults, died(l.slot))
		}
	case code == codeEnded && must:
		if p := h.now(); p != nil {
			p.wronged = append(p.wronged, died(l.slot))
		}
		if h.excusedNow() {
			h.found.excused++
		} else {
			h.found.downed++
		}
	}
	h.mu.Unlock()
	switch {
	case crash != "" || code == codeCrash:
		h.line.printf("VIOLATION: %s crashed: %s", name(l.slot), crash)
	case code == codeEnded && must:
		h.line.printf("VIOLATION: %s was ended although nothing had touched it and its side was to live", name(l.slot))
	default:
		h.line.notef("%s ended, code %s", name(l.slot), word)
	}
}

// died is the end of a process as a fault.
func died(slot int) struck {
	return struck{Fault{Kind: Kill, Victims: 1, First: Anybody}, []int{slot}}
}

// now returns the round under way, nil between two. h.mu is held.
func (h *harness) now() *past {
	if n := len(h.rounds); n > 0 && h.rounds[n-1].until == 0 {
		return &h.rounds[n-1]
	}
	return nil
}

// mustLive reports whether a node must live through all that has come over the cluster in this round.
func (h *harness) mustLive(slot int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.now()
	if p == nil {
		return len(h.rounds) > 0
	}
	return !p.whole && slices.Contains(obliged(p.faults, h.cfg.Nodes), slot)
}

// touchedNow reports whether a fault of this round hits a node.
func (h *harness) touchedNow(slot int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.now()
	return p != nil && slices.ContainsFunc(p.faults, func(f struck) bool { return f.touched(slot) })
}

// excusedNow reports whether the machine stood still in this round. h.mu is held.
func (h *harness) excusedNow() bool {
	p := h.now()
	return p != nil && p.excused
}

// stalled notes that the machine itself let a process wait: what follows from that is nobody's mistake.
func (h *harness) stalled(who string, late time.Duration) {
	h.mu.Lock()
	p := h.now()
	first := p != nil && !p.excused
	if p != nil {
		p.excused = true
	}
	h.mu.Unlock()
	if first {
		h.line.printf("the machine let %s stand still for %.1f s: nobody is blamed for an end in this round", who,
			late.Seconds())
	}
}
