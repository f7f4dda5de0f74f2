// Tests of panics and of calls that take too long, on real sockets: what the asker, the sender of a tell and the
// operator of the owner learn.

package e2e_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// incidents gathers Config.Incident.
type incidents struct {
	mu   sync.Mutex
	list []kith.Incident
}

func (l *incidents) take(i kith.Incident) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, i)
}

func (l *incidents) some(pick func(i kith.Incident) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, pick)
}

// owned is a cluster of two in which the second node alone hosts the type; it returns the region of the first.
func owned(t *testing.T, typ kith.EntityType, a actor) (far *kith.Region, owner *kith.Node, seen *incidents, here,
	there *reports) {
	seen, here, there = &incidents{}, &reports{}, &reports{}
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		// Nobody is lost here: a machine that stands still for a while suspends nobody.
		cfg.Undelivered, cfg.Sharding.TakeoverTime = here.take, 20*time.Minute
		if i == 1 {
			cfg.Roles, cfg.Incident, cfg.Undelivered = []string{"host"}, seen.take, there.take
		}
	}, func(i int, n *kith.Node) {
		typ.Name, typ.Role = "x", "host"
		if r := register(t, n, typ, a); i == 0 {
			far = r
		}
	})
	return far, nodes[1], seen, here, there
}

// "A handler that panics is restarted by policy and reported": a panicking message is dropped and reported with its
// stack; its asker gets a typed error, and so does an asker while the entity rests; tells that are refused meanwhile
// are reported to their sender (SHD-5).
func TestCrashedEntityAcrossNodes(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			far, owner, seen, here, there := owned(t, kith.EntityType{Mode: mode, MaxRestarts: 1, RestartWindow: time.Hour},
				actor{receive: func(c *kith.Context, b []byte) error {
					if string(b) == "bad" {
						panic("poison")
					}
					return c.Reply(b)
				}})
			ctx := within(t)
			for range 2 {
				_, err := far.Ask(ctx, "a", []byte("bad"))
				require.ErrorIs(t, err, kith.ErrPanic)
				require.ErrorContains(t, err, "poison")
			}
			eventually(t, func() bool { return owner.Stats().Types[0].GivenUp == 1 }, "given up")
			_, err := far.Ask(ctx, "a", nil)
			require.ErrorIs(t, err, kith.ErrCrashed)
			require.NoError(t, far.Tell("a", nil))
			eventually(t, func() bool { return here.of(kith.ErrCrashed) == 1 }, "the sender is told")
			require.True(t, here.ids["a"])
			require.Zero(t, there.of(kith.ErrCrashed), "nothing waited for it at its owner")
			_, err = far.Ask(ctx, "b", nil)
			require.NoError(t, err, "others go on")
			eventually(t, func() bool {
				return seen.some(func(i kith.Incident) bool {
					return i.Kind == kith.Panicked && i.ID == "a" && i.Mode == mode && len(i.Text) > len("poison\n")
				}) && seen.some(func(i kith.Incident) bool { return i.Kind == kith.GaveUp && i.Took == time.Hour })
			}, "the operator is told")
			s := owner.Stats().Types[0]
			require.EqualValues(t, 2, s.Panics)
			require.EqualValues(t, 2, s.Crashes)
			require.EqualValues(t, 1, s.Crashed)
			require.EqualValues(t, 2, s.Refused["crashed"])
		})
	}
}

// What waited for an entity that is given up was accepted already: it is reported where it was, and its askers get the
// error.
func TestDroppedMessagesAreReported(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	far, owner, seen, _, there := owned(t, kith.EntityType{Restart: kith.RestartStop}, actor{
		receive: func(*kith.Context, []byte) error {
			begun <- struct{}{}
			<-release
			panic("poison")
		}})
	ctx := within(t)
	require.NoError(t, far.TellWait(ctx, "a", nil))
	<-begun
	require.NoError(t, far.Tell("a", nil))
	answer := make(chan error, 1)
	require.NoError(t, far.AskFunc(patience, "a", nil, func(_ []byte, err error) { answer <- err }))
	require.NoError(t, far.Tell("a", nil))
	eventually(t, func() bool { return owner.Stats().Types[0].MailboxBytes == 4*32 }, "all three wait behind the first")
	close(release)
	require.ErrorIs(t, <-answer, kith.ErrCrashed)
	eventually(t, func() bool { return there.of(kith.ErrCrashed) == 2 }, "the tells are reported where they waited")
	eventually(t, func() bool {
		return seen.some(func(i kith.Incident) bool {
			return i.Kind == kith.GaveUp && i.Dropped == 2 && i.Answered == 1 && i.Took == 0
		})
	}, "the operator is told")
	eventually(t, func() bool { return owner.Stats().Types[0].Dropped == 3 }, "counted")
}

