// Convergence: the state in which every running node holds exactly the running nodes for Up and reachable.

package world

import (
	"fmt"
	"strings"

	"github.com/kith-io/kith/membership"
)

// Converged reports whether all running processes agree that exactly they are members, Up and reachable.
func (w *World) Converged() bool { return w.WhyNotConverged() == "" }

// WhyNotConverged says what is missing, "" when nothing is.
func (w *World) WhyNotConverged() string { return WhyNotConverged(w, w.Running()) }

// WhyNotConverged says what is missing until these processes agree that exactly they are members, Up and reachable.
func WhyNotConverged(w *World, procs []*Process) string {
	if len(procs) == 0 {
		return ""
	}
	var b strings.Builder
	first := procs[0].View
	for _, p := range procs {
		v := p.View
		switch {
		case v == nil:
			fmt.Fprintf(&b, "n%d has no view; ", p.Index+1)
			continue
		case !v.Converged:
			fmt.Fprintf(&b, "n%d is not converged; ", p.Index+1)
		case first == nil || v.Hash != first.Hash:
			fmt.Fprintf(&b, "n%d has another state than n%d; ", p.Index+1, procs[0].Index+1)
		}
		for _, q := range procs {
			if m, ok := v.Member(q.ID); !ok || m.Status != membership.Up {
				fmt.Fprintf(&b, "n%d does not hold %s for up; ", p.Index+1, w.Name(q.ID))
			}
		}
		if len(v.Members) != len(procs) {
			fmt.Fprintf(&b, "n%d has %d members of %d; ", p.Index+1, len(v.Members), len(procs))
		}
		for _, id := range v.Unreachable {
			fmt.Fprintf(&b, "n%d holds %s unreachable; ", p.Index+1, w.Name(id))
		}
	}
	return b.String()
}
