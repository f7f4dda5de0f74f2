// Stats: what an operator may want to know of a courier. Reading changes nothing.

package courier

import "github.com/kith-io/kith/stats"

// Stats returns the machine's counters.
func (m *Machine) Stats() stats.Courier {
	s := m.stats
	s.Outstanding, s.Bytes = m.open, m.bytes
	return s
}
