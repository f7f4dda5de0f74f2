// Peers: what the links with each peer queue, have in flight, write and wait for, and its round trip.

package stats

import (
	"time"

	"github.com/kith-io/kith/peer"
)

// Peer is a snapshot of the connections with one peer. Counts begin when the peer was first dealt with, and go
// when it is forgotten; the sums in Transport stay.
type Peer struct {
	Peer    peer.ID // incarnation zero: any at the address, a contact point
	Version uint16  // of the wire protocol on the control connection to it; zero before the first
	Control Control
	Data    []Link     // the data connections that this node writes, by number
	In      []Incoming // those of the peer that this node reads, by number
}

// Control is a snapshot of the control connection that this node writes to a peer.
type Control struct {
	Up        bool
	Connects  uint64 // times it came to stand: all but the first are reconnects
	Writes    uint64 // system calls of the loop to write
	Parked    Waits  // the socket was full, and a goroutine waited with the rest of a batch
	Silent    Waits  // nothing that was sent was acknowledged by the peer's system
	Queued    int    // bytes that wait to be written
	RoundTrip RoundTrip
}

// RoundTrip is how long heartbeat probes took to be answered by the peer's control loop, from the step that sent them.
type RoundTrip struct {
	Count          uint64
	Last, Min, Max time.Duration
	Mean           time.Duration // of all
}

// Link is a snapshot of one data connection that this node writes to a peer. Over broken connections it goes on.
type Link struct {
	Number     uint16
	Up         bool
	Generation uint32 // of the newest connection
	Connects   uint64 // times it came to stand: all but the first are reconnects

	Queued   int   // bytes that wait to be written
	InFlight int64 // bytes written and not consumed by the peer yet, as far as it has said; at most window and a frame
	Held     int   // bytes of memory that its buffers take

	Sent       uint64              // bytes written
	Batches    uint64              // they were written in
	BatchSizes [SizeClasses]uint64 // batches of at most 64, 128, 256, ... bytes; the last class has no bound
	Writes     uint64              // system calls of the loop to write
	Parked     Waits               // the socket was full, and a goroutine waited with the rest of a batch

	Full       Waits  // the buffer was over its bound: sends were refused, until half of it was free again
	Refused    uint64 // sends that were
	Stalled    Waits  // something waited to be written, and the peer had returned no credit
	Silent     Waits  // nothing that was sent was acknowledged by the peer's system
	Lost       uint64 // bytes in flight when a connection broke
	NeverSent  uint64 // bytes dropped because the peer was removed or refused us, or this node closed
	FailedDial int    // attempts in a row that failed or were refused
}

// Waits counts how often something was waited for, and how long altogether, the present wait included.
type Waits struct {
	Times uint64
	Total time.Duration
	Now   bool // one is under way
}

// Incoming is a snapshot of one data connection of a peer that this node reads.
type Incoming struct {
	Number     uint16
	Generation uint32
	Received   uint64 // bytes of whole frames
	Open       uint64 // of them, not consumed yet: in mailboxes and queues of this node
}

// SizeClasses is the number of classes in Link.BatchSizes: 64 bytes to a MiB, and what is larger.
const SizeClasses = 16