// Whatever the restart policy does with those that panic, each message is accounted for: its handler was called, or it
// was dropped where it waited, or refused and reported to its sender; asks end once. Pins SHD-4.
func TestEachMessageOfEntitiesThatPanic(t *testing.T) {
	t.Parallel()
	for name, typ := range map[string]kith.EntityType{
		"stop":       {Restart: kith.RestartStop},
		"stop, rest": {Restart: kith.RestartStop, RestartBackoff: 5 * time.Millisecond, RestartWindow: 10 * time.Millisecond},
		"rest":       {RestartBackoff: 5 * time.Millisecond, RestartWindow: 10 * time.Millisecond},
		"given up":   {MaxRestarts: 1, RestartWindow: 10 * time.Millisecond},
	} {
		for _, mode := range modes {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				var called, turn, answered atomic.Int64
				typ.Mode = mode
				far, owner, _, here, there := owned(t, typ, actor{receive: func(c *kith.Context, _ []byte) error {
					called.Add(1)
					if turn.Add(1)%7 == 0 {
						panic("as it was its turn")
					}
					if c.Asked() {
						return c.Reply(nil)
					}
					return nil
				}})
				accepted, asked, refused := int64(0), int64(0), atomic.Int64{}
				for i := range 1500 {
					id := string(rune('a' + i%3))
					if far.Tell(id, nil) == nil {
						accepted++
					}
					if i%5 == 0 && far.AskFunc(patience, id, nil, func(_ []byte, err error) {
						if errors.Is(err, kith.ErrCrashed) {
							refused.Add(1) // that was its end: no handler was called
						}
						answered.Add(1)
					}) == nil {
						asked++
					}
				}
				eventually(t, func() bool { return answered.Load() == asked }, "all asks end")
				told := func() int64 { return int64(here.of(kith.ErrCrashed) + there.of(kith.ErrCrashed)) }
				done := func() int64 { return called.Load() + refused.Load() + told() }
				eventually(t, func() bool { return done() >= accepted+asked }, "all are handled or told")
				require.Equal(t, accepted+asked, done())
				require.Equal(t, asked, answered.Load(), "none ends twice")
				require.True(t, told() > 0 || name == "stop" && mode != kith.Blocking || name == "rest" && mode == kith.Blocking,
					"whom nothing waits for, and who is made anew at once, or takes messages while it rests, drops nothing")
				require.NotZero(t, owner.Stats().Types[0].Panics)
			})
		}
	}
}

// An entity that cannot be made is no silence: an asker gets an error that says that nothing was executed, with the
// text of Open; tells were accepted, so they are reported where their entity would live; the log says so to the
// operator.
func TestOpenThatFailsIsTold(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			var down atomic.Bool
			down.Store(true)
			far, owner, seen, here, there := owned(t, kith.EntityType{Mode: mode, Open: func(c *kith.Context) (kith.Handler,
				error) {
				if down.Load() {
					return nil, errors.New("no store for " + c.ID)
				}
				return &actor{receive: func(c *kith.Context, b []byte) error { return c.Reply(b) }}, nil
			}}, actor{})
			ctx := within(t)
			_, err := far.Ask(ctx, "a", nil)
			require.ErrorIs(t, err, kith.ErrNewFailed)
			require.ErrorContains(t, err, "no store for a")
			require.NotErrorIs(t, err, kith.ErrPanic)
			for range 3 {
				require.NoError(t, far.Tell("a", nil))
			}
			eventually(t, func() bool { return there.of(kith.ErrNewFailed) == 3 }, "reported at the owner")
			require.Zero(t, here.of(kith.ErrNewFailed))
			eventually(t, func() bool { return owner.Stats().Types[0].NotMade == 4 }, "counted")
			require.Zero(t, owner.Stats().Types[0].Handled)
			eventually(t, func() bool {
				return seen.some(func(i kith.Incident) bool {
					return i.Kind == kith.NewFailed && i.ID == "a" && i.Mode == mode && i.Text == "no store for a"
				})
			}, "the operator is told")
			down.Store(false)
			_, err = far.Ask(ctx, "a", nil)
			require.NoError(t, err, "the next message tries again")
		})
	}
}

