// Suspension on real sockets: a node that did not step handles nothing, in any mode, until another node confirms it.

package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
)

// sleepers is a pair: its second node watches that none of its handlers is called while it is held.
type sleepers struct {
	*pair
	t      *testing.T
	here   map[entity.Mode]*Region // on b
	there  map[entity.Mode]*Region // on a
	sleeps atomic.Bool             // b is held, and nobody can confirm it
	early  atomic.Int64            // calls meanwhile
	long   chan struct{}           // ends the handler that runs for long
	runs   chan struct{}           // it runs

	lock      sync.Mutex
	incidents []entity.Incident
	byMode    map[entity.Mode][]string
}

type watched struct {
	s    *sleepers
	mode entity.Mode
}

func (w *watched) Receive(c *entity.Context, payload []byte) error {
	if w.s.sleeps.Load() {
		w.s.early.Add(1)
	}
	if c.ID == "long" {
		close(w.s.runs)
		<-w.s.long
	}
	if c.Asked() {
		return c.Reply(nil)
	}
	w.s.lock.Lock()
	defer w.s.lock.Unlock()
	w.s.byMode[w.mode] = append(w.s.byMode[w.mode], string(payload))
	return nil
}

func (w *watched) Stop(*entity.Context) {
	if w.s.sleeps.Load() {
		w.s.early.Add(1)
	}
}

func newSleepers(t *testing.T, edit ...func(*Config)) *sleepers {
	s := &sleepers{t: t, here: map[entity.Mode]*Region{}, there: map[entity.Mode]*Region{}, long: make(chan struct{}),
		runs: make(chan struct{}), byMode: map[entity.Mode][]string{}}
	s.pair = newPair(t, append(edit, func(cfg *Config) {
		cfg.Sharding.TakeoverTime, cfg.Resolver.Strategy = 4*time.Second, node.ResolverOff
		cfg.Incident = func(i entity.Incident) {
			s.lock.Lock()
			defer s.lock.Unlock()
			s.incidents = append(s.incidents, i)
		}
	})...)
	for _, m := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		typ := entity.Type{Name: "watched-" + m.String(), Role: "host", Shards: 4, Mode: m,
			New: func(string, route.Fence) entity.Handler { return &watched{s, m} }}
		var err error
		s.here[m], err = s.b.Register(typ)
		require.NoError(t, err)
		s.there[m], err = s.a.Register(typ)
		require.NoError(t, err)
		for _, r := range []*Region{s.there[m], s.here[m]} {
			whenAwake(t, func() error {
				_, err := r.AskWithin(patience, "a", nil, nil)
				return err
			})
		}
	}
	return s
}

type onLoop func()

func (f onLoop) Run(*loop.Loop) { f() }

// whenAwake does what a node refuses while it is suspended. One that the machine holds up for the takeover time's half
// suspends itself, and goes on when the other has confirmed it.
func whenAwake(t *testing.T, do func() error) {
	t.Helper()
	eventually(t, func() bool {
		err := do()
		if !errors.Is(err, route.ErrSuspended) {
			require.NoError(t, err)
		}
		return err == nil
	})
}

// stall blocks the control goroutine of d until the returned function is called, or the test has ended.
func stall(t *testing.T, d *Driver) (release func()) {
	blocked, end := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(end) })
	t.Cleanup(release)
	d.inbox.post(func() { close(blocked); <-end })
	<-blocked
	return release
}

// mute blocks the control goroutine of d, which answers nobody then, though d takes itself to be awake. It reports
// false, and has done nothing, when d has suspended itself: nobody could confirm it.
func mute(t *testing.T, d *Driver) (release func(), ok bool) {
	blocked, end := make(chan bool), make(chan struct{})
	release = sync.OnceFunc(func() { close(end) })
	t.Cleanup(release)
	d.inbox.post(func() {
		awake := !d.exec.Gate.Held(d.now())
		if awake {
			// Not a stamp of now and then a newer one: the goroutine that renews it may be held up by the machine as well.
			d.exec.Gate.Step(d.now() + time.Hour)
		}
		if blocked <- awake; awake {
			<-end
		}
	})
	return release, <-blocked
}

// sleep blocks b's control goroutine until its data plane holds itself, and has a say nothing, so that nobody can
// confirm b. What a sends goes out: it does not hold itself. The end of a's silence is that of s.sleeps.
func (s *sleepers) sleep() (wakeA, wakeB func()) {
	for {
		wakeB = stall(s.t, s.b)
		eventually(s.t, func() bool { return s.b.exec.Gate.Held(s.b.now()) && s.b.exec.Gate.Closed() })
		speak, ok := mute(s.t, s.a)
		if ok {
			s.sleeps.Store(true)
			return func() { s.sleeps.Store(false); speak() }, wakeB
		}
		wakeB() // the machine has held up both: they confirm each other
		eventually(s.t, func() bool { return !s.a.exec.Gate.Held(s.a.now()) && !s.b.exec.Gate.Held(s.b.now()) })
	}
}

func (s *sleepers) send(n int) {
	before := s.b.wires.Stats().Data.Frames
	for i := range n {
		for _, m := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
			require.NoError(s.t, s.there[m].Tell("a", fmt.Appendf(nil, "%03d", i)))
		}
	}
	eventually(s.t, func() bool { return s.b.wires.Stats().Data.Frames >= before+uint64(3*n) }) // b's loop has them
}

func (s *sleepers) handled() (n int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, list := range s.byMode {
		n += len(list)
	}
	return n
}

