// What goes on beside the entities of a shard: which of them the application remembers is read, so that they live
// without messages, and Type.Hosted is called as long as the shard lives here.

package exec

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

const (
	recallMost    = 4  // lists that are read at a time
	recallChunk   = 64 // ids that a shard is given at a time
	recallRest    = time.Second
	recallRestMax = time.Minute
)

// recaller reads the lists of shards that have begun to live here, each on a goroutine that may block.
type recaller struct {
	x *Exec

	mu    sync.Mutex
	wait  []recallJob
	busy  int
	given map[*Host]recalls // orders that are on their way
}

// recallJob is a shard with a list to be read.
type recallJob struct {
	h     *Host
	at    time.Duration // not before
	tries int           // that failed
}

// recalls is what a host is given of its list.
type recalls struct {
	ids  []string
	done chan struct{}
}

// add queues a shard: the ticker reads its list at its next turn.
func (r *recaller) add(j recallJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait = append(r.wait, j)
	j.h.t.recalls.waiting.Add(1)
}

// tick starts to read the lists that are due, as many as may be read at a time. The ticker's goroutine.
func (r *recaller) tick(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := r.wait[:0]
	for _, j := range r.wait {
		switch {
		case j.h.end.began.Load() || j.h.end.lost.Load(): // the next owner reads it
			j.h.t.recalls.waiting.Add(-1)
		case r.busy == recallMost || j.at > now:
			rest = append(rest, j)
		default:
			r.busy++
			go r.read(j)
		}
	}
	clear(r.wait[len(rest):])
	r.wait = rest
}

// put keeps what a host is given until it carries out the order.
func (r *recaller) put(h *Host, what recalls) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given == nil {
		r.given = map[*Host]recalls{}
	}
	r.given[h] = what
}

// take returns it, once; nothing when there is nothing any more.
func (r *recaller) take(h *Host) recalls {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := r.given[h]
	delete(r.given, h)
	return what
}

// count returns how many lists are being read, and calls of Type.Hosted have not returned.
func (r *recaller) count() int {
	calls := r.x.Attendants.Count()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy + calls
}

// read reads one list, to its end or until the shard is no longer served.
func (r *recaller) read(j recallJob) {
	ctx := j.h.life.Serving(r.x.Gate.Closed)
	err := readList(ctx, j.h)
	ended := ctx.Err() != nil
	switch {
	case ended: // when the node goes on after a suspension it is read anew
	case err != nil:
		reportRecall(j.h, err.Error())
		j.at = r.x.Clock.Now() + min(recallRest<<min(j.tries, 10), recallRestMax)
		j.tries++
	default:
		j.h.t.recalls.read.Add(1)
		j.h.t.recalls.waiting.Add(-1)
	}
	r.take(j.h) // that of a shard which was lost or stopped is carried out by nobody
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	if err != nil || ended {
		r.wait = append(r.wait, j)
	}
}

// readList gives a shard the ids of its list, a few at a time.
func readList(ctx context.Context, h *Host) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	ids := make([]string, 0, recallChunk)
	for id, err := range h.t.typ.Remembered(ctx, h.shard, h.fence) {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case route.CheckID(id) != nil:
			reportRecall(h, route.CheckID(id).Error())
			continue
		}
		if n, err := h.t.typ.ShardOf(id); err != nil {
			reportRecall(h, fmt.Sprintf("%q: %v", id, err))
			continue
		} else if n != h.shard {
			reportRecall(h, fmt.Sprintf("%q is of shard %d, of %d", id, n, h.t.shards))
			continue
		}
		if ids = append(ids, strings.Clone(id)); len(ids) == recallChunk {
			if err := h.recall(ctx, ids); err != nil {
				return err
			}
			ids = make([]string, 0, recallChunk)
		}
	}
	return h.recall(ctx, ids)
}

