// Package starts simulates nodes that know nobody and find each other, over histories of discovery that a seed draws:
// partial, stale, split, flapping and failing answers, lost probes, restarts, addresses that change. It checks that at
// most one cluster forms, and exactly one once discovery tells the truth (BOOT-7).
package starts

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Result is what many starts came to.
type Result struct {
	Starts     int     `json:"starts"`
	Nodes      int     `json:"nodes"`
	Clusters   int     `json:"clusters"`     // that formed, one after the other where all nodes were restarted
	Violations int     `json:"violations"`   // of which a seed is reported
	Two        int     `json:"two_clusters"` // at one time, which the rules forbid; among the violations
	NotOne     int     `json:"not_one"`      // no cluster, or more than one, when discovery was true; likewise
	WrongName  int     `json:"wrong_name"`   // joins of a cluster of another name; likewise
	Forgotten  int     `json:"forgotten"`    // second clusters by a process that promised after its predecessor did
	Unsafe     int     `json:"unsafe"`       // second clusters where fewer than a majority were required
	Restarts   int     `json:"restarts"`
	FormP50    float64 `json:"form_p50_s"` // from the last start, or from when discovery tells the truth, until all joined
	FormP99    float64 `json:"form_p99_s"`
	Wall       float64 `json:"wall_seconds"`
}

// Found is a violation.
type Found struct {
	Seed uint64
	What string
}

// Run simulates starts of the seeds from first on, by workers at a time (0: one per processor), and tells each
// violation. The result does not depend on the number of workers, but for the time that it took.
func Run(first uint64, starts, workers int, tell func(Found)) Result {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	began := time.Now()
	var next atomic.Int64
	var lock sync.Mutex
	var all sync.WaitGroup
	total := Result{Starts: starts}
	var times []time.Duration
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(starts); i = next.Add(1) - 1 {
				seed := first + uint64(i)
				w := newWorld(seed)
				w.run()
				lock.Lock()
				times = append(times, w.add(&total)...)
				for _, what := range w.found {
					tell(Found{seed, what})
				}
				lock.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(times)
	if n := len(times); n > 0 {
		total.FormP50, total.FormP99 = times[n/2].Seconds(), times[n*99/100].Seconds()
	}
	total.Wall = time.Since(began).Seconds()
	return total
}

// add adds what one start came to, and returns how long its cluster took.
func (w *world) add(r *Result) (took []time.Duration) {
	r.Nodes += len(w.hosts)
	r.Clusters += w.formed
	r.Violations += len(w.found)
	r.Two += w.two
	r.NotOne += w.notOne
	r.WrongName += w.wrongName
	r.Forgotten += w.forgotten
	r.Unsafe += w.unsafe
	r.Restarts += w.restarts
	if w.took > 0 {
		took = append(took, w.took)
	}
	return took
}

// event is something that is due.
type event struct {
	at  time.Duration
	seq int
	run func()
}

func (e event) compare(o event) int {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.seq, o.seq))
}

// events is a heap of what is due.
type events struct {
	list []event
	seq  int
}

func (q *events) push(at time.Duration, run func()) {
	q.seq++
	q.list = append(q.list, event{at, q.seq, run})
	for i := len(q.list) - 1; i > 0; {
		up := (i - 1) / 2
		if q.list[up].compare(q.list[i]) <= 0 {
			return
		}
		q.list[up], q.list[i] = q.list[i], q.list[up]
		i = up
	}
}

func (q *events) pop() event {
	top, n := q.list[0], len(q.list)-1
	q.list[0] = q.list[n]
	q.list = q.list[:n]
	for i := 0; ; {
		least := i
		for _, down := range []int{2*i + 1, 2*i + 2} {
			if down < n && q.list[down].compare(q.list[least]) < 0 {
				least = down
			}
		}
		if least == i {
			return top
		}
		q.list[i], q.list[least] = q.list[least], q.list[i]
		i = least
	}
}

// violate notes what must not be.
func (w *world) violate(count *int, format string, args ...any) {
	*count++
	w.found = append(w.found, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(format, args...))
}

// chance is true once in n times.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// between draws a duration.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}
