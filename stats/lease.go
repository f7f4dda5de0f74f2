// Leases: where the lease of a singleton stands on one node.

package stats

import "time"

// Lease is the part of Type that concerns the lease of a singleton (kith.SingletonLease); all is zero without one.
type Lease struct {
	Held  bool      // the singleton may live here
	Waits bool      // it would live here, and waits for its lease
	Since time.Time // since when it holds it, or waits
	Why   string    // it waits

	Acquired uint64 // times that it was acquired, confirmations left aside
	Refused  uint64 // answers that another has it
	Failed   uint64 // calls that ended with an error, or had no answer in time
	Lost     uint64 // times that it was lost while it was held
	Unfreed  int    // owners of this node with a lease that could not be given back yet
	Dropped  uint64 // owners of this node with a lease that was not given back, since too many waited for that
}

// LeaseWait is a singleton that lives on a node and waits for its lease.
type LeaseWait struct {
	Type  string
	Since time.Time
	Why   string
}
