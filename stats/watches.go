// Watches: what a node counts of entities that watch one another.

package stats

// Watches concerns watches of entities: those of a node's own, and those on them.
type Watches struct {
	Standing int               // watches of entities here that have not been reported as ended yet
	Watchers int               // watches on entities here, of any node's
	Bytes    int               // what both take
	Refused  uint64            // watches that found no room here
	Told     map[string]uint64 // ends that entities here were to hear of, by cause
}
