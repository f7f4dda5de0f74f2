// Package loop is one event loop: a gnet engine of its own, with a queue of tasks and a wake-up that wakes it without
// allocating.
//
// The owner of a connection enrols it as a Socket, which the loop opens, hands what it has read, and closes. Tasks come
// from any goroutine by Execute and Post; at the end of a read pass they run, and those that write out what has
// gathered (Writer) also between the pieces of a long one. Before it sleeps a loop may poll (Config.PollFor) or rest,
// so that more gathers; the control loop waits in Go's poller, so that it keeps no processor from others. What is on a
// connection is not known here. See docs/contributing/transport.md.
package loop
