// Laws of the host, at random: one call at a time, order per entity, nothing accepted is lost unless it was abandoned.

package entity

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// hostModel knows what was accepted and compares it with what the handlers see.
type hostModel struct {
	*rig
	accepted map[string][]int // numbers accepted and not handled yet, by entity, in order
	alive    map[string]bool  // instances made and not ended
	next     int
	handled  int
	total    int
	asks     int
	answers  map[uint64]int
	runs     []*modelRun
	frames   []*RunFrame // of goroutines that have no run
	inCall   int
	timers   int // messages from timers
	panicked map[string]time.Duration
	dropped  int
	going    int // of those that come to be dropped, with the entity that is being given up
	unmade   int
	gaveUp   int
	failed   error         // of the Open that is under way
	given    int           // abandoned
	behind   int           // runs with a call that never returned when their shard was abandoned
	due      time.Duration // what Next has returned last
	isDue    bool          // likewise
	dueKnown bool          // nothing has happened since of which Quiet says nothing
}

type modelRun struct {
	e     *Entity
	more  bool
	frame *RunFrame // of its goroutine, in turn; nil before its first run has begun
}

func newHostModel(t *rapid.T, mode Mode) *hostModel {
	m := &hostModel{accepted: map[string][]int{}, alive: map[string]bool{}, answers: map[uint64]int{},
		panicked: map[string]time.Duration{}}
	m.rig = newRig(t, mode, func(typ *Type) {
		typ.MailboxBytes = MinMailboxBytes
		typ.IdleAfter = time.Duration(rapid.IntRange(0, 5).Draw(t, "idle")) * time.Second
		typ.Restart = Restart(rapid.IntRange(0, 2).Draw(t, "restart"))
		if typ.Restart != RestartResume && rapid.Bool().Draw(t, "rests") {
			typ.RestartBackoff = time.Duration(rapid.IntRange(0, 3).Draw(t, "rest")) * time.Second
			typ.RestartWindow = 5 * time.Second
		}
		if typ.Restart == RestartFresh {
			typ.MaxRestarts = rapid.IntRange(0, 2).Draw(t, "restarts")
		}
		if rapid.Bool().Draw(t, "last") {
			typ.StopMessage = []byte("bye")
		}
		typ.MaxActive = rapid.IntRange(0, 3).Draw(t, "active")
		if rapid.Bool().Draw(t, "opens") {
			typ.New, typ.Open = nil, m.open
		}
	})
	m.f.report, m.f.unhandled = m.incident, m.unhandled
	m.pool.Limit = rapid.IntRange(0, 20_000).Draw(t, "budget")
	m.f.make = func(id string) Handler {
		require.False(t, m.alive[id], "at most one live instance of an entity")
		if rapid.IntRange(0, 19).Draw(t, "new fails") == 0 {
			m.panicAt(id)
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				return nil
			case 1:
				m.failed = errors.New("no store")
				return nil
			}
			panic("new")
		}
		if at, panicked := m.panicked[id]; panicked && !m.Stopping() {
			require.GreaterOrEqual(t, m.f.now-at, m.Type().RestartBackoff, "made before its rest was over")
		}
		m.alive[id] = true
		return &modelHandler{m: m, t: t, id: id}
	}
	return m
}

// open is Type.Open.
func (m *hostModel) open(c *Context) (Handler, error) {
	require.False(m.t, c.Asked())
	require.ErrorIs(m.t, c.Reply(nil), ErrNoAsk, "the ask is the handler's")
	_ = c.After(0, []byte("timer")) // set only if there is an instance
	h, err := m.f.make(c.ID), m.failed
	m.failed = nil
	return h, err
}

// unhandled accounts for a message for which New or Open made nothing: the oldest accepted one; or for one that goes
// with its entity or its shard, once.
func (m *hostModel) unhandled(id string, why route.Reason, ask bool, payload string) {
	text, _, _ := strings.Cut(payload, " ")
	number, err := strconv.Atoi(text)
	require.NoError(m.t, err)
	require.Equal(m.t, ask, m.answers[uint64(number)] == 1, "an ask has been answered")
	if why != route.NewFailed {
		at := slices.Index(m.accepted[id], number)
		require.GreaterOrEqual(m.t, at, 0, "message %d was not accepted, or is over", number)
		m.accepted[id] = slices.Delete(slices.Clone(m.accepted[id]), at, at+1)
	}
	switch why {
	case route.Abandoned:
		m.given++
		return
	case route.Crashed:
		m.going++
		return
	}
	require.Equal(m.t, route.NewFailed, why)
	m.took(id, number)
	m.handled--
	m.unmade++
}

