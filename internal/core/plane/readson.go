// Reading on: what a loop does with what it reads while a shard moves (SHD-9).

package plane

// ReadsOn reports whether a loop keeps the envelopes that it reads for Inline shards, in order and with their credit,
// and works them off between its reads, as a worker does what a loop has read for it. Else it calls their handlers as
// it reads, which costs least; then what stands behind an envelope waits for its handler.
//
// A loop reads on while shards of its node move, of which there are so many: their markers are heeded when they have
// come, however much stands before them, and at the deadline of a move what was kept is handed over. It goes on to do
// so while kept bytes, of all loops of the node, are not worked off: what comes is behind these.
func ReadsOn(moving int, kept int64) bool { return moving > 0 || kept > 0 }
