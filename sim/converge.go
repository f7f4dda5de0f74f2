// Convergence: the state in which every running node holds exactly the running nodes for Up and reachable.

package sim

import (
	"fmt"
	"strings"

	"github.com/kith-io/kith/membership"
)

// converged reports whether all running processes agree that exactly they are members, Up and reachable.
func (w *world) converged() bool { return w.whyNotConverged() == "" }

// whyNotConverged says what is missing, "" when nothing is.
func (w *world) whyNotConverged() string { return whyNotConverged(w, w.running()) }

// whyNotConverged says what is missing until these processes agree that exactly they are members, Up and reachable.
func whyNotConverged(w *world, procs []*proc) string {
	if len(procs) == 0 {
		return ""
	}
	var b strings.Builder
	first := procs[0].view
	for _, p := range procs {
		v := p.view
		switch {
		case v == nil:
			fmt.Fprintf(&b, "n%d has no view; ", p.idx+1)
			continue
		case !v.Converged:
			fmt.Fprintf(&b, "n%d is not converged; ", p.idx+1)
		case first == nil || v.Hash != first.Hash:
			fmt.Fprintf(&b, "n%d has another state than n%d; ", p.idx+1, procs[0].idx+1)
		}
		for _, q := range procs {
			if m, ok := v.Member(q.id); !ok || m.Status != membership.Up {
				fmt.Fprintf(&b, "n%d does not hold %s for up; ", p.idx+1, w.name(q.id))
			}
		}
		if len(v.Members) != len(procs) {
			fmt.Fprintf(&b, "n%d has %d members of %d; ", p.idx+1, len(v.Members), len(procs))
		}
		for _, id := range v.Unreachable {
			fmt.Fprintf(&b, "n%d holds %s unreachable; ", p.idx+1, w.name(id))
		}
	}
	return b.String()
}
