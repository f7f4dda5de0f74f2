// Counts: what an admin interface counts of its requests, and tells the log of those that are refused.

package admin

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Stats are the counters of one admin interface, as GET /v1/stats has them beside those of the node.
type Stats struct {
	Streams            int    // of events, that are open
	StreamsRefused     uint64 // one too many (503)
	Connections        int    // that are open; of an embedder's own server none
	ConnectionsRefused uint64 // one too many (503)
	HostsRefused       uint64 // requests by a name that is none of this interface's (421)
	TokensRefused      uint64 // requests without the token (401), or where none is configured (403)
	BadRequests        uint64 // no such path or method (404, 405), and what could not be read (400, 408, 413)
}

// counters are what Stats is read of.
type counters struct {
	streamsRefused, connsRefused, hostsRefused, tokensRefused, badRequests atomic.Uint64

	streams, conns chan struct{} // a token for each that is open
	lastTold       atomic.Int64  // when the log was last told of a refusal, in Unix nanoseconds
}

// read returns the counters as of now.
func (c *counters) read() Stats {
	return Stats{len(c.streams), c.streamsRefused.Load(), len(c.conns), c.connsRefused.Load(), c.hostsRefused.Load(),
		c.tokensRefused.Load(), c.badRequests.Load()}
}

// tellEvery is how often the log is told of a refusal: whoever reaches the port can have requests refused.
const tellEvery = time.Second

// tell logs a refusal, unless one was logged a moment ago; the counters have them all.
func (c *counters) tell(log *slog.Logger, what string, q *http.Request) {
	now, last := time.Now().UnixNano(), c.lastTold.Load()
	if now-last < int64(tellEvery) || !c.lastTold.CompareAndSwap(last, now) {
		return
	}
	log.Warn(what, "event", "admin-refused", "path", q.URL.Path, "host", q.Host, "from", q.RemoteAddr)
}
