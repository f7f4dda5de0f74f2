// Budget: the node-wide bound on bytes that wait for Blocking entities.

package entity

// Budget bounds the bytes that wait in all mailboxes and timers of a node. While it is ample a shard claims from it in
// blocks and keeps some of what it claimed until its mailboxes are empty, so that a busy shard seldom touches it. A
// runtime with threads makes it safe for concurrent use: shards have locks of their own, and Context.After claims
// without any. Pool is the plain one.
type Budget interface {
	// Take claims n bytes and reports whether the bound allowed it; if not, nothing changed.
	Take(n int) bool
	// Force claims n bytes whatever the bound says: for messages that were accepted already and may not be refused.
	Force(n int)
	// Give returns n bytes.
	Give(n int)
	// Ample reports whether no more than half of the bound is out. Only then a shard may hold more than it needs, so
	// that what shards hold in vain never comes to much more than half of the bound.
	Ample() bool
	// Keep reports whether a shard may keep n bytes that it has claimed while nothing waits in its mailboxes, so that one
	// whose entities handle each message at once does not touch the budget for each. A runtime lets few bytes be kept so,
	// or none. GiveUp ends it; the bytes are given back besides.
	Keep(n int) bool
	// GiveUp says that n bytes that Keep allowed are kept no more.
	GiveUp(n int)
}

// Pool is a Budget for one thread. The zero value refuses everything that is not forced.
type Pool struct {
	Limit int // most bytes that Take lets out
	used  int
}

// Take claims n bytes (n not negative) and reports whether Limit allowed it.
func (p *Pool) Take(n int) bool {
	if n > p.Limit-p.used {
		return false
	}
	p.used += n
	return true
}

// Force claims n bytes, also beyond Limit.
func (p *Pool) Force(n int) { p.used += n }

// Give returns n bytes.
func (p *Pool) Give(n int) { p.used -= n }

// Ample reports whether no more than half of Limit is out.
func (p *Pool) Ample() bool { return p.used <= p.Limit/2 }

// Keep allows nothing: one thread loses nothing by touching the budget for each message.
func (p *Pool) Keep(int) bool { return false }

// GiveUp has nothing to do.
func (p *Pool) GiveUp(int) {}

// Used returns how many bytes are out.
func (p *Pool) Used() int { return p.used }

// unbounded is the budget of a shard that was given none.
type unbounded struct{}

func (unbounded) Take(int) bool { return true }
func (unbounded) Force(int)     {}
func (unbounded) Give(int)      {}
func (unbounded) Ample() bool   { return true }
func (unbounded) Keep(int) bool { return true }
func (unbounded) GiveUp(int)    {}

// budgetBlock is what a shard claims of an ample budget when it needs less.
const budgetBlock = 4 << 10

// lease is what one shard holds of the budget.
type lease struct {
	budget Budget
	held   int  // claimed from the budget
	used   int  // of it, lying in mailboxes
	kept   bool // a block is kept while nothing lies there
	over   bool // the shard ends: none is kept
}

// claim is how bytes are claimed for a mailbox.
type claim uint8

const (
	bounded claim = 0 // it fails when there is no room
	forced  claim = 1 // it never fails
	scant   claim = 2 // nor does this, which takes no block for what lies in the mailbox for long
)

// take claims n bytes for a mailbox. It claims more than it needs only of an ample budget, and not for what is scant:
// an entity that is kept alive holds its few bytes for as long as it runs, and so would their block.
func (l *lease) take(n int, how claim) bool {
	if short := l.used + n - l.held; short > 0 {
		switch {
		case how != scant && short < budgetBlock && l.budget.Ample() && l.budget.Take(budgetBlock):
			l.held += budgetBlock
		case l.budget.Take(short):
			l.held += short
		case how != bounded:
			l.budget.Force(short)
			l.held += short
		default:
			return false
		}
	}
	l.used += n
	return true
}

// give returns n bytes from a mailbox, and to the budget what is too much to keep: all but the block that is kept when
// nothing is left, or the budget is not ample.
func (l *lease) give(n int) {
	l.used -= n
	spare := l.held - l.used
	if l.kept && spare <= budgetBlock {
		return
	}
	if l.used > 0 && l.budget.Ample() {
		if spare < 4*budgetBlock {
			return
		}
		spare -= budgetBlock
	} else if l.keeps() {
		spare -= budgetBlock
	}
	if spare > 0 {
		l.budget.Give(spare)
		l.held -= spare
	}
}

// keeps reports whether a block is kept, which it is from when one is at hand and the budget allows it until the shard
// ends.
func (l *lease) keeps() bool {
	if !l.kept && !l.over && l.used == 0 && l.held >= budgetBlock {
		l.kept = l.budget.Keep(budgetBlock)
	}
	return l.kept
}

// end gives up what is kept: the shard ends.
func (l *lease) end() {
	l.over = true
	if l.kept {
		l.kept = false
		l.budget.GiveUp(budgetBlock)
		l.give(0)
	}
}
