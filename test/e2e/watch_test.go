// Watches over real sockets: each end is reported once, with its cause, and a watch makes no instance (SHD-12).

package e2e_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// mourner watches the entities that its messages name, and gives away what it hears.
type mourner struct {
	heard chan<- kith.Ended
	asked chan<- error
}

func (w *mourner) Receive(c *kith.Context, payload []byte) error {
	if end, ok := c.Ended(); ok {
		if _, timer := c.Timer(); timer || c.Asked() || len(payload) > 0 {
			return errors.New("it is no timer's, and nobody asked")
		}
		w.heard <- end
		return nil
	}
	verb, id, _ := strings.Cut(string(payload), " ")
	switch verb {
	case "watch":
		w.asked <- c.Watch("subject", id)
	case "unwatch":
		c.Unwatch("subject", id)
		w.asked <- nil
	}
	return nil
}

func (w *mourner) Stop(*kith.Context) {}

// subject is one that is watched.
type subject struct{ made *atomic.Int64 }

func (s *subject) Receive(c *kith.Context, payload []byte) error {
	switch string(payload) {
	case "go":
		c.Passivate()
	case "panic":
		panic("as the test wants")
	}
	if c.Asked() {
		return c.Reply([]byte(c.Fence.String()))
	}
	return nil
}

func (s *subject) Stop(*kith.Context) {}

// watched is a cluster with watchers on the last node, and subjects on the others.
type mourning struct {
	t        *testing.T
	nodes    []*kith.Node
	subjects []*kith.Region
	watchers *kith.Region
	heard    chan kith.Ended
	asked    chan error
	made     atomic.Int64
}

func watchesOf(t *testing.T, mode kith.Mode, edit func(i int, cfg *kith.Config)) *mourning {
	w := &mourning{t: t, heard: make(chan kith.Ended, 1000), asked: make(chan error, 1000)}
	w.nodes = cluster(t, 3, func(i int, cfg *kith.Config) {
		cfg.Roles = [][]string{{"a"}, {"a"}, {"b"}}[i]
		cfg.Sharding.RebalanceInterval = -1
		if edit != nil {
			edit(i, cfg)
		}
	}, nil)
	for i, n := range w.nodes {
		ref, err := n.Register(kith.EntityType{Name: "subject", Shards: 8, Role: "a", Mode: mode,
			New: func(string, kith.Fence) kith.Handler { w.made.Add(1); return &subject{&w.made} }})
		require.NoError(t, err)
		w.subjects = append(w.subjects, ref)
		if ref, err = n.Register(kith.EntityType{Name: "watcher", Shards: 4, Role: "b", Mode: mode,
			New: func(string, kith.Fence) kith.Handler { return &mourner{w.heard, w.asked} }}); i == 2 {
			w.watchers = ref
		}
		require.NoError(t, err)
	}
	return w
}

// do makes the mourner of a name do something.
func (w *mourning) do(who, what string) {
	w.t.Helper()
	require.NoError(w.t, w.watchers.Tell(who, []byte(what)))
	select {
	case err := <-w.asked:
		require.NoError(w.t, err)
	case <-time.After(patience):
		require.FailNow(w.t, "the mourner does not answer")
	}
}

// ask makes a subject live, and returns its fence.
func (w *mourning) ask(id, what string) string {
	w.t.Helper()
	b, err := w.subjects[2].Ask(within(w.t), id, []byte(what))
	require.NoError(w.t, err)
	return string(b)
}

