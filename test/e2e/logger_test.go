// Loggers and hooks that stand still, tell, or close their node, over real sockets (OPS-1).

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// heldLog is a logger with methods that stand still while it is held.
type heldLog struct {
	held  atomic.Pointer[chan struct{}] // nil: it is not
	waits atomic.Int64                  // calls that have met it
	last  sync.Map                      // messages
}

func (l *heldLog) wait() {
	if c := l.held.Load(); c != nil {
		l.waits.Add(1)
		<-*c
	}
}

func (l *heldLog) Enabled(context.Context, slog.Level) bool { l.wait(); return true }
func (l *heldLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *heldLog) WithGroup(string) slog.Handler            { return l }
func (l *heldLog) Handle(_ context.Context, r slog.Record) error {
	l.wait()
	l.last.Store(r.Message, true)
	return nil
}

// hold has it stand still until what it returns is called.
func (l *heldLog) hold(t *testing.T) (release func()) {
	c := make(chan struct{})
	l.held.Store(&c)
	release = sync.OnceFunc(func() { l.held.Store(nil); close(c) })
	t.Cleanup(release)
	return release
}

// A node with a stuck logger goes on: it follows its cluster, answers asks, reports, and leaves. Then it says what it
// had to say.
func TestALoggerThatStandsStill(t *testing.T) {
	t.Parallel()
	log := &heldLog{}
	regions := make([]*kith.Region, 3)
	nodes := cluster(t, 3, func(i int, cfg *kith.Config) {
		if i == 2 {
			cfg.Logger = slog.New(log)
		}
	}, func(i int, n *kith.Node) {
		x := kith.EntityType{Name: "x", Shards: 16}
		regions[i] = register(t, n, x, actor{receive: func(c *kith.Context, b []byte) error {
			return c.Reply(b)
		}})
	})
	release := log.hold(t)
	extra := start(t, logger(t), kith.Config{Seeds: []string{nodes[0].Addr().String()}}) // which is news
	awaitView(t, nodes[2], func(v *kith.View) bool { return v.CountUp() == 4 })
	eventually(t, func() bool { return log.waits.Load() > 0 && nodes[2].Stats().LogStalled > 0 }, "it stands still")
	require.NoError(t, nodes[0].SetMetadata(within(t), "after", []byte("that")))
	awaitView(t, nodes[2], func(v *kith.View) bool { return len(v.Metadata) == 1 })
	for i := range 32 {
		_, err := regions[i%3].Ask(within(t), fmt.Sprint(i), nil)
		require.NoError(t, err)
	}
	require.NoError(t, extra.Leave(within(t)))
	awaitView(t, nodes[2], func(v *kith.View) bool { return v.CountUp() == 3 })
	require.True(t, nodes[2].Health().Alive())
	require.NoError(t, nodes[2].Leave(within(t)), "its last lines are not waited for")
	awaitView(t, nodes[0], func(v *kith.View) bool { return v.CountUp() == 2 })
	release()
	eventually(t, func() bool { _, ok := log.last.Load("node ended"); return ok }, "nothing was lost")
	require.Zero(t, nodes[2].Stats().LogDropped)
}

// A logger, and a hook, may call the node that calls it, and tell to the very shard of the entity that is being
// reported, in every mode.
func TestLoggersAndHooksThatCallTheNode(t *testing.T) {
	t.Parallel()
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker, kith.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			var node atomic.Pointer[kith.Node]
			var region atomic.Pointer[kith.Region]
			var logged, told atomic.Int64
			calls := func(n *atomic.Int64) {
				if node.Load() == nil || region.Load() == nil || n.Add(1) > 32 {
					return
				}
				_, _, _ = node.Load().Stats(), node.Load().View(), node.Load().Health()
				_ = region.Load().Tell("a", nil)
				_ = region.Load().Tell("bad", nil)
			}
			n := start(t, logger(t), kith.Config{Incident: func(kith.Incident) { calls(&told) },
				Logger: slog.New(calling{slog.DiscardHandler, func() { calls(&logged) }})})
			var made atomic.Int64
			r, err := n.Register(kith.EntityType{Name: "x", Shards: 1, Mode: mode, Restart: kith.RestartStop,
				Open: func(c *kith.Context) (kith.Handler, error) {
					if c.ID == "bad" {
						return nil, errors.New("no")
					}
					made.Add(1)
					return &actor{receive: func(*kith.Context, []byte) error { panic("again") }}, nil
				}})
			require.NoError(t, err)
			region.Store(r)
			node.Store(n)
			eventually(t, func() bool {
				_ = r.Tell("a", nil) // which may be given up for a moment
				return logged.Load() > 8 && told.Load() > 4 && made.Load() > 2
			}, "they go on")
		})
	}
}

