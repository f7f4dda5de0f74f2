// Waits: calls that would wait look whether they were made by a goroutine that must not.

package exec

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/kith-io/kith/entity"
)

const lookDepth = 128 // calls up to which a stack is looked at

// mustNotBlock are the functions below which user code holds up others: the calls of Worker and Inline handlers.
var mustNotBlock = func() []string {
	host := reflect.TypeFor[entity.Shard]().PkgPath()
	return []string{host + ".(*Shard).handle", host + ".(*Shard).Dispatch", host + ".(*Shard).halt"}
}()

// Waits knows which goroutines must not wait. Methods are safe for concurrent use once Also is set.
type Waits struct {
	Also []string // full names of more functions below which user code holds up others

	out   atomic.Bool                      // user code that must not block is called
	known atomic.Pointer[map[uintptr]bool] // places in the program, and whether they lie in such a function
}

// CallingOut notes that this node calls user code that must not block.
func (w *Waits) CallingOut() {
	if !w.out.Load() {
		w.out.Store(true)
	}
}

// MayWait returns entity.ErrWouldBlock when the caller's caller was called by a goroutine that must not wait. Only
// calls that may look are slow anyway: this walks the stack, which takes some hundred nanoseconds. Nodes that host no
// Worker or Inline entities and call no functions of the embedder's do not look.
func (w *Waits) MayWait() error {
	if !w.out.Load() {
		return nil
	}
	var pcs [lookDepth]uintptr
	for _, pc := range pcs[:runtime.Callers(3, pcs[:])] {
		if w.mustNotBlock(pc) {
			return fmt.Errorf("%w: it runs on a worker, an event loop or in a hook", entity.ErrWouldBlock)
		}
	}
	return nil
}

// callersMost bounds what is remembered.
const callersMost = 4096

// mustNotBlock reports whether a place lies in one of the functions. What was found is remembered: to ask the runtime
// allocates, and a sender that is held up again and again asks thousands of times a second. Looking costs a load and a
// search.
func (w *Waits) mustNotBlock(pc uintptr) bool {
	known := w.known.Load()
	if known != nil {
		if is, ok := (*known)[pc]; ok {
			return is
		}
	}
	f := runtime.FuncForPC(pc - 1)
	is := f != nil && (slices.Contains(mustNotBlock, f.Name()) || slices.Contains(w.Also, f.Name()))
	more := map[uintptr]bool{}
	if known != nil {
		if len(*known) >= callersMost {
			return is
		}
		more = maps.Clone(*known)
	}
	more[pc] = is
	w.known.CompareAndSwap(known, &more) // what is lost against another goroutine is found the next time
	return is
}
