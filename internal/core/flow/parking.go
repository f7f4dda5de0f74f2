// Parking: the bounds that all slots of a type share, and the errors that name them.

package flow

import (
	"errors"
	"time"

	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
)

// Defaults of Parking.
const (
	DefaultParkRecords = 64 << 10
	DefaultParkBytes   = 4 << 20
	DefaultParkWait    = 30 * time.Second
)

// ErrOpen is returned by Park when the slot is open: the message goes to its home, not into the queue.
var ErrOpen = errors.New("flow: slot is open")

// Parking is what the slots of one type have in common: bounds, time limit and the budget they share. It is immutable
// and may be read by any number of slots at once; its errors are made once, so that refusing costs no allocation.
type Parking struct {
	records int
	bytes   int
	wait    time.Duration
	derived func() time.Duration // instead of wait, when it is set
	budget  Budget

	fullRecords, fullBytes, fullBudget error
}

// NewParking returns the bounds of a type's slots: at most records messages and bytes bytes in one slot (each message
// counts its frame and ParkOverhead), wait as the longest time parked, and budget over all slots, nil for none. Zero
// numbers mean the defaults.
func NewParking(records, bytes int, wait time.Duration, budget Budget) *Parking {
	p := &Parking{records: records, bytes: bytes, wait: wait, budget: budget}
	if p.records <= 0 {
		p.records = DefaultParkRecords
	}
	if p.bytes <= 0 {
		p.bytes = DefaultParkBytes
	}
	if p.wait <= 0 {
		p.wait = DefaultParkWait
	}
	p.fullRecords = &route.ParkFullError{Bound: "messages of the shard", Limit: p.records}
	p.fullBytes = &route.ParkFullError{Bound: "bytes of the shard", Limit: p.bytes}
	if budget != nil {
		p.fullBudget = &route.ParkFullError{Bound: "bytes of all shards", Limit: budget.Bound()}
	}
	return p
}

// Follow sets the function that gives the longest time parked; each message calls it anew. Call Follow before the
// bounds are used. Every goroutine that parks may call wait.
func (p *Parking) Follow(wait func() time.Duration) { p.derived = wait }

// longest is how long a message that comes now may wait.
func (p *Parking) longest() time.Duration {
	if p.derived != nil {
		return p.derived()
	}
	return p.wait
}

// ParkOverhead is what a parked message counts beyond its frame: its deadline and its length.
const ParkOverhead = deadlineSize + ringbuf.RecordOverhead

const deadlineSize = 8

func (p *Parking) take(n int) bool { return p.budget == nil || p.budget.Take(n) }

func (p *Parking) force(n int) {
	if p.budget != nil {
		p.budget.Force(n)
	}
}

func (p *Parking) give(n int) {
	if p.budget != nil && n > 0 {
		p.budget.Give(n)
	}
}
