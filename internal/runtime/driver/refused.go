// Refusals: what this node refuses of another one until it reports that, and reports of what was not delivered.

package driver

import (
	"sync"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/route"
)

// refusals gathers what is refused of one sender until it is reported. Safe for concurrent use.
type refusals struct {
	mu      sync.Mutex
	list    plane.Refusals
	words   flow.ConsumedCounts // of connections from it that are over
	flights flow.InFlight       // of connections to it that are over
}

// settled runs f with what is not known of the tells sent to the node, and returns how many of them are lost.
func (rs *refusals) settled(f func(*flow.InFlight) uint64) (lost uint64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return f(&rs.flights)
}

// say notes what was taken of connections that are over, until it is said.
func (rs *refusals) say(t ...flow.Taken) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.words.Add(t...)
}

// takeConsumed returns that.
func (rs *refusals) takeConsumed() []flow.Taken {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.words.Take()
}

// add counts one refused tell.
func (rs *refusals) add(k plane.RefusalKey, id []byte) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.list.Add(k, id)
}

// giveBack takes what could not be reported yet.
func (rs *refusals) giveBack(list []*plane.Refusal) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.list.Return(list)
}

// take returns what was gathered, sorted, and starts anew.
func (rs *refusals) take() []*plane.Refusal {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.list.Take()
}

// Undelivered is package route's report of what was accepted here and not delivered.
type Undelivered = route.Undelivered
