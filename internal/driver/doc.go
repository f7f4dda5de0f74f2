// Package driver rides one stepped node in real time on real sockets: the control goroutine, the route tables, the
// executors of the three modes, the table of asks, the stream of events.
//
// One goroutine steps the node and carries out what it says; it alone changes routes. Messages never pass through it:
// senders follow the routes that it publishes (send.go), receivers work on the transport's loops (inbound.go). What
// holds state between the two is flow (parking, links) and entity (the host of a shard); this package puts the locks,
// goroutines and clocks around them.
package driver