// panicAt notes a panic of the policy's concern.
func (m *hostModel) panicAt(id string) {
	if m.Type().Restart != RestartResume {
		m.alive[id] = false
		m.panicked[id] = m.f.now
	}
}

// incident accounts for what is dropped when an entity is given up: all that waits for it.
func (m *hostModel) incident(i Incident) {
	if i.Kind != GaveUp {
		return
	}
	m.gaveUp++
	require.Empty(m.t, m.accepted[i.ID], "all that waits goes, and is told")
	require.Equal(m.t, m.going, i.Dropped+i.Answered)
	m.dropped += m.going
	m.going = 0
}

// took accounts for the oldest message accepted for id; number is the one that the handler sees, -1 if it sees none.
func (m *hostModel) took(id string, number int) {
	waiting := m.accepted[id]
	require.NotEmpty(m.t, waiting, "a message was invented")
	if number >= 0 {
		require.Equal(m.t, waiting[0], number, "order per entity, nothing lost, nothing twice")
	}
	m.accepted[id] = waiting[1:]
	m.handled++
}

func (m *hostModel) Reply(corr uint64, _ route.Reason, _ []byte) error {
	m.answers[corr]++
	return nil
}

type modelHandler struct {
	m  *hostModel
	t  *rapid.T
	id string

	said bool // it got the stop message
}

func (h *modelHandler) Receive(c *Context, payload []byte) error {
	m := h.m
	require.Zero(h.t, m.inCall, "one call at a time")
	m.inCall++
	defer func() { m.inCall-- }()
	require.True(h.t, m.alive[h.id], "a call after the end")
	require.False(h.t, h.said, "a message behind the last")
	text, _, _ := strings.Cut(string(payload), " ")
	if text == "bye" {
		require.NotEqual(h.t, NotStopping, c.StopReason())
		if h.said = true; rapid.IntRange(0, 9).Draw(h.t, "last fails") == 0 {
			h.m.alive[h.id] = m.Type().Restart == RestartResume
			panic("the last")
		}
		return nil
	}
	if text == "timer" {
		m.timers++
		return nil
	}
	number, err := strconv.Atoi(text)
	require.NoError(h.t, err)
	m.took(h.id, number)
	if rapid.Bool().Draw(h.t, "after") {
		_ = c.After(time.Duration(rapid.IntRange(0, 3).Draw(h.t, "s"))*time.Second, []byte("timer"))
	}
	switch rapid.IntRange(0, 9).Draw(h.t, "does") {
	case 0:
		c.Passivate()
	case 1:
		m.panicAt(h.id)
		panic("handler")
	case 2:
		return errTest
	case 3, 4:
		if c.Asked() {
			return c.Reply(nil)
		}
	}
	return nil
}

func (h *modelHandler) Stop(*Context) {
	require.Zero(h.t, h.m.inCall, "one call at a time")
	require.True(h.t, h.m.alive[h.id], "stopped twice")
	require.Equal(h.t, h.m.Type().StopMessage != nil, h.said)
	h.m.alive[h.id] = false
}

func (m *hostModel) deliverOne(t *rapid.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
	parked := rapid.IntRange(0, 9).Draw(t, "parked") == 0
	payload := strconv.Itoa(m.next) + " " + strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "size"))
	msg := Message{ID: []byte(id), Payload: []byte(payload), Parked: parked}
	ask := rapid.Bool().Draw(t, "ask")
	if ask {
		msg.From, msg.Corr = m, uint64(m.next)
	}
	// A Worker handles it inside Deliver, so it counts as accepted before; a refusal takes that back.
	m.accepted[id] = append(m.accepted[id], m.next)
	refusable := m.Stopping() || m.Type().Mode == Blocking && !parked
	reason := m.Deliver(m.f.now, &msg)
	if reason != route.OK {
		require.True(t, refusable || reason == route.Crashed && m.Type().minds(), "refused: %v", reason)
		m.accepted[id] = m.accepted[id][:len(m.accepted[id])-1]
		require.Zero(t, m.answers[uint64(m.next)], "the caller answers what is refused")
	} else {
		m.total++
		if ask {
			m.asks++
		}
	}
	m.next++
}

// collect takes over entities that are ready.
func (m *hostModel) collect() {
	for e := m.Ready(); e != nil; e = m.Ready() {
		m.runs = append(m.runs, &modelRun{e: e})
	}
}

