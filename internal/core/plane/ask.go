// Asks: waiters with an index and a generation that travel as the correlation, so that late answers find none.

package plane

// AskState is where a waiter stands: the generation of the ask that it is for, and how far that is. A runtime that
// answers asks on several goroutines keeps it in one atomic word: the goroutine that moves it from Waiting to
// Settled, in one compare-and-swap, answers the ask; no other does. Its upper bits say to which node the ask went, by a
// number that the runtime gives: so an answer of that node needs no look at anything else. Zero: the waiter had no ask
// yet.
type AskState uint64

const (
	askWaiting AskState = 1
	askSettled AskState = 2

	askPhaseBits = 2
	askNodeAt    = 32 + askPhaseBits
)

// MaxAskNode is the largest number of a node in an AskState.
const MaxAskNode = 1<<(64-askNodeAt) - 1

// Waiting returns the state of the waiter of an ask that waits, by its correlation.
func Waiting(corr uint64) AskState { return AskState(corr>>32<<askPhaseBits) | askWaiting }

// SentTo returns the state of the same ask when it goes to that node, by its number, at most MaxAskNode; zero: to none,
// to this one, or to one without a number.
func (s AskState) SentTo(node uint32) AskState { return s&(1<<askNodeAt-1) | AskState(node)<<askNodeAt }

// WaitsFor reports whether the ask of that correlation waits, wherever it went.
func (s AskState) WaitsFor(corr uint64) bool { return s.SentTo(0) == Waiting(corr) }

// Settled returns the state of a waiter that waited, once somebody answers it.
func (s AskState) Settled() AskState { return s&^(1<<askPhaseBits-1) | askSettled }

// Waits reports whether an ask waits.
func (s AskState) Waits() bool { return s&(1<<askPhaseBits-1) == askWaiting }

// Verdict says what a reply is to the waiter that it names.
type Verdict uint8

// The verdicts.
const (
	Due     Verdict = iota // the ask waits for it
	Late                   // nobody waits for it any more, or ever did: it is counted and dropped
	Foreign                // the ask waits for another node's, or has gone to none yet, and goes on waiting: counted
)

// Judge judges a reply by its correlation. asked says whether it comes from the node that the ask went to: others may
// guess the number.
func (s AskState) Judge(corr uint64, asked bool) Verdict {
	switch {
	case !s.WaitsFor(corr):
		return Late
	case !asked:
		return Foreign
	}
	return Due
}

// TellsCancel reports whether the node that has an ask gets a cancel when the asker has given up. timely: the ask
// expired, which that node sees by itself if the ask is limited: it carries its time.
func TellsCancel(timely, limited bool) bool { return !timely || !limited }

// AskIndex returns the index of the waiter that a correlation names, which may be that of none.
func AskIndex(corr uint64) uint32 { return uint32(corr) - 1 }

// Ask is what the table knows of one waiter. The runtime's own record of it embeds this, and lives as long as the
// table.
type Ask struct {
	due        int64 // wheel tick
	at         int64 // the tick for which it is in the wheel, no later than due while it waits
	prev, next *Ask
	index      uint32
	generation uint32 // counts the uses
	waits      bool   // Advance is to return it when it is due
	inWheel    bool
}

// Index returns the waiter's index.
func (a *Ask) Index() uint32 { return a.index }

// Corr returns the correlation of the waiter's present use; it is never zero, which means a tell.
func (a *Ask) Corr() uint64 { return uint64(a.generation)<<32 | uint64(a.index+1) }

// Due returns the tick of the wheel at which its time is over.
func (a *Ask) Due() int64 { return a.due }

// Asks hands out waiters, and knows which have expired. The zero value has none. It belongs to one lock; what settles
// an ask is the waiter's AskState alone.
type Asks struct {
	free  []*Ask
	made  int
	wheel askWheel
}

// Add adds a new waiter to the free ones. index is its own among all tables of a runtime, and below 1<<32 - 1.
func (t *Asks) Add(a *Ask, index uint32) {
	a.index = index
	t.free = append(t.free, a)
	t.made++
}

// Made returns how many waiters there are.
func (t *Asks) Made() int { return t.made }

// Underway returns how many waiters are in use: those that wait, and those that their asker has not given back.
func (t *Asks) Underway() int { return t.made - len(t.free) }

// Full reports whether no waiter is free.
func (t *Asks) Full() bool { return len(t.free) == 0 }

// Begin takes a free waiter, of which there has to be one, for an ask that expires at the tick due.
func (t *Asks) Begin(due int64) *Ask {
	n := len(t.free) - 1
	a := t.free[n]
	t.free = t.free[:n]
	t.wheel.add(a, due)
	return a
}

// End gives a waiter back: its correlation is void from here on.
func (t *Asks) End(a *Ask) {
	a.generation++
	t.wheel.remove(a)
	t.free = append(t.free, a)
}

// Advance appends the correlations of the asks that have expired at a tick to over and returns it; they may have been
// answered. It appends each once. Ticks do not go back.
func (t *Asks) Advance(tick int64, over []uint64) []uint64 { return t.wheel.advance(tick, over) }
