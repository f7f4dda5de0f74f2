// Ways out: from every state one must lead to where everything has come to rest.

package model

// ways holds the steps between the states of a search, in the order in which their states are looked at.
type ways struct {
	to    []uint32 // the states that each leads to, one after the other
	ends  []uint64 // where those of each state end in to
	rests []bool
}

func (w *ways) step(to uint32) { w.to = append(w.to, to) }

func (w *ways) end(rests bool) {
	w.ends = append(w.ends, uint64(len(w.to)))
	w.rests = append(w.rests, rests)
}

// dead returns the first state from which no way leads to rest. Steps mostly lead to later states, so a few walks from
// the last to the first find all that have a way.
func (w *ways) dead() (int, bool) {
	good := w.rests
	for changed := true; changed; {
		changed = false
		for s := len(w.ends) - 1; s >= 0; s-- {
			if good[s] {
				continue
			}
			from := uint64(0)
			if s > 0 {
				from = w.ends[s-1]
			}
			for _, to := range w.to[from:w.ends[s]] {
				if good[to] {
					good[s], changed = true, true
					break
				}
			}
		}
	}
	for s, ok := range good {
		if !ok {
			return s, true
		}
	}
	return 0, false
}
