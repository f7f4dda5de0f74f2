// Package fd is failure detection without sending anything: the interface of a detector with two of them (phi accrual
// with an integer decision, a fixed deadline), the ring that says which node watches which, and the monitor of all
// peers between which and one node probes travel. It is pure; it knows no status and no message.
package fd
