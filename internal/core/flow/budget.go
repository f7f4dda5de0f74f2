// Budget: the bound on bytes that many values share.

package flow

// Budget bounds the bytes that all slots of a type, or of a node, may park together. A runtime with threads makes Take
// and Give safe for concurrent use, because slots have locks of their own; Pool is the plain one.
type Budget interface {
	// Take claims n bytes and reports whether the bound allowed it; if not, nothing changed.
	Take(n int) bool
	// Force claims n bytes whatever the bound says: for messages that were accepted already and may not be refused.
	Force(n int)
	// Give returns n bytes that were taken.
	Give(n int)
	// Bound returns how many bytes may be out at once.
	Bound() int
}

// Pool is a Budget for one thread. The zero value allows nothing.
type Pool struct {
	Limit int // most bytes that may be out at once
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

// Bound returns Limit.
func (p *Pool) Bound() int { return p.Limit }

// Used returns how many bytes are out.
func (p *Pool) Used() int { return p.used }
