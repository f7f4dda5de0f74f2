// Shutdown phases: their order, their tasks, their time limits, on a clock that tests own (MEM-8).

package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/shutdown"
)

func names(list []shutdown.Phase) (out []string) {
	for _, p := range list {
		out = append(out, p.Name)
	}
	return out
}

func TestPhaseOrder(t *testing.T) {
	defaults := defaultPhases(30 * time.Second)
	require.Len(t, defaults, 12)
	order, err := orderPhases(defaults, nil)
	require.NoError(t, err)
	require.Equal(t, names(defaults), names(order))
	require.Equal(t, shutdown.PhaseBeforeServiceUnbind, order[0].Name)
	require.Equal(t, shutdown.PhaseProcessEnd, order[11].Name)

	order, err = orderPhases(defaults, []shutdown.Phase{
		{Name: "flush", After: []string{shutdown.PhaseServiceStop}},
		{Name: shutdown.PhaseShardingShutdown, After: []string{"flush"}, Timeout: time.Minute, Strict: true},
	})
	require.NoError(t, err)
	at := func(name string) int { return slices.Index(names(order), name) }
	require.Less(t, at(shutdown.PhaseServiceStop), at("flush"))
	require.Less(t, at("flush"), at(shutdown.PhaseShardingShutdown))
	require.Less(t, at(shutdown.PhaseBeforeClusterShutdown), at(shutdown.PhaseShardingShutdown),
		"its default dependency stays")
	require.Equal(t, shutdown.DefaultPhaseTimeout, order[at("flush")].Timeout)
	require.Equal(t, time.Minute, order[at(shutdown.PhaseShardingShutdown)].Timeout)
	require.True(t, order[at(shutdown.PhaseShardingShutdown)].Strict)
}

func TestBadPhases(t *testing.T) {
	for name, own := range map[string][]shutdown.Phase{
		"a cycle of own ones":     {{Name: "a", After: []string{"b"}}, {Name: "b", After: []string{"a"}}},
		"a cycle with itself":     {{Name: "a", After: []string{"a"}}},
		"a cycle with defaults":   {{Name: shutdown.PhaseServiceUnbind, After: []string{shutdown.PhaseClusterLeave}}},
		"after an unknown one":    {{Name: "a", After: []string{"nowhere"}}},
		"no name":                 {{}},
		"twice":                   {{Name: "a"}, {Name: "a"}},
		"a negative time":         {{Name: "a", Timeout: -1}},
		"more than there may be":  make([]shutdown.Phase, shutdown.MaxPhases),
		"a default phase, doubly": {{Name: shutdown.PhaseProcessEnd}, {Name: shutdown.PhaseProcessEnd}},
	} {
		if name == "more than there may be" {
			for i := range own {
				own[i].Name = fmt.Sprintf("p%d", i)
			}
		}
		_, err := orderPhases(defaultPhases(time.Second), own)
		require.ErrorIs(t, err, shutdown.ErrPhases, name)
	}
}

// runNotes is a shutdown of three phases with tasks that note when they ran.
type runNotes struct {
	*phases
	t     *testing.T
	began time.Time
	mu    sync.Mutex
	ran   []string
}

func record(t *testing.T, edit func([]shutdown.Phase)) *runNotes {
	list := []shutdown.Phase{{Name: "one", Timeout: 5 * time.Second},
		{Name: "two", After: []string{"one"}, Timeout: 5 * time.Second},
		{Name: "three", After: []string{"two"}, Timeout: 5 * time.Second}}
	if edit != nil {
		edit(list)
	}
	return &runNotes{phases: newPhases(list, slog.New(slog.DiscardHandler)), t: t, began: time.Now()}
}

func (r *runNotes) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, fmt.Sprintf("%s at %v", what, time.Since(r.began)))
}

func (r *runNotes) task(phase, name string, takes time.Duration, err error) {
	require.NoError(r.t, r.add(phase, name, func(ctx context.Context) error {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
		r.note(name)
		return err
	}))
}

func TestTasksOfOnePhaseRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, nil)
		r.task("one", "slow", 3*time.Second, nil)
		r.task("one", "quick", time.Second, nil)
		r.task("three", "last", time.Second, nil)
		require.NoError(t, r.begin("because", ""))
		<-r.finish
		require.NoError(t, r.err)
		require.Equal(t, []string{"quick at 1s", "slow at 3s", "last at 4s"}, r.ran)
	})
}

