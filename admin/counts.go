// Counts: what an admin interface counts of its requests, and logs of those that are refused.

package admin

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/door"
)

// Stats are the counters of one admin interface, as GET /v1/stats has them beside those of the node.
type Stats struct {
	Streams            int    // of events, that are open
	StreamsRefused     uint64 // one too many (503)
	StreamsPutOut      uint64 // that were closed for one of an address with fewer
	Connections        int    // that are open; of an embedder's own server none
	ConnectionsPutOut  uint64 // that had no request under way, and were closed for a later one
	ConnectionsRefused uint64 // one too many (503): all there were had requests under way
	ConnectionsSilent  uint64 // that said nothing in time
	RequestsRefused    uint64 // one too many (503)
	HostsRefused       uint64 // requests by a name that is none of this interface's (421)
	TokensRefused      uint64 // requests without the token (401), or where none is configured (403)
	BadRequests        uint64 // no such path or method (404, 405), and what could not be read (400, 408, 413)
}

// counters are what Stats is read of.
type counters struct {
	hostsRefused, tokensRefused, badRequests atomic.Uint64

	door          *door.Door // nil of an embedder's own server
	reads, probes *door.Gate
	streams       places
	lastTold      atomic.Int64 // when a refusal was last logged, in Unix nanoseconds
}

// newCounters are those of an interface with so many connections beside streams.
func newCounters(spare int) *counters {
	return &counters{probes: door.NewGate(door.Limits{Rate: probesPerSecond}), reads: door.NewGate(door.Limits{
		Rate: readsPerSecond, Places: min(mostReads, max(1, spare/4)), Rest: readsRest})}
}

// read returns the counters as of now.
func (c *counters) read() Stats {
	s := Stats{Streams: c.streams.open(), StreamsRefused: c.streams.refused.Load(), StreamsPutOut: c.streams.putOut.Load(),
		RequestsRefused: c.reads.Refused() + c.probes.Refused(), HostsRefused: c.hostsRefused.Load(),
		TokensRefused: c.tokensRefused.Load(), BadRequests: c.badRequests.Load()}
	if c.door != nil {
		d := c.door.Stats()
		s.Connections, s.ConnectionsPutOut, s.ConnectionsRefused, s.ConnectionsSilent = d.Open, d.PutOut, d.Refused, d.Silent
	}
	return s
}

// tellEvery is how often the log gets a refusal: anybody that reaches the port can have requests refused.
const tellEvery = time.Second

// tell logs a refusal, unless one was logged a moment ago; the counters have them all.
func (c *counters) tell(log *slog.Logger, what string, q *http.Request) {
	now, last := time.Now().UnixNano(), c.lastTold.Load()
	if now-last < int64(tellEvery) || !c.lastTold.CompareAndSwap(last, now) {
		return
	}
	log.Warn(what, "event", "admin-refused", "path", q.URL.Path, "host", q.Host, "from", q.RemoteAddr)
}
