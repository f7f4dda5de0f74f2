// The arguments and results of the calls between the runner and a program.

package rig

import (
	"errors"
	"time"
)

// What all programs send to.
const (
	Entities = 1000 // targets of the receiver, addressed in turn
	Senders  = 16   // goroutines that tell, unless a variant says otherwise

	Subscribers = 200 // of the one topic that is published to, on each node of the receiver
	Workers     = 16  // of a pool, or whatever a peer calls it, in the receiver
	TopicWindow = 512 // messages to the topic under way: fewer than wait for a subscriber of any peer
)

// The works of a load.
const (
	Tell = "tell" // one way, as fast as accepted
	Ask  = "ask"  // Inflight callers, each waits for its answer before it asks again
	Call = "call" // Inflight asks by callback: no caller waits
)

// Load says what a sender does.
type Load struct {
	Work     string
	Variant  string // of the peer, "" when it has one only: an execution mode, a kind of call
	Size     int    // bytes of payload
	Inflight int    // asks under way
	Nanos    int64  // how long, in nanoseconds
}

// Duration is how long the load sends.
func (l Load) Duration() time.Duration { return time.Duration(l.Nanos) }

// Validate returns what is wrong with the load.
func (l Load) Validate() error {
	switch {
	case l.Work != Tell && l.Work != Ask && l.Work != Call:
		return errors.New("load: work must be tell, ask or call")
	case l.Size < 1 || l.Size > 1<<20:
		return errors.New("load: size must be 1 to 1048576 bytes")
	case l.Work != Tell && (l.Inflight < 1 || l.Inflight > 1<<16):
		return errors.New("load: inflight must be 1 to 65536")
	case l.Nanos <= 0:
		return errors.New("load: no duration")
	}
	return nil
}

// Result is what a load did. P50 and P99 are microseconds, of answered asks only; zero for tells.
type Result struct {
	Sent, Failed uint64
	FirstErr     string
	P50, P99     float64
}

// Usage is what has reached the handlers of a process and what it used since its start. Mallocs is absent where the
// runtime does not count objects.
type Usage struct {
	Count   uint64
	At      int64   // nanoseconds on the process's clock
	CPU     int64   // nanoseconds, user and system
	Mallocs *uint64 `json:",omitempty"`
}

// Served is where a receiver listens, and which version of the peer it runs.
type Served struct{ Addr, Version string }

// DialArgs says which receiver to send to.
type DialArgs struct{ Addr string }
