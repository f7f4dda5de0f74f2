// Package fd is failure detection without sending anything: the window of heartbeat intervals, the phi accrual
// detector with an integer decision, the ring that says who watches whom, and the monitor of all peers watched by one
// node. It is pure; it knows no status and no message.
package fd