// hears waits for the next end.
func (w *mourning) hears(id string, cause kith.EndCause) kith.Ended {
	w.t.Helper()
	select {
	case end := <-w.heard:
		require.Equal(w.t, [2]string{"subject", id}, [2]string{end.Type, end.ID})
		require.Equal(w.t, cause, end.Cause, "%+v", end)
		return end
	case <-time.After(patience):
		require.FailNow(w.t, "nothing is told")
	}
	return kith.Ended{}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := watchesOf(t, mode, nil)
			w.do("anna", "watch nobody")
			none := w.hears("nobody", kith.EndedNone)
			require.Zero(t, none.Instance)
			require.Zero(t, w.made.Load(), "a watch makes no instance")

			fence := w.ask("x", "live")
			w.do("anna", "watch x")
			w.do("anna", "watch x")
			w.do("bert", "watch x")
			w.do("carl", "watch x")
			w.do("carl", "unwatch x")
			w.watched("x", 2)
			w.ask("x", "go")
			one := w.hears("x", kith.EndedPassivated)
			require.Equal(t, one, w.hears("x", kith.EndedPassivated), "two watched it")
			require.Equal(t, fence, one.Fence.String())
			require.NotZero(t, one.Instance)

			w.ask("x", "live")
			w.do("anna", "watch x")
			w.watched("x", 1)
			_, err := w.subjects[0].Ask(within(t), "x", []byte("panic"))
			require.ErrorIs(t, err, kith.ErrPanic)
			two := w.hears("x", kith.EndedPanicked)
			require.Greater(t, two.Instance, one.Instance)
			require.Equal(t, one.Fence, two.Fence)
			w.do("anna", "watch nobody")
			w.hears("nobody", kith.EndedNone) // behind all that was reported of x
			require.Empty(t, w.heard, "each once, and what was taken back not at all")
		})
	}
}

// watched waits until so many watch a subject, as its node counts.
func (w *mourning) watched(id string, n int) {
	w.t.Helper()
	eventually(w.t, func() bool {
		sum := 0
		for _, node := range w.nodes {
			sum += int(node.Stats().Watches.Watchers)
		}
		return sum == n
	}, "%d watch %s", n, id)
}

func TestWatchMove(t *testing.T) {
	t.Parallel()
	w := watchesOf(t, kith.Blocking, nil)
	w.ask("x", "live")
	w.do("anna", "watch x")
	w.watched("x", 1)
	s := w.subjects[0].Shard("x")
	for _, to := range w.nodes[:2] {
		eventually(t, func() bool {
			err := w.subjects[0].Move(within(t), s, to.ID())
			return err == nil || errors.Is(err, kith.ErrAtHome)
		}, "it is to move")
	}
	moved := w.hears("x", kith.EndedMoved)
	require.Contains(t, []kith.ID{w.nodes[0].ID(), w.nodes[1].ID()}, moved.Home)
	w.do("anna", "watch x")
	w.hears("x", kith.EndedNone)
	w.ask("x", "live")
	w.do("anna", "watch x")
	w.watched("x", 1)
	w.ask("x", "go")
	require.Positive(t, w.hears("x", kith.EndedPassivated).Fence.Compare(moved.Fence))
}

func TestWatchLeaveAndLoss(t *testing.T) {
	t.Parallel()
	for _, kill := range []bool{false, true} {
		w := watchesOf(t, kith.Worker, func(i int, cfg *kith.Config) {
			cfg.Sharding.TakeoverTime = takeover
			cfg.Logger = slog.New(slog.DiscardHandler)
		})
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		for _, id := range ids {
			w.ask(id, "live")
			w.do("anna", "watch "+id)
		}
		w.watched("all", len(ids))
		here := int(w.nodes[1].Stats().Watches.Watchers)
		cause := kith.EndedLeft
		if kill {
			cause = kith.EndedLost
			closes(t, w.nodes[1])
			require.NoError(t, w.nodes[0].Down(within(t), w.nodes[1].Addr().String()))
		} else {
			require.NoError(t, w.nodes[1].Leave(within(t)))
		}
		for range here {
			select {
			case end := <-w.heard:
				if cause == kith.EndedLost || end.Cause != kith.EndedMoved { // a leave moves what it can
					require.Equal(t, cause, end.Cause)
				}
			case <-time.After(patience):
				require.FailNow(t, "nothing is told")
			}
		}
		require.Equal(t, len(ids)-here, int(w.nodes[2].Stats().Watches.Standing))
		require.Empty(t, w.heard)
	}
}
