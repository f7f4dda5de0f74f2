// Package flow holds the state of the data plane as plain stepped values: Slot, the route of one shard with its parking
// queue; Link, the sender's side of one data connection; Meter, the receiver's side of its credit; BulkSender and
// BulkReceiver, both sides of a bulk connection, and BulkRoom, what a node holds for such senders.
//
// Nothing here locks, waits or reads a clock: the owner of a value calls it under the lock that orders its messages.
// Two runtimes do: the driver with real connections and the simulator with virtual ones, so that there is one
// implementation of parking and of credit.
package flow
