// Leaving: how this node goes, until it learns that it was removed (MEM-8), or for another cluster (MEM-9).

package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/wire"
)

// leaving is the way of a node out of its cluster.
type leaving struct {
	*core
	joining *joining
	leading *leading

	exiting bool // this node confirmed its own exit
	rejoin  bool // about to leave for another cluster
}

// leave takes this node out: Leaving now, the rest follows from gossip. Before it is admitted it just ends, unless a
// member may have admitted it already: then it leaves as soon as it knows.
func (l *leaving) leave() {
	switch l.phase {
	case idle, probing:
		l.end(EndLeft, l.self, "left before it was admitted")
	case pending:
		l.joining.leave = true
	case member:
		if st := l.st.Status(l.self); st.CanBecome(cluster.Leaving) {
			d := l.st.Draft()
			d.SetStatus(l.self, cluster.Leaving)
			l.install(d.Commit(l.self), true)
			l.in(timerExitEnd, l.cfg.ExitTimeout) // what it hosts has so long to be handed over
		}
	}
}

// exitEnd: the time is over in which this node was to learn that it was removed, or, while it is Leaving, in which what
// it hosts was to be handed over: then it says of all of it that it is.
func (l *leaving) exitEnd() {
	if l.exiting {
		l.end(EndLeft, l.self, "no member confirmed the removal in time")
		return
	}
	l.leading.gaveUp, l.dirty = true, true
}

// startExit: this node knows that its leaving is known to all. What it hosted was given back before it left, so it
// is done at once; it says so to the next leader until it learns that it was removed.
func (l *leaving) startExit() {
	if l.exiting {
		return
	}
	l.exiting = true
	l.leading.exited.Add(l.self)
	l.dirty = true
	l.in(timerExitEnd, l.cfg.ExitTimeout)
	l.sendExitDone()
}

// sendExitDone notifies the leader of the remaining members and the one that leads if that one goes as well.
func (l *leaving) sendExitDone() {
	l.in(timerExit, l.cfg.ProbeInterval)
	rest := slices.DeleteFunc(slices.Clone(l.st.Members), func(o cluster.Member) bool { return o.ID == l.self })
	for range 2 {
		lead := cluster.Leader(rest, l.st.Unreachable, l.self, "")
		if lead.IsZero() {
			return
		}
		e := l.toward(lead)
		l.post(lead, wire.KindExitDone, func(b []byte) []byte { return appendEnvelope(b, e) })
		rest = slices.DeleteFunc(rest, func(o cluster.Member) bool { return o.ID == lead })
	}
}

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

// leftAs is how the end of a leave is reported.
func (l *leaving) leftAs() (EndKind, string) {
	if l.rejoin {
		return EndRejoin, "it joins another cluster"
	}
	return EndLeft, "left and was the last member"
}
