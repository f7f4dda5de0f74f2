// Stats: what an operator may want to know of a courier. Reading changes nothing.

package courier

// Stats are totals since the machine was made, but for the first two, which say how it stands now.
type Stats struct {
	Outstanding int // messages that are not acknowledged
	Bytes       int // of their bodies

	Posted     uint64 // messages taken for sending
	Delivered  uint64 // messages delivered here
	Resent     uint64 // repetitions
	Receipts   uint64 // acknowledgements that travelled alone
	Duplicates uint64 // messages that came again
	OutOfOrder uint64 // messages that waited for one before them
	NotHeld    uint64 // messages that came too early and found no room; they come again
	Stale      uint64 // frames between other incarnations
	Strangers  uint64 // frames of nodes that are no members here (yet)
	Full       uint64 // messages refused because too many were outstanding
	Dropped    uint64 // messages not sent: the peer is Down, removed, or was given up
	GaveUp     uint64 // times that a peer acknowledged nothing for too long
}

// Stats returns the machine's counters.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Outstanding, s.Bytes = m.open, m.bytes
	return s
}
