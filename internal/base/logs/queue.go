// Queue: what waits for a logger, the goroutine that carries it there, and what is lost when there is no room.

package logs

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a Queue.
const (
	// MaxWaiting is how many records and writes wait for a logger. One more is dropped and counted.
	MaxWaiting = 4096
	// MaxWaitingBytes bounds the bytes of the writes among them (Queue.Writer).
	MaxWaitingBytes = 4 << 20
	// FlushTime is how long the end of a node, a server or a program waits for its logger.
	FlushTime = time.Second
)

// Queue carries records to one handler, and bytes to writers, in the order in which they came. Its goroutine runs while
// there is something to carry, so a queue needs no end. It is safe for concurrent use, by what it carries to as well.
type Queue struct {
	next slog.Handler

	mu      sync.Mutex
	jobs    []job
	bytes   int    // of writes that are not over
	running bool   // the goroutine
	taken   uint64 // jobs that came
	done    uint64 // jobs that are over
	untold  uint64 // that were dropped since the last line about it
	stood   time.Time
	waiters []waiter

	dropped atomic.Uint64
	busy    atomic.Int64 // since when the job that is carried out has been, nanoseconds since began; zero: none is
}

// job is one record or write.
type job struct {
	run   func()
	bytes int
	looks bool // it carries nothing
}

// waiter waits until so many jobs are over.
type waiter struct {
	done uint64
	bell chan struct{}
}

// New makes a queue in front of a handler.
func New(next slog.Handler) *Queue { return &Queue{next: next} }

// Behind returns l behind a queue, and that queue. One that stands behind a queue already is returned as it is, so that
// a program's own queue is that of all that log to it. Nil is silent.
func Behind(l *slog.Logger) (*slog.Logger, *Queue) {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	if h, ok := l.Handler().(*handler); ok {
		return l, h.q
	}
	q := New(l.Handler())
	return q.Logger(), q
}

// Logger returns a logger to the queue.
func (q *Queue) Logger() *slog.Logger {
	return slog.New(&handler{q: q, build: func() slog.Handler { return q.next }})
}

// Dropped returns how many records and writes found no room, or made the logger panic.
func (q *Queue) Dropped() uint64 { return q.dropped.Load() }

// Stalled returns for how long the logger has been busy with what it was given last; zero: it waits for more.
func (q *Queue) Stalled() time.Duration {
	if since := q.busy.Load(); since != 0 {
		return max(0, time.Since(began)-time.Duration(since))
	}
	return 0
}

// began is what moments are counted from.
var began = time.Now()

// sinceBegan is now, never zero.
func sinceBegan() int64 { return max(1, int64(time.Since(began))) }

// put queues one job, or drops it, which is counted unless it only looks.
func (q *Queue) put(j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken-q.done >= MaxWaiting || q.bytes > 0 && q.bytes+j.bytes > MaxWaitingBytes {
		if j.looks {
			return false
		}
		if q.untold == 0 {
			q.stood = time.Now()
		}
		q.untold++
		q.dropped.Add(1)
		return false
	}
	q.add(j)
	if !q.running {
		q.running = true
		go q.run()
	}
	return true
}

// add queues one job. The lock is held.
func (q *Queue) add(j job) {
	q.jobs = append(q.jobs, j)
	q.bytes += j.bytes
	q.taken++
}

// run carries everything out that waits, then ends.
func (q *Queue) run() {
	var list []job
	for {
		q.mu.Lock()
		if lost, since := q.untold, q.stood; lost > 0 { // what was dropped came behind all that waits
			q.untold = 0
			q.add(job{run: func() { q.tellDropped(lost, since) }})
		}
		list, q.jobs = q.jobs, list[:0]
		if len(list) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for i := range list {
			q.carry(list[i].run)
			q.over(list[i].bytes)
			list[i] = job{}
		}
	}
}

// carry carries one job out. A logger that panics has lost what it was given, and ends nobody.
func (q *Queue) carry(run func()) {
	q.busy.Store(sinceBegan())
	defer func() {
		q.busy.Store(0)
		if recover() != nil {
			q.dropped.Add(1)
		}
	}()
	run()
}

// over counts a job that is over, and wakes the goroutines that wait for it.
func (q *Queue) over(bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done++
	q.bytes -= bytes
	q.waiters = slices.DeleteFunc(q.waiters, func(w waiter) bool {
		if q.done >= w.done {
			close(w.bell)
		}
		return q.done >= w.done
	})
}

// tellDropped says how many found no room since then.
func (q *Queue) tellDropped(n uint64, since time.Time) {
	slog.New(q.next).Warn("log records dropped: the logger stood still", "dropped", n, "since", since)
}

// Flush waits until everything that was given before is carried out, for so long at most. It returns false when that
// was not long enough.
func (q *Queue) Flush(most time.Duration) bool {
	q.mu.Lock()
	if q.done >= q.taken {
		q.mu.Unlock()
		return true
	}
	w := waiter{q.taken, make(chan struct{})}
	q.waiters = append(q.waiters, w)
	q.mu.Unlock()
	patience := time.NewTimer(most)
	defer patience.Stop()
	select {
	case <-w.bell:
		return true
	case <-patience.C:
		return false
	}
}

// Writer returns a writer to the queue, which carries its bytes to w, in their order among the records. It never waits
// and never fails; w's errors are nobody's. It keeps no hold of what it is given.
func (q *Queue) Writer(w io.Writer) io.Writer { return writer{q, w} }

type writer struct {
	q *Queue
	w io.Writer
}

// Write queues a copy of p.
func (w writer) Write(p []byte) (int, error) {
	b := slices.Clone(p)
	w.q.put(job{run: func() { _, _ = w.w.Write(b) }, bytes: len(b)})
	return len(p), nil
}
