// What a fault touches, and whom it leaves untouched: whom the strategy obliges to live on.

package chaos

import (
	"slices"
	"time"
)

// struck is a fault with its victims, known once it has come.
type struck struct {
	Fault
	who []int // slots, in the order in which they are hit
}

// unstableAfter is when the resolver may give everybody up because nothing stands still: 1.75 times the patience of a
// cluster of up to five members.
const unstableAfter = 12 * time.Second

// mildLoss is the loss under which no healthy member may be taken for dead; of more, nothing is demanded.
const mildLoss = 50

// harmless reports whether a fault gives nobody a reason to be downed.
func (f *struck) harmless() bool {
	switch f.Kind {
	case DataCut, Reset, Delay:
		return true
	case Loss:
		return f.PerMille <= mildLoss
	}
	return false
}

// touched reports whether a fault hits a node itself.
func (f *struck) touched(slot int) bool { return slices.Contains(f.who, slot) }

// obliged returns which of so many nodes must live through all these faults: those that none has touched, as long as
// they are the majority and nothing keeps the picture from standing still.
func obliged(faults []struck, nodes int) []int {
	var live []int
	for slot := range nodes {
		if !slices.ContainsFunc(faults, func(f struck) bool { return !f.harmless() && f.touched(slot) }) {
			live = append(live, slot)
		}
	}
	restless := slices.ContainsFunc(faults, func(f struck) bool {
		return f.Kind == Loss && f.PerMille > mildLoss || f.Kind == Flap && f.For > unstableAfter*3/4
	})
	// Who leaves is counted no more by those who stay, so one that leaves takes nobody's majority.
	gone := 0
	for slot := range nodes {
		if !slices.Contains(live, slot) && slices.ContainsFunc(faults, func(f struck) bool {
			return f.Kind != Rolling && f.Kind != Leave && f.Kind != LeaveLate && !f.harmless() && f.touched(slot)
		}) {
			gone++
		}
	}
	if restless || 2*(nodes-gone) <= nodes {
		return nil
	}
	return live
}

// explains reports whether a fault may have taken a message from one node to another: it touched sender or owner, or
// the way between them.
func (f *struck) explains(from, to int) bool {
	if f.Victims == 0 {
		return true // resets, loss, delay: every way
	}
	return f.touched(from) || f.touched(to)
}