// TestFailedPhase: a failure or a time limit is passed over, unless the phase is strict; a panic is a failure.
func TestFailedPhase(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		strict bool
		add    func(r *runNotes)
		want   error
		ran    []string
	}{
		"failure": {false, func(r *runNotes) { r.task("one", "bad", 0, broken) }, nil,
			[]string{"bad at 0s", "last at 1s"}},
		"time limit": {false, func(r *runNotes) { r.task("one", "bad", time.Hour, nil) }, nil, []string{"last at 6s"}},
		"panic": {false, func(r *runNotes) {
			require.NoError(r.t, r.add("one", "bad", func(context.Context) error { panic("no") }))
		}, nil, []string{"last at 1s"}},
		"deaf task": {false, func(r *runNotes) {
			require.NoError(r.t, r.add("one", "bad", func(context.Context) error { time.Sleep(8 * time.Second); return nil }))
			r.task("three", "late", 4*time.Second, nil)
		}, nil, []string{"last at 6s", "late at 9s"}},
		"strict failure": {true, func(r *runNotes) { r.task("one", "bad", 0, broken) }, broken, []string{"bad at 0s"}},
		"strict time limit": {true, func(r *runNotes) { r.task("one", "bad", time.Hour, nil) }, shutdown.ErrPhaseTimeout,
			nil},
		"strict panic": {true, func(r *runNotes) {
			require.NoError(r.t, r.add("one", "bad", func(context.Context) error { panic("no") }))
		}, shutdown.ErrTaskPanic, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t, func(list []shutdown.Phase) { list[0].Strict = c.strict })
				r.t = t
				c.add(r)
				r.task("three", "last", time.Second, nil)
				require.NoError(t, r.begin("because", ""))
				<-r.finish
				if c.want == nil {
					require.NoError(t, r.err)
				} else if !errors.Is(r.err, c.want) && !errors.Is(r.err, context.DeadlineExceeded) {
					require.ErrorIs(t, r.err, c.want)
				}
				require.Equal(t, c.ran, r.ran)
			})
		})
	}
}

// TestRunsOnce: the first reason stands, later calls are about the same run, and a run may begin in the middle.
func TestRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, nil)
		r.task("one", "passed over", 0, nil)
		r.task("two", "run", time.Second, nil)
		require.Empty(t, r.reason())
		require.ErrorIs(t, r.begin("wrong", "nowhere"), shutdown.ErrUnknownPhase)
		require.Empty(t, r.reason())
		require.NoError(t, r.begin("first", "two"))
		require.NoError(t, r.begin("second", "one"))
		<-r.finish
		require.NoError(t, r.begin("third", ""))
		synctest.Wait()
		require.Equal(t, shutdown.Reason("first"), r.reason())
		require.Equal(t, []string{"run at 1s"}, r.ran)
	})
}

// TestTasksAddedDuringTheRun: to later phases they may be, to begun ones they may not.
func TestTasksAddedDuringTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, nil)
		require.NoError(t, r.add("two", "adder", func(context.Context) error {
			require.ErrorIs(t, r.add("one", "late", nil), shutdown.ErrPhasePassed)
			require.ErrorIs(t, r.add("two", "late", nil), shutdown.ErrPhasePassed)
			r.task("three", "added", time.Second, nil)
			return nil
		}))
		require.ErrorIs(t, r.add("nowhere", "lost", nil), shutdown.ErrUnknownPhase)
		require.NoError(t, r.begin("because", ""))
		<-r.finish
		require.Equal(t, []string{"added at 1s"}, r.ran)
		require.ErrorIs(t, r.add("three", "late", nil), shutdown.ErrPhasePassed)
	})
}

func TestTasksAreBounded(t *testing.T) {
	r := record(t, nil)
	for range shutdown.MaxPhaseTasks {
		require.NoError(t, r.add("one", "many", nil))
	}
	require.ErrorIs(t, r.add("one", "many", nil), shutdown.ErrPhaseFull)
	require.NoError(t, r.add("two", "other", nil))
}
