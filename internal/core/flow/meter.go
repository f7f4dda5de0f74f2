// Meter: the receiver's side of one data connection's credit.

package flow

// Meter counts the consumed bytes of one incoming data connection and says when to tell the sender. It does every
// quarter window, so that a sender with a full pipe never runs dry and credit costs four small frames a window; Flush
// tells the remainder after a pause. Totals run from the connection's begin, so that a lost or repeated report does no
// harm. It is not safe for concurrent use. Make one with MakeMeter.
type Meter struct {
	quarter     uint64
	total, told uint64
}

// MakeMeter returns a meter for a connection with a sender that has this window in bytes; not positive means
// DefaultWindow.
func MakeMeter(window int) Meter {
	if window <= 0 {
		window = DefaultWindow
	}
	return Meter{quarter: max(uint64(window)/4, 1)}
}

// Consume counts n bytes (n not negative) and returns the running total, with due set when the sender is to get it
// now.
func (m *Meter) Consume(n int) (total uint64, due bool) {
	m.total += uint64(n)
	if m.total-m.told < m.quarter {
		return m.total, false
	}
	m.told = m.total
	return m.total, true
}

// Flush returns the running total, with due set when the sender does not have it yet. It counts as sent then.
func (m *Meter) Flush() (total uint64, due bool) {
	due = m.total != m.told
	m.told = m.total
	return m.total, due
}

// Total returns the running total, as a new control connection repeats it.
func (m *Meter) Total() uint64 { return m.total }
