// Needed: disks of a node that others need still when it leaves.

package disk

import (
	"errors"
	"fmt"
)

// ErrNeeded is matched by NeededError.
var ErrNeeded = errors.New("kith: disks of this node are needed still")

// NeededError says that a node has left, or drains, and others need its disks still, since not all that they have is as
// often elsewhere as it was asked to be. It matches ErrNeeded, and Err.
type NeededError struct {
	Stores []Needed // those of which there is something, by name
	Err    error    // why nobody waits any more; nil: the node left
}

// Needed is one store of values on a node, of package quorum.
type Needed struct {
	Store  string
	Disks  int // that have yet to read what they hold in the place of this one, or are away
	Shards int // of fenced records on this disk, that are not known to be whole elsewhere
}

// Error counts them by store.
func (e *NeededError) Error() string {
	text := ErrNeeded.Error()
	for i, s := range e.Stores {
		sep := ","
		if i == 0 {
			sep = ":"
		}
		text += fmt.Sprintf("%s that of %q by %d disks, for %d shards", sep, s.Store, s.Disks, s.Shards)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns ErrNeeded, and Err.
func (e *NeededError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrNeeded}
	}
	return []error{ErrNeeded, e.Err}
}
