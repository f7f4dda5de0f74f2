// What a loop counts, and what the connections that it serves report to it.

package loop

import "sync/atomic"

// counts are written by one loop only (wakes: by the goroutine that rings it).
type counts struct {
	_                                                                       [64]byte
	bytesIn, bytesOut, frames, batches, reads, writes, wakes, rests, stalls atomic.Uint64
	polls, emptyPolls, pollerWaits                                          atomic.Uint64
	_                                                                       [64]byte
}

// Stats are what a loop has counted so far.
type Stats struct {
	BytesIn, BytesOut uint64 // of connections on the loop
	Frames, Batches   uint64 // delivered, and the calls that they came in
	Reads, Writes     uint64 // of sockets
	Wakes             uint64 // times that it was woken
	CoalescingWaits   uint64 // times that it slept so that more could gather
	Polls, EmptyPolls uint64 // times that it polled before it slept, and of them until the time was over
	PollerWaits       uint64 // times that it waited in Go's poller
	Stalls            uint64 // writes that a socket did not take whole
}

// Stats returns what the loop has counted. Safe for concurrent use.
func (l *Loop) Stats() Stats {
	s := &l.stats
	return Stats{BytesIn: s.bytesIn.Load(), BytesOut: s.bytesOut.Load(), Frames: s.frames.Load(),
		Batches: s.batches.Load(), Reads: s.reads.Load(), Writes: s.writes.Load(), Wakes: s.wakes.Load(),
		CoalescingWaits: s.rests.Load(), Polls: s.polls.Load(), EmptyPolls: s.emptyPolls.Load(),
		PollerWaits: s.pollerWaits.Load(),
		Stalls:      s.stalls.Load()}
}

// Read counts a read of n bytes. On the loop, as all that follows.
func (l *Loop) Read(n int) {
	l.stats.bytesIn.Add(uint64(n))
	l.stats.reads.Add(1)
}

// Wrote counts a write of n bytes.
func (l *Loop) Wrote(n int) {
	l.stats.bytesOut.Add(uint64(n))
	l.stats.writes.Add(1)
}

// Stalled counts a write that a socket did not take whole.
func (l *Loop) Stalled() { l.stats.stalls.Add(1) }

// Delivered counts frames that were handed up at once.
func (l *Loop) Delivered(frames int) {
	l.stats.frames.Add(uint64(frames))
	l.stats.batches.Add(1)
}

// Passes notes that n bytes are handed up in this pass, with PassDone at its end.
func (l *Loop) Passes(n int) {
	l.passed = true
	l.passBytes += n
}
