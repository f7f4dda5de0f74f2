// The rig of this package's tests: a runtime on virtual time, origins that record answers, handlers made of functions.

package entity

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

var testFence = route.MakeFence(5, 2, 9)

// answer is what an origin got.
type answer struct {
	corr    uint64
	reason  route.Reason
	payload string
}

// origin records answers, or refuses them.
type origin struct {
	answers []answer
	err     error
}

func (o *origin) Reply(corr uint64, reason route.Reason, payload []byte) error {
	if o.err != nil {
		return o.err
	}
	o.answers = append(o.answers, answer{corr, reason, string(payload)})
	return nil
}

// fake is a runtime, and the maker of handlers.
type fake struct {
	suspended bool
	shards    int
	now       time.Duration
	told      []string
	asked     []string
	incidents []Incident
	log       []string // what was called: new, receive, stop, in order
	stops     []string // what encloses stop calls
	given     []uint64 // asks with handlers that have asked for their context
	answered  []uint64 // and have returned

	receive func(c *Context, payload []byte) error
	stop    func(c *Context)

	handOver func(id string) ([]byte, error) // of counters
	takeUp   func(c *Context) error

	make   func(id string) Handler
	report func(Incident)

	unhandled func(id string, why route.Reason, ask bool, payload string)
}

func (f *fake) Tell(headers []byte, typ, id string, payload []byte) error {
	f.told = append(f.told, fmt.Sprintf("%s/%s:%s%s", typ, id, headers, payload))
	return nil
}

func (f *fake) Ask(headers []byte, d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	f.asked = append(f.asked, fmt.Sprintf("%s/%s:%s%s within %v", typ, id, headers, payload, d))
	return []byte("answer"), nil
}

func (f *fake) Suspended() bool { return f.suspended }

func (f *fake) Context(limit time.Duration, from Origin, corr uint64) context.Context {
	if from != nil {
		f.given = append(f.given, corr)
	}
	return context.WithValue(context.Background(), limitKey{}, limit)
}

func (f *fake) Answered(_ Origin, corr uint64) { f.answered = append(f.answered, corr) }

type limitKey struct{}

func (f *fake) Report(i Incident) {
	f.incidents = append(f.incidents, i)
	if f.report != nil {
		f.report(i)
	}
}

func (f *fake) Unhandled(e *Entity, why route.Reason, ask bool, payload []byte) {
	if f.unhandled != nil {
		f.unhandled(e.ID(), why, ask, string(payload))
	}
}

func (f *fake) Shards() int                   { return max(1, f.shards) }
func (f *fake) Calling(e *Entity, what Call)  { f.enclose("calling ", e, what) }
func (f *fake) Returned(e *Entity, what Call) { f.enclose("returned ", e, what) }
func (f *fake) Now() time.Duration            { return f.now }

// enclose notes steps among what handlers do, and stop calls for themselves.
func (f *fake) enclose(side string, e *Entity, what Call) {
	if what == StepCall {
		f.log = append(f.log, side+e.ID())
		return
	}
	f.stops = append(f.stops, side+what.String()+" "+e.ID())
}

// Slewed lags as after a stall, by a constant: nothing but the length of calls may depend on it.
func (f *fake) Slewed() time.Duration { return f.now - time.Hour }

func (f *fake) Wall() time.Time { return time.Unix(1_000_000_000, 0).UTC().Add(f.now) }

// handler calls the fake's functions.
type handler struct {
	f  *fake
	id string
}

func (h *handler) Receive(c *Context, payload []byte) error {
	h.f.log = append(h.f.log, h.id+" got "+string(payload))
	if h.f.receive != nil {
		return h.f.receive(c, payload)
	}
	return nil
}

func (h *handler) Stop(c *Context) {
	h.f.log = append(h.f.log, h.id+" stop")
	if h.f.stop != nil {
		h.f.stop(c)
	}
}

func (f *fake) newHandler(id string, fence route.Fence) Handler {
	if f.make != nil {
		return f.make(id)
	}
	f.log = append(f.log, id+" new")
	return &handler{f, id}
}

// rig is a shard with its runtime.
type rig struct {
	*Shard
	f    *fake
	t    require.TestingT
	pool *Pool

	frame RunFrame

	apart bool // each call of a Blocking entity has a goroutine of its own, which it may end
}

func newRig(t require.TestingT, mode Mode, change ...func(*Type)) *rig {
	r := &rig{f: &fake{}, t: t, pool: &Pool{Limit: 1 << 30}}
	typ := Type{Name: "book", Mode: mode, New: r.f.newHandler}.WithDefaults()
	for _, f := range change {
		f(&typ)
	}
	require.NoError(t, typ.Validate())
	r.Shard = NewShard(&typ, 7, testFence, r.f, r.pool)
	return r
}

// tell delivers a message and works everything off.
func (r *rig) tell(id, payload string) route.Reason {
	reason := r.deliver(id, payload, nil, 0)
	r.runAll()
	return reason
}

// ask delivers an ask, works everything off, and returns the answer.
func (r *rig) ask(id, payload string) answer {
	o := &origin{}
	require.Equal(r.t, route.OK, r.deliver(id, payload, o, 42))
	r.runAll()
	require.Len(r.t, o.answers, 1, "an ask gets one answer")
	require.Equal(r.t, uint64(42), o.answers[0].corr)
	return o.answers[0]
}

func (r *rig) deliver(id, payload string, from Origin, corr uint64) route.Reason {
	// Views die after the call, as the read buffer of a loop does.
	m := Message{From: from, Corr: corr, ID: []byte(id), Payload: []byte(payload)}
	reason := r.Deliver(r.f.now, &m)
	for i := range m.ID {
		m.ID[i] = '!'
	}
	for i := range m.Payload {
		m.Payload[i] = '!'
	}
	return reason
}

// runAll runs what is ready until nothing is.
func (r *rig) runAll() {
	runs := 0
	for e := r.Ready(); e != nil; e = r.Ready() {
		for ok := e.Begin(r.f.now); ok; ok = e.End(r.f.now) && e.Begin(r.f.now) {
			e.Enter(&r.frame, 0)
			for !Spoiled(e) && r.work(e) {
			}
			if runs++; runs > 1_000_000 {
				require.FailNow(r.t, "its runs never end")
			}
		}
	}
}

// work makes one call of a run.
func (r *rig) work(e *Entity) (more bool) {
	if r.apart {
		return workApart(e)
	}
	return e.Work()
}

// workApart makes one call on a goroutine of its own. If that ends there, so does the run.
func workApart(e *Entity) (more bool) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		more = e.Work()
	}()
	<-over
	return more
}

// tickTo goes to a time by the deadlines in between, as a runtime does.
func (r *rig) tickTo(now time.Duration) {
	for range 100_000 {
		at, ok := r.Next()
		if !ok || at > now {
			r.f.now = now
			return
		}
		r.f.now = max(r.f.now, at)
		r.Tick(r.f.now)
		r.runAll()
	}
	require.FailNow(r.t, "Next never ends")
}

// takeLog returns what was called since the last time.
func (r *rig) takeLog() []string {
	log := r.f.log
	r.f.log = nil
	return log
}

// everyMode runs a test for each execution mode.
func everyMode(t *testing.T, run func(t *testing.T, r *rig, again func(...func(*Type)) *rig)) {
	for _, mode := range []Mode{Blocking, Worker, Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			again := func(change ...func(*Type)) *rig { return newRig(t, mode, change...) }
			run(t, again(), again)
		})
	}
}

var errTest = errors.New("test error")
