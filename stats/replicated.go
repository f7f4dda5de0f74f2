// Replicated: the counters of replicated values, and of values on the disks of N members.

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

// Values concerns one store of values on the disks of N members (package quorum), on one node.
type Values struct {
	Store      string // its name
	Disks      int    // of the store, that this one knows, now; 0 while the store has not begun
	Requests   int    // under way at this node, now
	Keys       int    // on this disk, now; deletions that are remembered among them
	Bytes      int64  // on this disk, now
	Lacking    int    // groups of keys, of 64, of which this replica has yet to read what others hold, now
	Hints      int    // writes that wait for replicas, now
	HintBytes  int    // of these
	Repairs    uint64 // entries sent to replicas that answered a read without them
	Exchanged  uint64 // entries taken from comparisons with other replicas, and by reading all of a group
	Conflicted uint64 // reads that found several values
	HintsGone  uint64 // hints dropped: too many, too old, or for a disk that has lost its place
	Refused    uint64 // messages that no replica sends, from the future, or of a store with other settings
	Failed     uint64 // commits that the disk refused
	Damaged    uint64 // entries of this disk that were found to be damaged
	Purged     uint64 // deletions that were forgotten
	Dropped    uint64 // messages that found no room, of all stores of the node
	HandOn     HandOn // what this disk is needed for, while it leaves

	// Of fenced records.
	Shards  int    // of which this disk is a replica, or was, now
	Owners  int    // of shards, that this node is or was, now
	Entries uint64 // that owners of this node have had decided
	Commits uint64 // in these
	Copied  uint64 // shards that this disk has copied whole from another one
	Cared   uint64 // times that this node has claimed a shard that nobody owned, since a disk of it was gone
}

// HandOn is what others need a disk for that leaves, for good or since its node drains: it hands on what it has first.
type HandOn struct {
	Leaves bool
	Disks  int  // that have yet to read what they hold in its place, or are away
	Shards int  // of fenced records on it, that are not known to be whole elsewhere
	Alone  bool // too few others stay: none can take its place
}
