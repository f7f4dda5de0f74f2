// Another: a node that is a cluster of one may go over to another cluster, under a new incarnation (MEM-9).

package membership

import (
	"errors"
	"fmt"
)

// ErrNotAlone is returned by a JoinAnotherCommand in a cluster of several.
var ErrNotAlone = errors.New("membership: not alone in its cluster: let each member leave, " +
	"the last one may join another")

// JoinAnotherCommand announces that this node will join another cluster. Two clusters are never merged, and an
// incarnation belongs to one cluster for ever; so this one ends, by a LeaveCommand that follows, with EndRejoin, and
// the runtime starts the next one. Until then nobody is admitted here. Only a node that is alone in its cluster may.
// Errors: ErrNotMember, ErrNotAlone.
type JoinAnotherCommand struct{}

func (JoinAnotherCommand) command() {}

func (l *leaving) joinAnother() error {
	switch {
	case l.phase != member:
		return ErrNotMember
	case len(l.st.Members) != 1:
		return fmt.Errorf("%w (%d members)", ErrNotAlone, len(l.st.Members))
	}
	l.rejoin = true
	return nil
}

// leftAs is how the end of a leave is told.
func (l *leaving) leftAs() (EndKind, string) {
	if l.rejoin {
		return EndRejoin, "it joins another cluster"
	}
	return EndLeft, "left and was the last member"
}
