// Promote: which members a leader lets in and when: minimum numbers, weakly up without convergence, nobody during a
// full shutdown (MEM-5, MEM-6, MEM-7).

package membership

import (
	"errors"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
)

// ErrNobodyUp is returned by a PrepareShutdownCommand while no member is Up.
var ErrNobodyUp = errors.New("membership: no member is up")

// PrepareShutdownCommand prepares the whole cluster for its end (MEM-7): every Up member becomes PreparingForShutdown
// at once, and under convergence ReadyForShutdown. From then on joins are refused, and nobody becomes Up or WeaklyUp;
// leaving and downing go on. Again, it changes nothing. There is no way back but to end all members. Errors:
// ErrNotMember, ErrNobodyUp.
type PrepareShutdownCommand struct{}

func (PrepareShutdownCommand) command() {}

// RoleMinimum is how many members of a role must be there before joining members are let in.
type RoleMinimum struct {
	Role    string
	Members int
}

// minimums is what must be there before joining members are let in. Those that are on their way out do not count.
type minimums struct {
	members int
	roles   []RoleMinimum
}

func (n minimums) met(members []cluster.Member) bool {
	if n.members > 1 && presentIn(members, "") < n.members {
		return false
	}
	for _, r := range n.roles {
		if presentIn(members, r.Role) < r.Members {
			return false
		}
	}
	return true
}

// presentIn counts the members with a role (all: "") that are there and not on their way out.
func presentIn(members []cluster.Member, role string) (n int) {
	for i := range members {
		if st := members[i].Status; st != cluster.Exiting && st != cluster.Down && members[i].HasRole(role) {
			n++
		}
	}
	return n
}

// weakenWhenStuck lets joining members in when this node has led without convergence for Config.WeaklyUpAfter at a
// stretch.
func (l *leading) weakenWhenStuck() *members.State {
	switch {
	case l.cfg.WeaklyUpAfter < 0:
		return nil
	case l.stuckUntil == 0:
		l.stuckUntil = l.now + l.cfg.WeaklyUpAfter
		l.in(timerWeaklyUp, l.cfg.WeaklyUpAfter)
		return nil
	case l.now < l.stuckUntil:
		return nil
	}
	return members.Weaken(l.st, l.self, l.cfg.minimums().met(l.st.Members))
}

// unstuck ends the stretch: this node does not lead, or has converged.
func (l *leading) unstuck() {
	if l.stuckUntil != 0 {
		l.stuckUntil = 0
		l.stop(timerWeaklyUp)
	}
}

// prepareShutdown carries out a PrepareShutdownCommand.
func (m *Machine) prepareShutdown() error {
	if m.phase != member {
		return ErrNotMember
	}
	if cluster.Preparing(m.st.Members) {
		return nil
	}
	next := members.Prepare(m.st, m.self)
	if next == nil {
		return ErrNobodyUp
	}
	m.install(next, true)
	return nil
}

func (c *Config) minimums() minimums { return minimums{members: c.MinMembers, roles: c.MinRoleMembers} }

// defaultWeaklyUpAfter is the default of Config.WeaklyUpAfter.
const defaultWeaklyUpAfter = 7 * time.Second
