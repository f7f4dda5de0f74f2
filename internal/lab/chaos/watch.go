// The watcher: asks every process how it sees the cluster, and notes what changes and what must not be.

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// watcher looks at all processes a few times a second.
type watcher struct {
	h *harness

	mu    sync.Mutex
	views map[int]string // by slot: the view that was noted last
	apart time.Duration  // since when there are several clusters; zero: there are not
	known map[uint64]bool
}

// The watcher's pace; how late it may be itself, and a process that no fault touches, before the machine is to blame;
// how long two clusters may be seen at a time, one of which has ended.
const (
	watchEvery = 200 * time.Millisecond
	stallLimit = 1500 * time.Millisecond
	freshFor   = 1500 * time.Millisecond
	twinFor    = 3 * time.Second
)

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	w.views, w.known = map[int]string{}, map[uint64]bool{}
	var busy sync.WaitGroup
	defer busy.Wait()
	for before := w.h.clock.Now(); cli.Pause(ctx, watchEvery); before = w.h.clock.Now() {
		if late := w.h.clock.Now() - before - watchEvery; late > stallLimit {
			w.h.stalled("the harness", late)
		}
		for _, s := range w.h.slots {
			if l := s.current(); l != nil {
				busy.Add(1)
				l.ask(ctx, w.h.clock, busy.Done)
			}
		}
		w.look()
		w.h.tell(w.h.book.read(w.h.clock.Now(), false))
	}
}

// toldMost is how many broken rules of one owner a run tells; all are counted.
const toldMost = 50

// tell adds lines about the rule of one owner.
func (h *harness) tell(lines []string) {
	for _, line := range lines {
		h.mu.Lock()
		h.found.told++
		n := h.found.told
		h.mu.Unlock()
		switch {
		case n <= toldMost:
			h.line.printf("VIOLATION: %s", line)
		case n == toldMost+1:
			h.line.printf("VIOLATION: more of this kind are only counted")
		}
	}
}

// look notes what the processes have reported.
func (w *watcher) look() {
	clusters := map[uint64][]int{}
	w.each(func(i int, l *life, st *status) {
		if st.Cluster != 0 && st.Up && st.Ended == "" && l.running() {
			clusters[st.Cluster] = append(clusters[st.Cluster], i)
		}
		if st.Late > stallLimit && !w.h.touchedNow(i) {
			w.h.stalled(name(i), st.Late)
		}
		w.note(i, st)
	})
	w.twins(clusters)
}

// each calls f for each process that has reported something, with its last report.
func (w *watcher) each(f func(slot int, l *life, st *status)) {
	for i, s := range w.h.slots {
		if l := s.current(); l != nil {
			if st, _, ok := l.told(); ok {
				f(i, l, &st)
			}
		}
	}
}

// note adds a line when a node sees something else than before.
func (w *watcher) note(slot int, s *status) {
	text := w.view(s)
	w.mu.Lock()
	same := w.views[slot] == text
	w.views[slot] = text
	w.mu.Unlock()
	if !same {
		w.h.line.notef("%s sees %s", name(slot), text)
	}
}

// view says in a line what a node sees.
func (w *watcher) view(s *status) string {
	if s.Cluster == 0 {
		return "no cluster"
	}
	all := make([]string, len(s.Members))
	for i, m := range s.Members {
		all[i] = w.h.nameOf(m.Addr) + " " + m.Status
		if m.Unreachable {
			all[i] += " UNREACHABLE"
		}
		if m.Addr == s.Leader {
			all[i] += " (leader)"
		}
	}
	slices.Sort(all)
	return fmt.Sprintf("cluster %016x: %s", s.Cluster, strings.Join(all, ", "))
}

// nameOf returns the name of the node at an address.
func (h *harness) nameOf(addr string) string {
	if i := slices.Index(h.seeds, addr); i >= 0 {
		return name(i)
	}
	return addr
}

// twins counts clusters that live beside another one.
func (w *watcher) twins(clusters map[uint64][]int) {
	now := w.h.clock.Now()
	if len(clusters) < 2 {
		w.apart = 0
		return
	}
	if w.apart == 0 {
		w.apart = now
	}
	if now-w.apart < twinFor {
		return
	}
	var ids []uint64
	for id := range clusters {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	fresh := 0
	var text []string
	for _, id := range ids {
		text = append(text, fmt.Sprintf("%016x of %s", id, names(clusters[id])))
		if !w.known[id] {
			fresh++
		}
		w.known[id] = true
	}
	if fresh == 0 {
		return
	}
	w.h.mu.Lock()
	w.h.found.twins += min(fresh, len(ids)-1)
	w.h.mu.Unlock()
	w.h.line.printf("VIOLATION: twins: clusters %s", strings.Join(text, ", "))
}

// agreed reports whether all nodes, in their reports since t, see exactly all nodes Up and reachable, in one cluster;
// if not, why.
func (w *watcher) agreed(t time.Duration) (why string, ok bool) {
	var cluster uint64
	for i, s := range w.h.slots {
		l := s.current()
		if l == nil || !l.running() {
			return name(i) + " does not run", false
		}
		st, at, ok := l.told()
		switch {
		case !ok || at < t || w.h.clock.Now()-at > freshFor:
			return name(i) + " tells nothing", false
		case st.Ended != "":
			return name(i) + " has ended: " + st.Ended, false
		}
		up := 0
		for _, m := range st.Members {
			if m.Status == kith.Up.String() && !m.Unreachable {
				up++
			}
		}
		if up != len(w.h.slots) || len(st.Members) != up {
			return name(i) + " sees " + w.view(&st), false
		}
		if cluster = cmp.Or(cluster, st.Cluster); cluster != st.Cluster {
			return name(i) + " is in another cluster", false
		}
	}
	return "", true
}

// await waits for a condition, and says why it does not hold when the bound is over.
func (w *watcher) await(ctx context.Context, bound time.Duration, is func() (string, bool)) (why string, ok bool) {
	for until := w.h.clock.Now() + bound; ; {
		if why, ok = is(); ok || w.h.clock.Now() > until || !cli.Pause(ctx, watchEvery/2) {
			return why, ok
		}
	}
}

// well waits until all nodes agree and every one has had answers from all entities to what it asked since t.
func (h *harness) well(ctx context.Context, t, bound time.Duration) (why string, ok bool) {
	every := make([]int, len(h.slots))
	for i := range every {
		every[i] = i
	}
	return h.watcher.await(ctx, bound, func() (string, bool) {
		if why, ok := h.watcher.agreed(t); !ok {
			return why, ok
		}
		return h.book.answered(every, t)
	})
}

// victims returns the nodes that a fault hits, by what the nodes tell now.
func (w *watcher) victims(f Fault) (who []int) {
	if f.Victims == 0 {
		return nil
	}
	votes := map[string]int{}
	best, most := -1, 0
	w.each(func(i int, _ *life, st *status) {
		switch f.First {
		case Owner:
			if st.Hosted > most {
				best, most = i, st.Hosted
			}
		case Coordinator:
			votes[st.Oldest]++
		case Leader:
			votes[st.Leader]++
		}
	})
	if f.First == Seed {
		best = 0
	}
	for i, addr := range w.h.seeds {
		if votes[addr] > most {
			best, most = i, votes[addr]
		}
	}
	if best >= 0 {
		who = append(who, best)
	}
	for _, i := range f.Order {
		if len(who) < f.Victims && !slices.Contains(who, i) {
			who = append(who, i)
		}
	}
	return who
}
