// Suspension: the times in which a node handled no messages.

package stats

import "time"

// Suspension is a snapshot of a node's suspensions: it handled no message in them. The data plane's own short waits,
// while the control goroutine is late, are not among them.
type Suspension struct {
	Now    bool          // it is suspended
	Since  time.Time     // when this one began; zero unless Now
	Reason string        // of this one, or of the last one that is over
	Count  uint64        // those that began
	Total  time.Duration // how long all of them took, this one included
}
