// Package exec runs the handlers of one node's entities in their three modes: workers, event loops, goroutines of
// Blocking entities. It holds what the calls of handlers need: the hosts of the shards that live here, the queues and
// mailboxes in front of them, the gate that a suspended node closes, the clock, the pool of goroutines.
//
// A driver hands messages in and learns of what comes of them: read passes (Data), messages of its own node
// (Host.Send), messages that waited for a route (Host.Forward). However a message comes, Host.take gives it to its
// shard. What execution needs of its node stands in Needs; none of it is called for an ordinary message that is taken.
//
// Reading order: exec.go, types.go, host.go, take.go; then one file for each mode: queue.go and worker.go, pass.go and
// inline.go, blocking.go.
package exec