// TestSleeperHandlesNothingUntilConfirmed: before the control goroutine wakes up, after it has, and as long as nobody
// answers; then everything in order. Local sends say so meanwhile, and a handler that was running is notified and
// reported (MEM-10).
func TestSleeperHandlesNothingUntilConfirmed(t *testing.T) {
	t.Parallel()
	s := newSleepers(t)
	finish := sync.OnceFunc(func() { close(s.long) })
	t.Cleanup(finish)
	require.NoError(t, s.there[entity.Blocking].Tell("long", nil))
	<-s.runs
	contexts := func() (list []context.Context) {
		for _, r := range s.here {
			list = append(list, r.hosts.Host(r.Shard("a")).Context(0, nil, 0))
		}
		return list
	}
	given := contexts()
	wakeA, wakeB := s.sleep()
	s.send(20)
	require.Zero(t, s.handled(), "the data plane runs before the control goroutine does")
	wakeB()
	onControl(s.b, func() { require.True(t, s.b.control.node.Suspended(), "the step itself does not lift it") })
	for _, r := range s.here {
		require.ErrorIs(t, r.Tell("a", nil), route.ErrSuspended)
		_, err := r.Ask(t.Context(), "a", nil)
		require.ErrorIs(t, err, route.ErrSuspended)
		require.ErrorIs(t, r.TellWait(t.Context(), "a", nil), route.ErrSuspended)
	}
	eventually(t, func() bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		return slices.ContainsFunc(s.incidents, func(i entity.Incident) bool {
			return i.Kind == entity.Overrun && i.ID == "long"
		})
	})
	blocking := s.here[entity.Blocking]
	require.True(t, blocking.hosts.Host(blocking.Shard("a")).Suspended(), "the handler that runs can see it")
	for _, ctx := range append(contexts(), given...) {
		require.ErrorIs(t, context.Cause(ctx), route.ErrSuspended, "its context has ended, and so has a new one")
	}
	require.Zero(t, s.handled())
	finish()
	wakeA()
	eventually(t, func() bool { return s.handled() == 3*20+1 })
	for m, list := range s.byMode {
		want := 0
		for _, got := range list {
			if got == "" {
				continue // of the handler that ran for long
			}
			require.Equal(t, fmt.Sprintf("%03d", want), got, m)
			want++
		}
	}
	require.Zero(t, s.early.Load(), "a handler was called while the node was held")
	whenAwake(t, func() error { return s.here[entity.Worker].Tell("a", []byte("after")) })
	eventually(t, func() bool { return s.handled() == 3*20+2 })
	whenAwake(t, func() error {
		for _, ctx := range contexts() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

// holdLoops blocks b's data loops until the returned function is called.
func (s *sleepers) holdLoops() (release func()) {
	end := make(chan struct{})
	for _, l := range s.b.wires.Loops() {
		held := make(chan struct{})
		require.NoError(s.t, l.Execute(onLoop(func() { close(held); <-end })))
		<-held
	}
	return func() { close(end) }
}

// TestClosedWhileSuspended: the end of a suspended node calls no handler, not even Stop, and waits for nobody.
func TestClosedWhileSuspended(t *testing.T) {
	t.Parallel()
	s := newSleepers(t)
	onward := sync.OnceFunc(s.holdLoops())
	t.Cleanup(onward)
	require.NoError(t, s.here[entity.Inline].Tell("a", []byte("own"))) // its loop has not seen it when it falls asleep
	wakeA, wakeB := s.sleep()
	defer wakeA()
	onward()
	s.send(5)
	wakeB()
	onControl(s.b, func() { require.True(t, s.b.control.node.Suspended()) })
	slot := slotOf(s.here[entity.Blocking], 0) // which the end waits for
	slot.mu.Lock()
	closed := make(chan error)
	go func() { closed <- s.b.Close() }()
	eventually(t, s.b.stopping.Load)
	s.b.exec.Resume() // loops look again in the middle of the end
	for _, l := range s.b.wires.Loops() {
		looked := make(chan struct{})
		require.NoError(t, l.Execute(onLoop(func() { close(looked) })))
		<-looked
	}
	slot.mu.Unlock()
	require.ErrorIs(t, <-closed, route.ErrAbandoned, "what waited on the node itself")
	require.Zero(t, s.handled())
	require.Zero(t, s.early.Load())
}

// What a closed gate keeps counts as taken when its connection breaks: its sender writes nothing off. So a node that
// ends then refuses it, and its sender hears of each, once (SHD-4).
func TestKeptWhenItsConnectionBreaks(t *testing.T) {
	t.Parallel()
	var cutters []*cutter
	s := newSleepers(t, func(cfg *Config) {
		cfg.Listen = port.Keep(t)
		cutters = append(cutters, newCutter(t, cfg.Listen))
		cfg.Advertise = cutters[len(cutters)-1].ln.Addr().String()
	})
	const n = 20
	e := opened(t, s.there[entity.Worker], s.there[entity.Worker].Shard("a"))
	wakeA, wakeB := s.sleep()
	s.send(n)
	cutters[1].cut() // what b says goes through the other one
	b := s.b.peerNode(s.a.self)
	eventually(t, func() bool { return b.listed.Load() }) // it has something to say of a connection that is over
	closed := make(chan error, 1)
	go func() { closed <- s.b.Close() }()
	wakeB()
	require.NoError(t, <-closed)
	wakeA()
	require.NoError(t, s.a.Down(t.Context(), s.b.self.Addr.String()))
	eventually(t, func() bool { return isForgotten(e.link.Err()) })
	_, told := s.account()
	require.Positive(t, told[route.Abandoned])
	require.EqualValues(t, 3*n, told[route.Abandoned]+told[route.LostInFlight], "%v", told)
	require.Zero(t, s.handled())
}
