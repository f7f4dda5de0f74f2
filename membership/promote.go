// Promote: whom a leader lets in and when: minimum numbers, weakly up without convergence, nobody during a full
// shutdown (MEM-5, MEM-6, MEM-7).

package membership

import (
	"errors"
	"time"

	"github.com/kith-io/kith/peer"
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
	unnamed bool // the record of this node does not name all who wait: none of them yet
}

func (n minimums) met(members []Member) bool {
	count := func(role string) (n int) {
		for i := range members {
			if st := members[i].Status; st != Exiting && st != Down && members[i].HasRole(role) {
				n++
			}
		}
		return n
	}
	if n.unnamed || n.members > 1 && count("") < n.members {
		return false
	}
	for _, r := range n.roles {
		if count(r.Role) < r.Members {
			return false
		}
	}
	return true
}

// preparing reports whether the cluster prepares for a full shutdown. It is read off the state, so every node that has
// the state knows it (Q18).
func preparing(members []Member) bool {
	for i := range members {
		if st := members[i].Status; st == PreparingForShutdown || st == ReadyForShutdown {
			return true
		}
	}
	return false
}

// weaken returns the next version in which self, leading without convergence, has let in the joining members that it
// can reach; nil when there are none.
func weaken(s *state, self peer.ID, least minimums) *state {
	if preparing(s.members) || !least.met(s.members) {
		return nil
	}
	var d *state
	for i := range s.members {
		if m := &s.members[i]; m.Status == Joining && (m.ID == self || !s.unreachable.Has(m.ID)) {
			if d == nil {
				d = s.draft()
			}
			d.members[i].Status = WeaklyUp
		}
	}
	if d == nil {
		return nil
	}
	return d.commit(self)
}

// weakenWhenStuck lets joining members in when this node has led without convergence for Config.WeaklyUpAfter at a
// stretch.
func (m *Machine) weakenWhenStuck() *state {
	switch {
	case m.cfg.WeaklyUpAfter < 0:
		return nil
	case m.stuckUntil == 0:
		m.stuckUntil = m.now + m.cfg.WeaklyUpAfter
		m.in(timerWeaklyUp, m.cfg.WeaklyUpAfter)
		return nil
	case m.now < m.stuckUntil:
		return nil
	}
	return weaken(m.st, m.self, m.cfg.minimums())
}

// unstuck ends the stretch: this node does not lead, or has converged.
func (m *Machine) unstuck() {
	if m.stuckUntil != 0 {
		m.stuckUntil = 0
		m.stop(timerWeaklyUp)
	}
}

// prepareShutdown carries out a PrepareShutdownCommand.
func (m *Machine) prepareShutdown() error {
	if m.phase != member {
		return ErrNotMember
	}
	if preparing(m.st.members) {
		return nil
	}
	d := m.st.draft()
	any := false
	for i := range d.members {
		if d.members[i].Status == Up {
			d.members[i].Status, any = PreparingForShutdown, true
		}
	}
	if !any {
		return ErrNobodyUp
	}
	m.install(d.commit(m.self), true)
	return nil
}

func (c *Config) minimums() minimums { return minimums{members: c.MinMembers, roles: c.MinRoleMembers} }

// defaultWeaklyUpAfter is the default of Config.WeaklyUpAfter.
const defaultWeaklyUpAfter = 7 * time.Second