// stepRun takes one step of one run: begin, one call, or end. It reports whether there was one.
func (m *hostModel) stepRun(i int, early bool) {
	r := m.runs[i]
	switch {
	case r.e.act == nil || r.e.act.phase != begun:
		if !r.e.Begin(m.f.now) {
			m.over(i)
			return
		}
		if n := len(m.frames); r.frame == nil && n > 0 {
			r.frame, m.frames = m.frames[n-1], m.frames[:n-1]
		} else if r.frame == nil {
			r.frame = &RunFrame{}
		}
		r.e.Enter(r.frame, 0)
		r.more = true
	case r.more && !early:
		r.more = r.e.Work()
	default:
		if !r.e.End(m.f.now) {
			m.over(i)
		}
	}
}

// over ends what one goroutine does for an entity: it is free for another.
func (m *hostModel) over(i int) {
	if f := m.runs[i].frame; f != nil {
		m.frames = append(m.frames, f)
	}
	m.runs = slices.Delete(m.runs, i, i+1)
}

// finish runs everything until nothing moves.
func (m *hostModel) finish(t *rapid.T) {
	for range 10_000 {
		m.collect()
		if len(m.runs) == 0 {
			at, ok := m.Next()
			if !ok || !m.Stopping() && at > m.f.now {
				return
			}
			m.Tick(m.f.now)
			continue
		}
		m.stepRun(0, false)
	}
	require.FailNow(t, "never finishes")
}

func (m *hostModel) waiting() (n int) {
	for _, w := range m.accepted {
		n += len(w)
	}
	return n
}

func (m *hostModel) check(t *rapid.T) {
	m.checkQuiet(t)
	waiting := m.waiting()
	st := m.Stats()
	require.Equal(t, m.total, m.handled+waiting+m.dropped+m.unmade+m.given)
	require.GreaterOrEqual(t, m.pool.Used(), st.QueuedBytes)
	if m.pool.Used() > m.pool.Limit {
		require.Equal(t, Blocking, m.Type().Mode, "only parked messages and timers that fired exceed the budget")
	}
}

// checkQuiet: while a shard of Blocking entities is quiet, Next returns what it has returned before.
func (m *hostModel) checkQuiet(t *rapid.T) {
	quiet := m.Quiet() && m.dueKnown && m.Type().Mode == Blocking
	due, ok := m.Next()
	if quiet {
		require.Equal(t, m.isDue, ok)
		require.Equal(t, m.due, due)
	}
	m.due, m.isDue, m.dueKnown = due, ok, true
}

func TestHostLaws(t *testing.T) {
	for _, mode := range []Mode{Blocking, Worker} {
		t.Run(mode.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := newHostModel(t, mode)
				t.Repeat(map[string]func(*rapid.T){
					"":        func(t *rapid.T) { m.collect(); m.check(t) },
					"deliver": m.deliverOne,
					"deliver more": func(t *rapid.T) {
						for range 8 {
							m.deliverOne(t)
						}
					},
					"run": func(t *rapid.T) {
						for range 6 {
							if len(m.runs) > 0 {
								early := rapid.IntRange(0, 7).Draw(t, "early") == 0
								m.stepRun(rapid.IntRange(0, len(m.runs)-1).Draw(t, "which"), early)
								m.collect()
							}
						}
					},
					"time": func(t *rapid.T) {
						m.f.now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
						m.Tick(m.f.now)
						m.dueKnown = false
					},
					"stop": func(t *rapid.T) {
						if rapid.IntRange(0, 19).Draw(t, "rarely") == 0 {
							m.Stop(m.f.now, StopMoved)
							m.dueKnown = false
						}
					},
				})
				m.end(t, rapid.Bool().Draw(t, "abandon"))
			})
		})
	}
}

