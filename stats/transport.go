// Transport: connections by lane, the memory they hold, what was refused and lost, large messages.

package stats

import "time"

// Lane counts the connections of one lane: those of control messages, or those of data.
type Lane struct {
	In, Out           int64  // connections accepted and dialled that stand now
	BytesIn, BytesOut uint64 // after the hello
	Frames, Batches   uint64 // delivered up, and the calls or passes they came in
	Reads, Writes     uint64 // system calls' worth of socket reads and of flushes
	Wakes             uint64 // times a sleeping loop was woken
	CoalescingWaits   uint64 // times a loop slept so that more frames could gather before it wrote
	Polls, EmptyPolls uint64 // times a loop polled before it slept (Config.PollFor), and of them until the time was over
	PollerWaits       uint64 // times the control loop waited in Go's poller
	Stalls            uint64 // writes that a socket did not take whole: the rest waited in a goroutine of its own
}

// Transport is a snapshot of the counters of connections.
type Transport struct {
	Control, Data     Lane
	Bulk              Bulk
	Peers             int               // dealt with now
	Pending           int               // connections that have not said hello yet
	Queued            uint64            // bytes queued on links and control connections
	BufferBytes       uint64            // memory of the buffers of all links, of Config.LinkBudget
	BuffersFull       uint64            // buffers that were not to be had because that budget was used up
	PartialBytes      int               // held of frames that are not whole, of Config.PartialBudget
	PartialsFull      uint64            // connections closed because that, or their peer's half of it, was used up
	PartialsSlow      uint64            // connections closed because a frame did not become whole in time
	ControlFull       uint64            // mail refused because its queue was full
	MailLost          uint64            // bytes of mail dropped because the peer could not be dialled
	MailTooNew        uint64            // mail not sent because its peer speaks an older wire version
	LostBytes         uint64            // bytes of data sent and not consumed when their connection broke
	DroppedBytes      uint64            // bytes of data never sent
	Dropped           map[string]uint64 // by reason: the peer was removed, is gone or refused us, or this node closed
	DialsFailed       uint64            // attempts to connect that failed or were refused
	Silent            int               // connections on which nothing that was sent is acknowledged now
	Silences          uint64            // times that this began
	Replaced          uint64            // silent connections that were given up for a new one
	FailedDials       int               // connections wanted now with attempts that fail: each is logged, then every 30 s
	FaultsHello       uint64            // connections closed for a missing, broken or late hello
	FaultsFrames      uint64            // connections closed for breaking the protocol afterwards
	OverLimit         uint64            // connections closed because too many had not said hello
	TooManyEach       uint64            // the same, because too many of them came from one address
	PutOut            uint64            // of both: those that made room for a later one; the others were closed at once
	SaidNothing       uint64            // connections closed because not a byte came in time
	Withdrawn         uint64            // connections that their opener ended before a byte: no fault
	OverRate          uint64            // connections closed because one address opened too many in a short time
	TLSRefused        map[string]uint64 // accepted connections given up for TLS, by reason; only those that occurred
	TLSFailed         map[string]uint64 // dialled connections given up for TLS, by reason
	CertificateExpiry time.Time         // when this node's own certificate ends; zero without TLS
	Credentials       Credentials       // that are in force; zero without TLS
	TLSReloads        uint64            // times that the credentials were loaded, the start included
	TLSRenewed        uint64            // connections that were made anew, in order, under newer credentials
	TLSPutOff         uint64            // renewals that failed: the connection stays as it is, and is tried again
	TLSReloadsBad     uint64            // times that they could not be: the old ones stay
	TLSRevoked        int               // certificates on the revocation lists of now
	TLSStaleCRLs      int               // lists of now that were due to be replaced: they hold, and nobody new is on them
	Refused           map[string]uint64 // hellos refused, by reason; only those that occurred
	Links             []Peer            // in the order of their names
}

// Credentials says what a node proves itself with, and which authorities it believes.
type Credentials struct {
	Serial      string   // of its own certificate, in hexadecimal digits
	Fingerprint string   // SHA-256 of it
	Authorities []string // SHA-256 of each authority that is believed, in order, as far as they are known
}

// Bulk counts large messages.
type Bulk struct {
	In, Out  int // connections accepted and dialled that stand now
	Queued   int // transfers of this node that have not begun
	Begun    int // that have begun and are not over
	Held     int // bytes of messages of others that are gathered, or wait for their entities and handlers
	Waiting  int // messages of others that wait for room
	Sent     BulkSent
	Received BulkReceived
}

// BulkSent counts what became of large messages of this node.
type BulkSent struct {
	Bytes     uint64 // of payloads handed out
	Taken     uint64 // by their receivers
	Refused   uint64 // by their receivers
	Lost      uint64 // their connection broke: taken or not, nobody knows
	Cancelled uint64
	Stalled   uint64 // nothing moved for too long
}

// BulkReceived counts what became of large messages of others.
type BulkReceived struct {
	Bytes   uint64 // of payloads that arrived
	Taken   uint64
	Refused uint64
	Aborted uint64 // by their senders
	Broken  uint64 // their connection broke
	Stalled uint64 // nothing came for too long

	Slow      uint64 // less came than the least rate that is borne
	Unclaimed uint64 // whole, and the envelope that stands for them did not come
}
