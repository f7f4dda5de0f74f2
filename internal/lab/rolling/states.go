// States: what entities carry from owner to owner in a run with states, and the account of what arrived.

package rolling

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith"
)

// countSize is the size of the count that a state begins with, little-endian; padding follows.
const countSize = 8

// lives is what a process knows of the instances of its entities, which outlive them here.
type lives struct {
	mu sync.Mutex
	of map[string][]*life
}

// life is one instance. Its handler alone writes it.
type life struct {
	fence kith.Fence
	began atomic.Uint64 // the count that it took up
	taken atomic.Bool
	count atomic.Uint64
	over  atomic.Bool // its stop call has come
}

// Life is what a process reports of one instance.
type Life struct {
	Fence kith.Fence
	Began uint64 `json:",omitempty"` // the count that came from the last one
	Taken bool   `json:",omitempty"` // a state came
	Count uint64 `json:",omitempty"` // so far, or when it ended
	Over  bool   `json:",omitempty"`
}

// begin notes that an instance of an entity begins.
func (l *lives) begin(id string, fence kith.Fence) *life {
	x := &life{fence: fence}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string][]*life{}
	}
	l.of[id] = append(l.of[id], x)
	return x
}

// told returns a copy of what there is.
func (l *lives) told() map[string][]Life {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string][]Life, len(l.of))
	for id, list := range l.of {
		for _, x := range list {
			all[id] = append(all[id], Life{x.fence, x.began.Load(), x.taken.Load(), x.count.Load(), x.over.Load()})
		}
	}
	return all
}

// stateOf makes the state of an entity: its padding tells its entity, and its count.
func stateOf(id string, n uint64, pads int) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, countSize+pads), n)
	for i := range pads {
		b = append(b, id[i%len(id)]+byte(n)+byte(i>>8))
	}
	return b
}

// States is what became of the states.
type States struct {
	StateBytes  int    `json:"state_bytes"`  // of padding, of each state
	StatesTaken uint64 `json:"states_taken"` // by the next instances
	StatesLost  uint64 `json:"states_lost"`  // the next instance began without, or none began
	StatesOlder uint64 `json:"states_older"` // the next instance began with another count than the last one had
}

// compare follows each entity through its instances, in the order of their fences. settled is false while the last
// instance of an entity has stopped, or an earlier one has not.
func (s *States) compare(reports []map[string][]Life) (settled bool) {
	all := map[string][]Life{}
	for _, r := range reports {
		for id, list := range r {
			all[id] = append(all[id], list...)
		}
	}
	settled = true
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b Life) int { return a.Fence.Compare(b.Fence) })
		for i, x := range list {
			last := i == len(list)-1
			settled = settled && x.Over != last
			switch {
			case x.Taken:
				s.StatesTaken++
			case i > 0:
				s.StatesLost++
			}
			if x.Taken && (i == 0 || x.Began != list[i-1].Count) {
				s.StatesOlder++
			}
			if last && x.Over {
				s.StatesLost++
			}
		}
	}
	return settled
}