// end stops or abandons the shard and settles all accounts.
func (m *hostModel) end(t *rapid.T, abandon bool) {
	if abandon {
		m.Abandon()
	} else {
		m.Stop(m.f.now, StopMoved)
	}
	for i := len(m.runs) - 1; abandon && i >= 0; i-- {
		if r := m.runs[i]; r.e.act != nil && r.e.act.phase == begun {
			r.more = false // the runtime ends runs as soon as their call returns
		}
	}
	if abandon && rapid.Bool().Draw(t, "hangs") {
		m.behind = m.LeaveBehind()
		require.Zero(t, m.waiting(), "all that waits is told, though a call has not returned")
		require.Equal(t, m.behind, m.LeaveBehind(), "and once")
	}
	m.finish(t)
	st := m.Stats()
	require.True(t, m.Stopped())
	require.Zero(t, st.Live)
	require.Zero(t, st.QueuedBytes)
	require.Zero(t, m.pool.Used())
	require.Zero(t, m.waiting())
	require.Equal(t, uint64(m.given), st.Abandoned, "what was abandoned was counted, and told")
	require.Equal(t, m.total, m.handled+m.dropped+m.unmade+m.given, "handled, dropped, not made or abandoned")
	require.Equal(t, []uint64{uint64(m.dropped), uint64(m.gaveUp), uint64(m.unmade)},
		[]uint64{st.Dropped, st.GivenUp, st.NotMade})
	require.Zero(t, st.Crashed, "no record outlives its shard")
	if !abandon {
		require.Zero(t, st.Abandoned)
		for id, alive := range m.alive {
			require.False(t, alive, "Stop was not called for %s", id)
		}
	}
	require.Len(t, m.answers, m.asks, "every accepted ask is answered")
	for corr, n := range m.answers {
		require.Equal(t, 1, n, "ask %d", corr)
	}
	require.Equal(t, uint64(m.handled+m.timers), st.Delivered, "handlers saw what was counted")
	require.Equal(t, uint64(m.timers), st.TimersHandled)
}

// TestBlockingShardUnderThreads drives a shard as the driver does, with a lock and goroutines, so that the race
// detector sees every access that Work makes without the lock.
func TestBlockingShardUnderThreads(t *testing.T) {
	const senders, entities, messages = 4, 5, 400
	var mu sync.Mutex
	var runs sync.WaitGroup
	r := newRig(t, Blocking)
	r.Shard = NewShard(r.Type(), 7, testFence, r.f, &lockedPool{Pool: r.pool})
	var making sync.Mutex // New is called without the shard's lock
	var handlers []*countingHandler
	r.f.make = func(string) Handler {
		making.Lock()
		defer making.Unlock()
		handlers = append(handlers, &countingHandler{})
		return handlers[len(handlers)-1]
	}
	var run func()
	run = func() { // under mu
		for e := r.Ready(); e != nil; e = r.Ready() {
			runs.Add(1)
			go func() {
				defer runs.Done()
				mu.Lock()
				ok := e.Begin(0)
				mu.Unlock()
				for ok {
					for e.Work() {
					}
					mu.Lock()
					ok = e.End(0) && e.Begin(0)
					run()
					mu.Unlock()
				}
			}()
		}
	}
	var sending sync.WaitGroup
	for s := range senders {
		sending.Add(1)
		go func() {
			defer sending.Done()
			for i := range messages {
				mu.Lock()
				m := Message{ID: fmt.Append(nil, (i+s)%entities), Payload: []byte("after"), Parked: true}
				if i%10 == 0 {
					r.Tick(time.Duration(i))
				}
				require.Equal(t, route.OK, r.Deliver(time.Duration(i), &m))
				run()
				mu.Unlock()
			}
		}()
	}
	sending.Wait()
	runs.Wait()
	mu.Lock()
	r.Stop(time.Hour, StopMoved)
	run()
	mu.Unlock()
	runs.Wait()
	require.True(t, r.Stopped())
	sum, timers := 0, 0
	for _, h := range handlers {
		require.True(t, h.stopped)
		sum, timers = sum+h.n, timers+h.timers
	}
	require.Len(t, handlers, entities)
	require.Equal(t, senders*messages, sum-timers)
	require.Equal(t, uint64(sum), r.Stats().Delivered)
	require.Zero(t, r.pool.Used())
}

// countingHandler writes plain fields: two calls at once would be a race.
type countingHandler struct {
	n, timers int
	stopped   bool
}

func (h *countingHandler) Receive(c *Context, payload []byte) error {
	h.n++
	if string(payload) == "timer" {
		h.timers++
		return nil
	}
	switch {
	case h.n%7 == 0:
		_ = c.After(time.Duration(h.n), []byte("timer"))
	case h.n%5 == 0:
		_ = c.SetTimer("named", time.Duration(h.n), []byte("timer"))
	case h.n%11 == 0:
		c.CancelTimer("named")
	}
	return nil
}

func (h *countingHandler) Stop(*Context) { h.stopped = true }

// lockedPool is a budget as a runtime with threads brings it.
type lockedPool struct {
	mu sync.Mutex
	*Pool
}

func (p *lockedPool) Take(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Pool.Take(n)
}

func (p *lockedPool) Force(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Pool.Force(n)
}

func (p *lockedPool) Give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Pool.Give(n)
}

func (p *lockedPool) Ample() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Pool.Ample()
}
