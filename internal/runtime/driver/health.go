// Health: where the node stands, for health checks that must have an answer even when the control goroutine is stuck.

package driver

import (
	"context"
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/shutdown"
	"github.com/kith-io/kith/stats"
)

// Health says where a node stands, since when and why; the root package documents it.
type Health struct {
	State   membership.NodeState
	Since   time.Time
	Reason  string
	Waiting membership.Waiting
	// Draining: everything moves away from this node, which stays.
	Draining bool
	// Leases are the singletons that wait here for their lease.
	Leases []stats.LeaseWait
	// Duplicates are the other clusters of this one's name, and other sides of this one, that were met lately.
	Duplicates []membership.Duplicate
	// Outages are the members that do not answer, or were lost and have shards that wait.
	Outages []stats.Outage
	// Stalled is how long the control goroutine has not stepped, from stalledAfter on; Stuck: longer than the takeover
	// time.
	Stalled time.Duration
	Stuck   bool
}

// stalledAfter is how long the control goroutine may not step before the node is sent no work: it steps each 500 ms
// where nothing happens.
const stalledAfter = 2 * time.Second

// health is what the control goroutine last said of its node, and what outweighs that.
type health struct {
	said  atomic.Pointer[membership.Health]
	twins atomic.Pointer[[]membership.Duplicate]
	look  time.Duration            // when to look again what a node waits for; the control goroutine's
	told  atomic.Pointer[[]string] // the seeds that an operator gave the node

	start  time.Time
	gate   *exec.Gate
	clock  func() time.Duration
	ending *phases
	ended  *atomic.Pointer[shutdown.EndedError]
	counts *atomic.Pointer[node.Counts]
	leases func() []stats.LeaseWait
	outage func(now time.Duration) []stats.Outage
	strain strain
}

func (h *health) init(d *Driver) {
	h.start, h.gate, h.clock, h.ending, h.ended = d.start, &d.exec.Gate, d.now, d.phases, &d.err
	h.counts, h.leases = &d.counts, func() []stats.LeaseWait { return leaseWaits(d) }
	h.outage = func(now time.Duration) []stats.Outage { return d.takeover.told(d.start, now) }
	h.said.Store(&membership.Health{Reason: "it is being started"})
	h.twins.Store(&[]membership.Duplicate{})
}

// note keeps what the node says, when that is news. What a node waits for is looked at twice a second. Control
// goroutine.
func (h *health) note(now time.Duration, n *node.Node) {
	if met := node.Duplicates(n); !slices.Equal(met, *h.twins.Load()) {
		h.twins.Store(&met)
	}
	said := h.said.Load()
	waits := said.State == membership.StateStarting || said.State == membership.StateWaiting
	same := n.State() == said.State && n.State() != membership.StateSuspended
	if same && !(waits && now >= h.look) {
		return
	}
	next := n.Health()
	if next.State == said.State && next.Reason == said.Reason {
		return
	}
	h.look = now + controlRest
	h.said.Store(&next)
}

// Health says where the node stands. Any goroutine; it waits for nobody.
func (h *health) Health() Health {
	said, now := h.said.Load(), h.clock()
	out := Health{State: said.State, Since: h.start.Add(said.Since), Reason: said.Reason, Waiting: said.Waiting,
		Leases: h.leases(), Duplicates: slices.Clone(*h.twins.Load()), Outages: h.outage(now)}
	if c := h.counts.Load(); c != nil {
		out.Draining = c.Sharding.Draining
	}
	if why := h.ended.Load(); why != nil {
		return Health{State: membership.StateEnded, Since: why.At, Reason: why.Error()}
	}
	if why := h.ending.reason(); why != "" && out.State < membership.StateSuspended {
		out.State, out.Reason = membership.StateLeaving, "its shutdown runs: "+string(why)
	}
	h.stall(&out, now)
	return out
}

// stall adds what the age of the last step says: others hold a node that does not step for lost, and may own all that
// was its own once the takeover time, twice the limit of the gate, is over.
func (h *health) stall(out *Health, now time.Duration) {
	age := h.gate.StepAge(now)
	if age < stalledAfter {
		return
	}
	out.Stalled, out.Stuck = age, age > 2*h.gate.Limit()
	out.Reason = fmt.Sprintf("the control goroutine has not stepped for %v", age.Round(time.Millisecond))
	if h.gate.Held(now) {
		out.Reason += ": nothing is handled until it has"
		if out.State != membership.StateSuspended {
			out.State, out.Since = membership.StateSuspended, h.start.Add(now-age)
		}
	}
}

// suspension is the node's account as statistics have it.
func (h *health) suspension(s node.Suspensions) stats.Suspension {
	out := stats.Suspension{Now: s.On, Reason: s.Why, Count: s.Count, Total: s.Total}
	if s.On {
		out.Since = h.start.Add(s.Since)
		out.Total += h.clock() - s.Since
	}
	return out
}

// notReadyPatience is how long the control goroutine has to say what this node waits for.
const notReadyPatience = time.Second

// notReady is the error of a Ready that timed out: it says what the node waits for.
func notReady(d *Driver, why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), notReadyPatience)
	defer cancel()
	w, err := asked(ctx, d, func(n *node.Node) membership.Waiting { return n.Waiting() })
	switch {
	case d.Err() != nil:
		return d.Err()
	case err != nil:
		w.Detail = "the control goroutine does not answer"
	case w.For == membership.WaitNothing:
		w.Detail = "it is on its way in or out at this moment"
	}
	d.log.Warn("gave up waiting until this node is up", "node", d.self, "waits_for", w.For, "why", w.Detail, "error", why)
	return &membership.NotReadyError{Waiting: w, Err: why}
}

// strain reads what the Go runtime knows of the process, on the goroutine of the node's steps. The zero value is ready.
type strain struct {
	last [3]float64 // processor seconds: all that there were, idle ones, those of the collector
	is   strategy.NodeLoad
}

// strainNames are what is read, in this order.
var strainNames = [...]string{"/cpu/classes/total:cpu-seconds", "/cpu/classes/idle:cpu-seconds",
	"/cpu/classes/gc/total:cpu-seconds", "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes",
	"/gc/gomemlimit:bytes"}

// strainOver is over how many processor seconds of all processors shares are measured at least.
const strainOver = 0.1

// read returns the load of this process since it was read last, a tenth of a second ago or more; since the start, the
// first time.
func (s *strain) read() strategy.NodeLoad {
	list := make([]metrics.Sample, len(strainNames))
	for i, name := range strainNames {
		list[i].Name = name
	}
	metrics.Read(list)
	var now [3]float64
	for i := range now {
		if list[i].Value.Kind() != metrics.KindFloat64 {
			return strategy.NodeLoad{} // a later Go runtime does not know it
		}
		now[i] = list[i].Value.Float64()
	}
	if all := now[0] - s.last[0]; all >= strainOver {
		s.is.Processor = thousandths(1 - (now[1]-s.last[1])/all)
		s.is.Collector = thousandths((now[2] - s.last[2]) / all)
		s.last = now
	}
	s.is.Memory = 0
	if limit := number(list[5]); limit > 0 && limit < math.MaxInt64 {
		s.is.Memory = thousandths((number(list[3]) - number(list[4])) / limit)
	}
	return s.is
}

func number(s metrics.Sample) float64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return float64(s.Value.Uint64())
}

// thousandths returns a share, at most 2.
func thousandths(share float64) uint16 { return uint16(math.Round(min(max(share, 0), 2) * 1000)) }
