// Rates: what a node does per second, and how long that takes, between two looks at its counters.

package admin

import (
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/latency"
)

// The time between two looks that a rate is said of: none is said of a shorter or a longer one.
const (
	leastBetween = time.Second
	mostBetween  = 15 * time.Second
)

// rates is the answer of GET /v1/rates: per second, between the last two looks. What has not been measured is absent.
type rates struct {
	Over     float64 `json:"over_s"`   // seconds between the two looks
	Handled  float64 `json:"handled"`  // messages given to handlers here
	Refused  float64 `json:"refused"`  // messages refused here, and those of this node refused elsewhere
	Failed   float64 `json:"failed"`   // calls into handlers that returned an error or panicked
	Lost     float64 `json:"lost"`     // accepted messages that were dropped, parked ones that failed
	DataIn   float64 `json:"data_in"`  // bytes on data connections
	DataOut  float64 `json:"data_out"` // the same
	Control  float64 `json:"control"`  // bytes on control connections, both ways
	Underway int     `json:"asks"`     // asks of this node that wait for their answers, now
	Sums     sums    `json:"sums"`     // since the start of the node
	Times    []times `json:"times"`    // how long handlers and asks took in between, sampled
}

// sums is what Refused, Failed and Lost of rates count, since the start of the node.
type sums struct {
	Refused uint64 `json:"refused"`
	Failed  uint64 `json:"failed"`
	Lost    uint64 `json:"lost"`
}

// times is how long one kind of call of one type took, in microseconds.
type times struct {
	Type    string       `json:"type"`
	Measure kith.Measure `json:"measure"`
	Samples int64        `json:"samples"`
	P50     float64      `json:"p50_us"`
	P99     float64      `json:"p99_us"`
	Max     float64      `json:"max_us"`
}

// counts is the counters that rates are made of.
type counts struct{ handled, refused, failed, lost, in, out, control uint64 }

func countsOf(s *kith.Stats) (c counts) {
	for i := range s.Types {
		t := &s.Types[i]
		c.handled += t.Handled
		c.refused += t.RefusedRemote
		for _, n := range t.Refused {
			c.refused += n
		}
		c.failed += t.Failed + t.Panics
		c.lost += t.ParkedLost + t.Dropped + t.Abandoned + t.Unsent
	}
	c.refused += s.Unregistered
	data, control := &s.Transport.Data, &s.Transport.Control
	c.in, c.out, c.control = data.BytesIn, data.BytesOut, control.BytesIn+control.BytesOut
	return c
}

// meter makes rates of what it is shown. All requests share it: frequent ones get the same stretch again.
type meter struct {
	times *latency.Recorder // nil: nothing is known of latencies

	mu   sync.Mutex
	at   time.Time
	last counts
	now  *rates // of the stretch that ended at at; nil when none is known
}

// look takes the counters of a moment, and returns the rates of the last stretch that was long enough, or nil.
func (m *meter) look(at time.Time, s *kith.Stats) *rates {
	m.mu.Lock()
	defer m.mu.Unlock()
	over, c := at.Sub(m.at), countsOf(s)
	if over < leastBetween {
		return m.now
	}
	r := &rates{Over: over.Seconds(), Underway: s.AsksUnderway, Sums: sums{c.refused, c.failed, c.lost}, Times: m.took()}
	for _, f := range []struct {
		rate      *float64
		now, last uint64
	}{{&r.Handled, c.handled, m.last.handled}, {&r.Refused, c.refused, m.last.refused},
		{&r.Failed, c.failed, m.last.failed}, {&r.Lost, c.lost, m.last.lost}, {&r.DataIn, c.in, m.last.in},
		{&r.DataOut, c.out, m.last.out}, {&r.Control, c.control, m.last.control}} {
		*f.rate = float64(f.now-min(f.now, f.last)) / r.Over
	}
	if m.now = r; over > mostBetween { // long ago, or the first look
		m.now = nil
	}
	m.at, m.last = at, c
	return m.now
}

// maxTimes bounds the latencies that are shown.
const maxTimes = 16

func (m *meter) took() []times {
	out := []times{}
	if m.times == nil {
		return out
	}
	for _, s := range m.times.Take() {
		if len(out) < maxTimes {
			out = append(out, times{s.Type, s.Measure, s.Count, micros(s.P50), micros(s.P99), micros(s.Max)})
		}
	}
	return out
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