// "One over its time is named": the entity of a call that takes longer than its type's SlowAfter is named while it
// still runs, and again when it has returned (SHD-5).
func TestSlowCallIsNamedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			release := make(chan struct{})
			far, owner, seen, _, _ := owned(t, kith.EntityType{Mode: mode, SlowAfter: 20 * time.Millisecond}, actor{
				receive: func(c *kith.Context, b []byte) error {
					if string(b) == "slow" {
						<-release
					}
					return nil
				}})
			ctx := within(t)
			require.NoError(t, far.TellWait(ctx, "quick", nil))
			require.NoError(t, far.TellWait(ctx, "a", []byte("slow")))
			named := func(running bool) func() bool {
				return func() bool {
					return seen.some(func(i kith.Incident) bool {
						return i.Kind == kith.Slow && i.Running == running && i.Type == "x" && i.ID == "a" &&
							i.Shard == far.Shard("a") && i.Mode == mode && i.Took > 20*time.Millisecond
					})
				}
			}
			eventually(t, named(true), "named while it runs")
			require.False(t, named(false)())
			close(release)
			eventually(t, named(false), "and when it has returned")
			// On a machine that stalls the other call may have taken too long as well: then it is named too.
			quick := uint64(0)
			require.False(t, seen.some(func(i kith.Incident) bool {
				if i.ID == "quick" && !i.Running {
					quick++
				}
				return i.ID == "quick" && i.Took <= 20*time.Millisecond
			}))
			eventually(t, func() bool { return owner.Stats().Types[0].Slow == 1+quick }, "counted once")
		})
	}
}

// A type that sets no limit has that of all Worker and Inline types, also where messages are handled in a row, under
// one guard: the entity over it is named, and no other (SHD-5).
func TestSlowCallInARowIsNamed(t *testing.T) {
	t.Parallel()
	const long = 40 * time.Millisecond
	for _, mode := range []kith.Mode{kith.Worker, kith.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			release := make(chan struct{})
			far, owner, seen, _, _ := owned(t, kith.EntityType{Mode: mode}, actor{
				receive: func(c *kith.Context, b []byte) error {
					if string(b) == "slow" {
						if err := c.Tell("witness", "w", nil); err != nil {
							return err
						}
						<-release
					}
					if c.Asked() {
						return c.Reply(b)
					}
					return nil
				}})
			// Calls are timed by a clock that goes slower than others where the machine stalls. A call that begins later, and
			// is named while it runs, tells when enough of its time has passed.
			register(t, owner, kith.EntityType{Name: "witness", Role: "host", Mode: kith.Blocking, SlowAfter: long},
				actor{receive: func(*kith.Context, []byte) error { <-release; return nil }})
			finish := sync.OnceFunc(func() { close(release) })
			t.Cleanup(finish)
			ctx := within(t)
			_, err := far.Ask(ctx, "a", nil) // the first message of an entity takes the long way
			require.NoError(t, err)
			require.False(t, seen.some(func(i kith.Incident) bool { return i.ID == "a" && i.Took < 10*time.Millisecond }))
			before := owner.Stats().Types[0].Slow
			answer := make(chan error, 1)
			require.NoError(t, far.AskFunc(patience, "a", []byte("slow"), func(_ []byte, err error) { answer <- err }))
			eventually(t, func() bool {
				return seen.some(func(i kith.Incident) bool { return i.Type == "witness" && i.Running })
			}, "the witness is named")
			finish()
			require.NoError(t, <-answer)
			eventually(t, func() bool {
				return seen.some(func(i kith.Incident) bool {
					return i.Kind == kith.Slow && !i.Running && i.Type == "x" && i.ID == "a" && i.Mode == mode && i.Took >= long
				})
			}, "named")
			eventually(t, func() bool { return owner.Stats().Types[0].Slow > before }, "counted")
		})
	}
}

// A poisoned stream of messages does not flood the operator: a part is reported, with how many were not.
func TestIncidentsAreReportedInPart(t *testing.T) {
	t.Parallel()
	far, owner, seen, _, _ := owned(t, kith.EntityType{Mode: kith.Worker}, actor{
		receive: func(*kith.Context, []byte) error { panic("poison") }})
	ctx := within(t)
	for range 400 {
		require.NoError(t, far.TellWait(ctx, "a", nil))
	}
	eventually(t, func() bool { return owner.Stats().Types[0].Panics == 400 }, "all are counted")
	seen.mu.Lock()
	told := len(seen.list)
	seen.mu.Unlock()
	require.Less(t, told, 200)
	eventually(t, func() bool {
		require.NoError(t, far.Tell("a", nil))
		return seen.some(func(i kith.Incident) bool { return i.Missed > 0 })
	}, "the next one that is told says how many were not")
}