// calling calls somebody for each record.
type calling struct {
	slog.Handler
	call func()
}

func (c calling) Enabled(context.Context, slog.Level) bool  { return true }
func (c calling) Handle(context.Context, slog.Record) error { c.call(); return nil }
func (c calling) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c calling) WithGroup(string) slog.Handler             { return c }

// Hooks that stand still hold up no ask's time limit, no timer, and no end of the node.
func TestHooksThatStandStill(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	var in atomic.Int64
	wait := func() { in.Add(1); <-held }
	n := start(t, logger(t), kith.Config{Incident: func(kith.Incident) { wait() },
		Undelivered: func(kith.Undelivered) { wait() }})
	stays := make(chan struct{})
	defer close(stays)
	r := register(t, n, kith.EntityType{Name: "x", Shards: 4, Mode: kith.Blocking, SlowAfter: time.Millisecond},
		actor{receive: func(*kith.Context, []byte) error {
			<-stays
			return nil
		}})
	require.NoError(t, r.Tell("a", nil))
	eventually(t, func() bool { return in.Load() > 0 }, "a hook stands still")
	again := make(chan error, 1)
	require.NoError(t, r.AskFunc(time.Millisecond, "c", nil, func([]byte, error) { <-held }))
	require.NoError(t, r.AskFunc(time.Millisecond, "c", nil, func(_ []byte, err error) { again <- err }))
	require.ErrorIs(t, <-again, kith.ErrTimeout, "though the one before stands still")
	_, err := r.AskWithin(time.Millisecond, "b", nil, nil)
	require.ErrorIs(t, err, kith.ErrTimeout, "time limits are kept")
	eventually(t, func() bool { return n.Health().Ready() }, "it is sent work")
	release()
}

// Functions of asks that stand still where their node was lost hold up nothing: the control goroutine tells of it.
func TestFunctionsOfAsksThatStandStill(t *testing.T) {
	t.Parallel()
	held, stays := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(held) })
	defer close(stays)
	var region *kith.Region
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) {
		cfg.Sharding.RebalanceInterval = 50 * time.Millisecond
	}, func(i int, n *kith.Node) {
		r := register(t, n, kith.EntityType{Name: "x", Shards: 32, Mode: kith.Blocking},
			actor{receive: func(c *kith.Context, b []byte) error {
				if len(b) == 0 {
					return c.Reply(nil)
				}
				<-stays
				return nil
			}})
		if i == 0 {
			region = r
		}
	})
	eventually(t, func() bool { // where the machine is busy the third may get its share late
		for i := range 64 {
			_, err := region.Ask(within(t), fmt.Sprint(i), nil)
			require.NoError(t, err)
		}
		return hosted(nodes[2]) > 0
	}, "all have a share")
	var in atomic.Int64
	for i := range 64 {
		require.NoError(t, region.AskFunc(patience, fmt.Sprint(i), []byte("stay"), func([]byte, error) {
			in.Add(1)
			<-held
		}))
	}
	eventually(t, func() bool { return nodes[2].Stats().BusyEntities > 0 }, "they are asked")
	go closes(t, nodes[2])
	eventually(t, func() bool { return in.Load() > 0 }, "some stand still")
	require.NoError(t, nodes[1].SetMetadata(within(t), "after", []byte("that")))
	awaitView(t, nodes[0], func(v *kith.View) bool { return len(v.Metadata) == 1 })
}
