// RunFrame: what runs of Blocking entities need once for each goroutine.

package entity

import "time"

// RunFrame is what runs of Blocking entities need once for each goroutine that makes them: the Context of the call that
// is being made, and what the calls count. All runs of one goroutine, one after the other, may share one, of whichever
// shards they are; so what most messages write stays with the goroutine. The zero value is ready.
type RunFrame struct {
	ctx   *Context      // nil: none was needed yet
	tally Tally         // of the run that goes on
	now   time.Duration // a reading of the clock that no call has made old yet; zero: none
}

// Saw tells the run what Runtime.Now may be taken for until its next call, as Enter does for the first.
func (f *RunFrame) Saw(now time.Duration) { f.now = now }

// context returns the Context for the next call of the run.
func (f *RunFrame) context() *Context {
	switch {
	case f.ctx == nil:
		f.ctx = &Context{}
	case f.ctx.spent:
		f.ctx = forNext(f.ctx)
	}
	return f.ctx
}
