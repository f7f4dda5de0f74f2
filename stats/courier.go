// Courier: control messages that must arrive, once and in order.

package stats

// Courier counts control messages between this node and the others; see docs/contributing/control-messages.md. The
// first two say how it stands now.
type Courier struct {
	Outstanding int // messages that are not acknowledged
	Bytes       int // of their bodies

	Posted     uint64 // messages taken for sending
	Delivered  uint64 // messages delivered here
	Resent     uint64 // repetitions
	Acks       uint64 // acknowledgements that travelled alone
	Duplicates uint64 // messages that came again
	OutOfOrder uint64 // messages that waited for one before them
	NotHeld    uint64 // messages that came too early and found no room; they come again
	Stale      uint64 // frames between other incarnations
	NonMembers uint64 // frames of nodes that are no members here (yet)
	Full       uint64 // messages refused because too many were outstanding
	Dropped    uint64 // messages not sent: the peer is Down, removed, or was given up
	GaveUp     uint64 // times that a peer acknowledged nothing for too long
}
