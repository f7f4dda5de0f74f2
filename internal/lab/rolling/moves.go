// Moves: what the nodes report of the shards that move, gathered to say how long each phase of a move took.

package rolling

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// fact is one event about one shard, by the clock of the run.
type fact struct {
	What  kith.ShardEventKind
	Shard kith.ShardID
	At    time.Duration
}

// facts is what a node has reported of its moves.
type facts struct {
	clock cli.Clock
	over  chan struct{} // closed when the node has ended

	mu     sync.Mutex
	list   []fact
	downed []string
}

// read gathers what a node tells until it ends.
func (f *facts) read(node *kith.Node) {
	defer close(f.over)
	for e := range node.ShardEvents(context.Background()) {
		switch e.Kind {
		case kith.MoveBegan, kith.MoveMarked, kith.ShardReleased, kith.MoveDone, kith.MoveAborted, kith.MoveReturned:
			f.note(fact{e.Kind, e.Shard, f.clock.Now() - time.Since(e.At)})
		}
	}
}

// watch gathers the members that are downed, until the node ends.
func (f *facts) watch(node *kith.Node) {
	for e := range node.Events(context.Background()) {
		f.event(e)
	}
}

// event notes a member that was downed. One that its own next process replaced is not healthy: it has left, and on a
// fast machine the next one joins before all have seen it go.
func (f *facts) event(e kith.Event) {
	if e.Kind != kith.MemberDowned || e.Member.Cause == kith.CauseReplaced ||
		e.Member.Cause == kith.CauseProvenDead {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.downed = append(f.downed, e.Member.ID.String())
}

// lost returns the members that were downed so far.
func (f *facts) lost() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.downed)
}

func (f *facts) note(x fact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, x)
}

// take hands over what was gathered since the last time.
func (f *facts) take() []fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// phases is how long the phases of moves took: until nobody sends to the owner any more, until it has stopped, until
// the next owner has confirmed it; and all of them together.
type phases struct{ mark, stop, start, whole []time.Duration }

// phasesOf makes that out of the facts of all nodes, which is why they are sorted first. A move with a shard that came
// back is one that was given up.
func phasesOf(list []fact) (p phases, done, aborted int) {
	slices.SortStableFunc(list, func(a, b fact) int { return cmp.Compare(a.At, b.At) })
	open := map[kith.ShardID]map[kith.ShardEventKind]time.Duration{}
	for _, f := range list {
		m := open[f.Shard]
		switch {
		case f.What == kith.MoveBegan:
			open[f.Shard] = map[kith.ShardEventKind]time.Duration{kith.MoveBegan: f.At}
		case f.What == kith.MoveAborted, f.What == kith.MoveReturned:
			aborted++
			delete(open, f.Shard)
		case f.What != kith.MoveDone && m != nil:
			m[f.What] = f.At
		case f.What == kith.MoveDone:
			done++
			delete(open, f.Shard)
			marked, isMarked := m[kith.MoveMarked]
			released, isReleased := m[kith.ShardReleased]
			if !isMarked || !isReleased {
				continue // another coordinator began it
			}
			p.mark = append(p.mark, marked-m[kith.MoveBegan])
			p.stop = append(p.stop, released-marked)
			p.start = append(p.start, f.At-released)
			p.whole = append(p.whole, f.At-m[kith.MoveBegan])
		}
	}
	return p, done, aborted
}

// quantile returns the value under which so many of 1,000 are; zero of nothing.
func quantile(list []time.Duration, of1000 int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[min(len(s)*of1000/1000, len(s)-1)]
}
