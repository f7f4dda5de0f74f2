// Large messages: what a node does with one that it sends, from its place among the messages to its shard to its end,
// and what it says to one that another node begins to send.

package plane

import (
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

const (
	// MaxLarge is how many large messages a node sends at a time.
	MaxLarge = 4096
	// MaxLargeRefusals is how often a large message goes to the next home because its home was wrong, before it fails.
	MaxLargeRefusals = 8
)

// Large is one large message at its sender. An envelope stands for it wherever messages to its shard wait in order;
// when that comes to the head of a slot that leads to another node, the payload goes there first, then the envelope.
// The zero value is one that waits.
type Large struct {
	state       flow.LargeState
	at          peer.ID // where its payload goes or went, under the fence of
	term, epoch uint32
	refusals    int
}

// State returns how far it has come.
func (l *Large) State() flow.LargeState { return l.state }

// Home returns where its payload goes or went, and the fence of that route; zero while it waits.
func (l *Large) Home() (at peer.ID, term, epoch uint32) { return l.at, l.term, l.epoch }

// LargeStep is what the runtime does with a large message when its envelope is at the head of a slot.
type LargeStep uint8

// The steps of a large message at the head of a slot.
const (
	LargeSkip  LargeStep = iota // it is over: its envelope goes nowhere
	LargeBegin                  // its payload goes to the home: Began when the connection has taken it
	LargeAwait                  // its payload is on the way
	LargeRefer                  // its envelope goes to the home, with a reference to the payload: Referred when it has
)

// Forward says what is to be done with a message at the head of a slot that leads to a node under a fence of that term
// and epoch. recall says that its payload was on the way elsewhere: that transfer is to be cancelled first.
func (l *Large) Forward(at peer.ID, term, epoch uint32) (step LargeStep, recall bool) {
	if l.state == flow.LargeOver || l.state == flow.LargeSent {
		return LargeSkip, false
	}
	if l.at != at || l.term != term || l.epoch != epoch {
		recall = l.Recall()
	}
	switch l.state {
	case flow.LargeMoving:
		return LargeAwait, recall
	case flow.LargeWhole:
		return LargeRefer, recall
	}
	return LargeBegin, recall
}

// Began notes that the payload is on its way to a home.
func (l *Large) Began(at peer.ID, term, epoch uint32) {
	ok := l.state.Step(flow.LargeBegins)
	invariant.Check(ok, "plane: a large message begins twice")
	l.at, l.term, l.epoch = at, term, epoch
}

// Arrived notes that the home has all of it, and reports whether that lets its envelope go.
func (l *Large) Arrived() bool { return l.state.Step(flow.LargeArrives) }

// Referred notes that its envelope has gone. From here on it may have been taken.
func (l *Large) Referred() {
	ok := l.state.Step(flow.LargeGoes)
	invariant.Check(ok, "plane: the envelope of a large message goes before its payload")
}

// Recall makes a message wait again, because it is for another home or for an entity here, and reports whether a
// transfer is to be cancelled for that.
func (l *Large) Recall() bool {
	if !l.state.Step(flow.LargeReturns) {
		return false
	}
	l.at, l.term, l.epoch = peer.ID{}, 0, 0
	return true
}

// Ended takes the end of its transfer, and reports whether it waits for the next home; else it is over for that reason,
// and the runtime says End. leads says that its slot leads where the transfer went.
func (l *Large) Ended(why route.Reason, leads bool) (again bool) {
	if !Again(why, !leads, l.refusals) || !l.Recall() { // what was sent may have been taken, and does not come back
		return false
	}
	l.refusals++
	return true
}

// LostWith reports whether a message is over because the connection to that node broke over which its envelope went, or
// the link gives it up that held it.
func (l *Large) LostWith(at peer.ID) bool { return l.state == flow.LargeSent && l.at == at }

// End makes it over and reports whether it was not already.
func (l *Large) End() bool { return l.state.Step(flow.LargeEnds) }

// Again reports whether a large message that no node can have taken, after its transfer has ended for a reason, goes to
// the next home: its home is wrong, or was lost while the route leads elsewhere by now (moved). before is how often
// that was so already.
func Again(why route.Reason, moved bool, before int) bool {
	return before < MaxLargeRefusals && (WrongHome(why) || why == route.PeerLost && moved)
}

// AcceptLarge judges a large message before its payload comes, for a shard that lives here under term and epoch: what
// is refused need not be sent. Its size is for the receiver of its connection to judge.
func AcceptLarge(b *wire.BulkBegin, term, epoch uint32, stopping bool) route.Reason {
	switch {
	case term != b.Term || epoch != b.Epoch:
		return route.NotOwner
	case stopping:
		return route.ShardStopping
	}
	return route.OK
}
