// Replicated: the counters of replicated values.

package stats

// Replicated concerns the replicated values of one node (package replicated).
type Replicated struct {
	Keys      int    // that are open, now
	Bytes     int64  // of all values, now; counted up to a quarter too high
	Waiting   int    // updates and reads that wait for members, now
	Rounds    uint64 // digests that were sent
	Sent      uint64 // bytes of frames that were sent, of which some may have been lost
	Gaps      uint64 // deltas that were refused because earlier ones are missing here; the whole value is asked for
	Refused   uint64 // deltas and values of another kind, malformed, or far over the bounds
	Strangers uint64 // frames of incarnations that are no members
	Dropped   uint64 // frames that found no room here; they are said again
}