// recall begins entities, and waits until they have.
func (h *Host) recall(ctx context.Context, ids []string) error {
	done := make(chan struct{})
	h.x.recaller.put(h, recalls{ids, done})
	h.give(orderRecall)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recallNow carries out an orderRecall. Called where the host's messages are ordered.
func recallNow(h *Host, now time.Duration) {
	if r := h.x.recaller.take(h); r.done != nil && !h.end.lost.Load() {
		entity.Recall(h.sh, now, r.ids, func() { close(r.done) })
	}
}

// recallCounts is what is counted of the lists of a type.
type recallCounts struct {
	waiting      atomic.Int64 // shards with a list that was not read to its end yet
	read, failed atomic.Uint64
}

func reportRecall(h *Host, text string) {
	h.t.recalls.failed.Add(1)
	h.x.report(h.t, entity.Incident{Type: h.t.typ.Name, Shard: h.shard, Mode: h.t.typ.Mode, Kind: entity.RecallFailed,
		Text: text[:min(len(text), entity.MaxIncidentText)]})
}

// Recalls returns of how many shards of a type that live here the list of remembered entities is still to be read, how
// many were read to their end, and how often one was not, or had an id that is none of the shard's.
func Recalls(t *Type) (waiting int, read, failed uint64) {
	return int(t.recalls.waiting.Load()), t.recalls.read.Load(), t.recalls.failed.Load()
}

const (
	attendRest    = time.Second // before Hosted is called again after a panic; it doubles with each
	attendRestMax = time.Minute
)

// Attendants calls Type.Hosted of the shards that live here, each on a goroutine that may block.
type Attendants struct {
	x *Exec

	mu   sync.Mutex
	wait []attendJob
	busy int // calls that have not returned
}

// attendJob is a shard for which Hosted is to be called.
type attendJob struct {
	h     *Host
	at    time.Duration // not before
	tries int           // that panicked, one behind the other
}

// add queues a shard: the ticker calls its Hosted at its next turn.
func (a *Attendants) add(j attendJob) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = append(a.wait, j)
}

// tick makes the calls that are due. The ticker's goroutine, while the gate is open.
func (a *Attendants) tick(now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.wait[:0]
	for _, j := range a.wait {
		switch {
		case j.h.end.began.Load() || j.h.end.lost.Load(): // the next owner calls it
		case j.at > now:
			rest = append(rest, j)
		default:
			a.busy++
			go a.attend(j)
		}
	}
	clear(a.wait[len(rest):])
	a.wait = rest
}

// Count returns how many calls of Type.Hosted have not returned. It is safe for concurrent use.
func (a *Attendants) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy
}

// attend calls Hosted once. Another call follows where a suspension has ended this one, and after a panic.
func (a *Attendants) attend(j attendJob) {
	// The mark comes before the context: so a shard that gets the order to stop after that waits for this call.
	j.h.end.attended.Store(true)
	ctx := j.h.life.Serving(a.x.Gate.Closed)
	returned := false
	defer func() {
		failed := ""
		if v := recover(); v != nil || !returned {
			failed = attendFailed(v)
		}
		a.ends(j, ctx.Err() != nil, failed)
	}()
	if ctx.Err() == nil {
		j.h.t.typ.Hosted(ctx, j.h.shard, j.h.fence)
	}
	returned = true
}

// attendFailed says how a call ended that did not return.
func attendFailed(v any) string {
	if v == nil {
		v = "runtime.Goexit was called"
	}
	text := fmt.Sprint(v) + "\n" + string(debug.Stack())
	return text[:min(len(text), entity.MaxIncidentText)]
}

// ends notes that a call is over: ended says that its context had been, failed why it did not return, if so.
func (a *Attendants) ends(j attendJob, ended bool, failed string) {
	h := j.h
	switch {
	case failed != "":
		a.x.report(h.t, entity.Incident{Type: h.t.typ.Name, Shard: h.shard, Fence: h.fence, Mode: h.t.typ.Mode,
			Kind: entity.Panicked, Text: failed})
		j.at = a.x.Clock.Now() + min(attendRest<<min(j.tries, 10), attendRestMax)
		j.tries++
	default:
		j.at, j.tries = 0, 0
	}
	h.end.attended.Store(false)
	if h.end.began.Load() {
		h.give(orderLook) // it may have waited for this alone
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy--
	if ended || failed != "" {
		a.wait = append(a.wait, j)
	}
}
