// Package loads holds the figures by which shards are weighed: a meter at each region makes loads of what a runtime
// reads of its shards now and then, and a page for each region at the coordinator keeps what was said last (SHD-6).
package loads

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Shard is the load of one shard.
type Shard struct {
	Shard route.ShardID
	Load  strategy.Load
}

// Meter makes loads of readings, as the difference to those before. The zero value is ready.
type Meter struct {
	at   time.Duration
	last map[route.ShardID]strategy.Reading
}

// Measure returns the loads of the shards of which there is a reading under the same fence from the last call, by
// shard, and over how long they were measured; none the first time. The readings may come in any order.
func (m *Meter) Measure(now time.Duration, readings []strategy.Reading) (list []Shard, window time.Duration) {
	window = now - m.at
	first := m.last == nil
	next := make(map[route.ShardID]strategy.Reading, len(readings))
	for _, r := range readings {
		next[r.Shard] = r
		was, is := m.last[r.Shard]
		if first || !is || was.Fence != r.Fence || window <= 0 || r.Handled < was.Handled || r.HandlerTime < was.HandlerTime {
			continue
		}
		list = append(list, Shard{r.Shard, strategy.Load{Entities: r.Entities,
			Rate:        clamp(float64(r.Handled-was.Handled) / window.Seconds()),
			HandlerTime: clamp(float64(r.HandlerTime-was.HandlerTime) / float64(time.Microsecond) / window.Seconds()),
			Queued:      r.Queued}})
	}
	slices.SortFunc(list, func(a, b Shard) int { return cmp.Compare(a.Shard, b.Shard) })
	m.at, m.last = now, next
	if first {
		return nil, 0
	}
	return list, window
}

func clamp(f float64) uint32 { return uint32(min(math.Round(f), math.MaxUint32)) }

// Page is what a coordinator knows of the loads of one region. The zero value is empty.
type Page struct {
	Sum   strategy.Load // of those measured, each figure at most the largest number
	Count int           // how many these are
	Since time.Duration // no figure is older; zero: nothing is known
	Loads map[route.ShardID]strategy.Load
	Node  strategy.NodeLoad // as it came with them

	next map[route.ShardID]strategy.Load // parts that have come of what is said now
}

// Take takes a part of what a region says: the first one begins anew, with the last one it counts, as measured since
// then.
func (p *Page) Take(list []Shard, first, last bool, since time.Duration) {
	if first {
		p.next = make(map[route.ShardID]strategy.Load, len(list))
	}
	if p.next == nil {
		return // the first part is lost
	}
	for _, s := range list {
		p.next[s.Shard] = s.Load
	}
	if !last {
		return
	}
	p.Loads, p.next, p.Since = p.next, nil, max(since, 1)
	p.Sum, p.Count = strategy.Load{}, len(p.Loads)
	for _, l := range p.Loads { // a sum: the order does not show
		p.Sum.Entities = add(p.Sum.Entities, l.Entities)
		p.Sum.Rate = add(p.Sum.Rate, l.Rate)
		p.Sum.HandlerTime = add(p.Sum.HandlerTime, l.HandlerTime)
		p.Sum.Queued = add(p.Sum.Queued, l.Queued)
	}
}

func add(a, b uint32) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) }
