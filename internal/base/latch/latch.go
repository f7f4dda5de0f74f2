// Package latch is a lock that is given up by a plain store.
package latch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Latch is a mutex that is given up by a plain store. A sync.Mutex is given up by an instruction that waits until all
// that was written before has reached its lines of memory. Where these are another core's, as those of the buffer from
// which a link is written, that wait is most of what a message costs its sender. The zero value is free. It must not be
// copied. It is for what is held for some tens of nanoseconds, and not for long while others wait.
//
// A goroutine that finds it taken lets others run once. Then one of the waiting goroutines tries again and again, with
// a sleep between tries when the holder seems to be held up; the others sleep in line. A detector of races knows it as
// a lock.
type Latch struct {
	held  uint32
	queue sync.Mutex // of the goroutines that wait
}

const (
	tries = 64 // with others run between them
	nap   = 20 * time.Microsecond
)

// TryLock takes it if it is free, and reports whether it was.
func (l *Latch) TryLock() bool { return atomic.CompareAndSwapUint32(&l.held, 0, 1) }

// Lock takes it.
func (l *Latch) Lock() {
	if !l.TryLock() {
		l.wait()
	}
}

// Unlock gives it up. The caller has it.
func (l *Latch) Unlock() { storeRelease(&l.held) }

//go:noinline
func (l *Latch) wait() {
	runtime.Gosched()
	if l.TryLock() {
		return
	}
	l.queue.Lock()
	defer l.queue.Unlock()
	for n := 1; !l.TryLock(); n++ {
		if n%tries == 0 {
			time.Sleep(nap)
		} else {
			runtime.Gosched()
		}
	}
}
