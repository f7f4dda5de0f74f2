// Package callback calls functions that a user has given and that are nobody's handlers: hooks, look-ups, leases, what
// is called with an answer. One that panics, or ends its goroutine, ends neither the node nor the process: that is
// counted, and logged, the first of each function with its stack.
package callback

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
)

// ErrPanicked is matched by the error of a function that panicked, or called runtime.Goexit.
var ErrPanicked = errors.New("kith: a callback panicked")

// every is how often one function's panics are logged.
const every = time.Second

// maxStack is the most bytes of a stack that are logged.
const maxStack = 8 << 10

// Guard calls functions of one node. The zero value counts and logs nothing; so does nil, which recovers all the same.
// Log is set before the first call. Methods are safe for concurrent use.
type Guard struct {
	Log *slog.Logger

	count atomic.Uint64
	told  sync.Map // *telling by name: there are as many as functions in a configuration
}

// telling is what was logged of one function.
type telling struct {
	at     atomic.Int64  // since the process began; zero: nothing yet
	missed atomic.Uint64 // since then
}

var began = time.Now()

// Count returns how often a function did not return.
func (g *Guard) Count() uint64 {
	if g == nil {
		return 0
	}
	return g.count.Load()
}

// Call calls f, and returns nil when it has returned, else an error that matches ErrPanicked. name is that of the
// field that f was given in. When f calls runtime.Goexit, Call does not return either; the deferred functions of its
// caller run. A panic of ours (package invariant) goes on.
func (g *Guard) Call(name string, f func()) (err error) {
	returned := false
	defer func() {
		v := recover()
		if broken, ours := v.(*invariant.Violation); ours {
			panic(broken)
		}
		if !returned {
			err = g.note(name, v)
		}
	}()
	f()
	returned = true
	return nil
}

// note counts and logs that a function did not return: v is what it panicked with, nil if it ended its goroutine.
func (g *Guard) note(name string, v any) error {
	if v == nil {
		v = "runtime.Goexit was called"
	}
	err := fmt.Errorf("%w: %s: %.1000v", ErrPanicked, name, v)
	if g == nil {
		return err
	}
	g.count.Add(1)
	entry, _ := g.told.LoadOrStore(name, &telling{})
	t, now := entry.(*telling), int64(time.Since(began))+1
	last := t.at.Load()
	if last != 0 && now-last < int64(every) || !t.at.CompareAndSwap(last, now) {
		t.missed.Add(1)
		return err
	}
	switch {
	case g.Log == nil:
	case last != 0:
		g.Log.Error("callback panicked again", "callback", name, "panic", fmt.Sprintf("%.1000v", v),
			"not_logged", t.missed.Swap(0))
	default:
		stack := debug.Stack()
		g.Log.Error("callback panicked", "callback", name, "panic", fmt.Sprintf("%.1000v", v),
			"stack", string(stack[:min(len(stack), maxStack)]))
	}
	return err
}
