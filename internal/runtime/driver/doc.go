// Package driver drives one stepped node in real time on real sockets: the control goroutine, the route tables, the
// table of asks, the stream of events. Handlers are run by package exec, which it hands messages to.
//
// One goroutine steps the node and carries out what it says; it alone changes routes. Messages never pass through it:
// senders follow the routes that it publishes (send.go), receivers work on the transport's loops (upcalls.go).
//
// Driver is what ties the parts together; each part owns its state: dispatch the routes and what waits for them, links
// the other nodes, largeTable the large messages, leaving the end, resolver the lease, takeover what follows from the
// takeover time, askTable the asks, broadcaster the view and its readers, recordKeeper the file.
package driver
