// Leavers: members that were asked to leave count with a healthy core until some member knows that they exit.

package check

import (
	"slices"

	"github.com/kith-io/kith/internal/sim/world"
)

// stillCounts reports whether one that was asked to leave counts: none of the members knows yet that it exits. Nobody
// can say which of the leavers asks for a lease.
func stillCounts(members []*world.Process, q *world.Process) bool {
	return q.Alive && !slices.ContainsFunc(members, func(p *world.Process) bool {
		m, ok := p.View.Member(q.ID)
		return !ok || !m.Status.Counts()
	})
}
