// Package chaos runs a cluster of real node processes under faults that a seed draws, and checks by one clock what they
// do: which process handles which entity under which fence, what becomes of every numbered message, which process ends
// and why.
//
// The parts stand apart: the schedule (a seed gives a list of faults), the carrier (how a fault gets into the network:
// network namespaces, or a proxy), the supervisor (processes that are started again), the load (in the processes), the
// journals that it leaves in shared memory, the store that checks fences, the account, and the timeline.
package chaos
