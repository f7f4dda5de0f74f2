// Phases: the coordinated shutdown as a run through named phases in the order of their dependencies (MEM-8). It knows
// nothing of the node; leaving.go gives it the node's own tasks.

package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/shutdown"
)

// defaultPhases is the list in its order; LeaveTimeout bounds what waits for entities.
func defaultPhases(leave time.Duration) []shutdown.Phase {
	const short = shutdown.DefaultPhaseTimeout
	list := []shutdown.Phase{
		{Name: shutdown.PhaseBeforeServiceUnbind, Timeout: short}, {Name: shutdown.PhaseServiceUnbind, Timeout: short},
		{Name: shutdown.PhaseServiceRequestsDone, Timeout: short}, {Name: shutdown.PhaseServiceStop, Timeout: short},
		{Name: shutdown.PhaseBeforeClusterShutdown, Timeout: short},
		{Name: shutdown.PhaseShardingShutdown, Timeout: leave + time.Second},
		{Name: shutdown.PhaseClusterLeave, Timeout: short}, {Name: shutdown.PhaseClusterExiting, Timeout: 2 * short},
		{Name: shutdown.PhaseClusterExitingDone, Timeout: 2 * short},
		{Name: shutdown.PhaseClusterShutdown, Timeout: 3 * short},
		{Name: shutdown.PhaseBeforeProcessEnd, Timeout: short}, {Name: shutdown.PhaseProcessEnd, Timeout: 2 * short},
	}
	for i := 1; i < len(list); i++ {
		list[i].After = []string{list[i-1].Name}
	}
	return list
}

// orderPhases merges own phases into the defaults and returns all in an order that keeps every After. Among phases
// that may come next the one declared first comes first, defaults before own ones. Errors wrap shutdown.ErrPhases: a
// name twice or empty, an unknown phase in After, a cycle, a negative time, too many.
func orderPhases(defaults, own []shutdown.Phase) ([]shutdown.Phase, error) {
	all := slices.Clone(defaults)
	at := map[string]int{}
	for i := range all {
		at[all[i].Name] = i
	}
	seen := map[string]bool{}
	for _, p := range own {
		i, known := at[p.Name]
		switch {
		case p.Name == "" || p.Timeout < 0:
			return nil, fmt.Errorf("%w: phase %q with time limit %v", shutdown.ErrPhases, p.Name, p.Timeout)
		case seen[p.Name]:
			return nil, fmt.Errorf("%w: phase %q twice", shutdown.ErrPhases, p.Name)
		case known:
			all[i].After = append(slices.Clone(all[i].After), p.After...)
			all[i].Strict = p.Strict
			if p.Timeout > 0 {
				all[i].Timeout = p.Timeout
			}
		default:
			if p.Timeout == 0 {
				p.Timeout = shutdown.DefaultPhaseTimeout
			}
			at[p.Name] = len(all)
			all = append(all, p)
		}
		seen[p.Name] = true
	}
	if len(all) > shutdown.MaxPhases {
		return nil, fmt.Errorf("%w: %d phases, at most %d", shutdown.ErrPhases, len(all), shutdown.MaxPhases)
	}
	for _, p := range all {
		for _, a := range p.After {
			if _, ok := at[a]; !ok {
				return nil, fmt.Errorf("%w: phase %q comes after %q, which is unknown", shutdown.ErrPhases, p.Name, a)
			}
		}
	}
	return sortPhases(all)
}

func sortPhases(all []shutdown.Phase) ([]shutdown.Phase, error) {
	order, placed := make([]shutdown.Phase, 0, len(all)), map[string]bool{}
	for len(order) < len(all) {
		next := slices.IndexFunc(all, func(p shutdown.Phase) bool {
			return !placed[p.Name] && !slices.ContainsFunc(p.After, func(a string) bool { return !placed[a] })
		})
		if next < 0 {
			var left []string
			for _, p := range all {
				if !placed[p.Name] {
					left = append(left, p.Name)
				}
			}
			return nil, fmt.Errorf("%w: a cycle among %v", shutdown.ErrPhases, left)
		}
		placed[all[next].Name] = true
		order = append(order, all[next])
	}
	return order, nil
}

// phaseTask is one thing to do in a phase.
type phaseTask struct {
	name string
	run  func(ctx context.Context) error
}

// phases is one shutdown: its tasks, and its one run. All methods are safe for concurrent use.
type phases struct {
	log   *slog.Logger
	order []shutdown.Phase

	mu     sync.Mutex
	tasks  map[string][]phaseTask
	begun  int // phases that have begun, or been passed over
	why    shutdown.Reason
	ran    bool
	err    error
	finish chan struct{}
}

func newPhases(order []shutdown.Phase, log *slog.Logger) *phases {
	return &phases{log: log, order: order, tasks: map[string][]phaseTask{}, finish: make(chan struct{})}
}

func (s *phases) index(name string) int {
	return slices.IndexFunc(s.order, func(p shutdown.Phase) bool { return p.Name == name })
}

// add registers a task for a phase that has not begun, also during the run.
func (s *phases) add(phase, name string, run func(ctx context.Context) error) error {
	i := s.index(phase)
	if i < 0 {
		return fmt.Errorf("%w: %q", shutdown.ErrUnknownPhase, phase)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case i < s.begun:
		return fmt.Errorf("%w: %q", shutdown.ErrPhasePassed, phase)
	case len(s.tasks[phase]) >= shutdown.MaxPhaseTasks:
		return fmt.Errorf("%w: %q has %d", shutdown.ErrPhaseFull, phase, shutdown.MaxPhaseTasks)
	}
	s.tasks[phase] = append(s.tasks[phase], phaseTask{name, run})
	return nil
}

// begin starts the run at a phase, the first one if from is empty, on a goroutine of its own. Only the first call does:
// its reason is the shutdown's, and later ones learn of it from finish.
func (s *phases) begin(why shutdown.Reason, from string) error {
	first := 0
	if from != "" {
		if first = s.index(from); first < 0 {
			return fmt.Errorf("%w: %q", shutdown.ErrUnknownPhase, from)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ran {
		return nil
	}
	s.ran, s.why, s.begun = true, why, first
	go s.run(first)
	return nil
}

// reason returns why the shutdown runs or ran, empty before.
func (s *phases) reason() shutdown.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

func (s *phases) run(first int) {
	began := time.Now()
	s.log.Info("shutting down", "reason", string(s.reason()), "from", s.order[first].Name)
	for i := first; i < len(s.order); i++ {
		p := &s.order[i]
		s.mu.Lock()
		tasks := s.tasks[p.Name]
		s.begun = i + 1
		s.mu.Unlock()
		if err := s.phase(p, tasks); err != nil && p.Strict {
			s.err = fmt.Errorf("kith: shutdown aborted in phase %q: %w", p.Name, err)
			break
		}
	}
	s.log.Info("shutdown is over", "reason", string(s.reason()), "took", time.Since(began), "error", s.err)
	close(s.finish)
}

// phase runs the tasks of one phase side by side and waits for all of them, at most its time limit. Those that do not
// return then are left behind, with a context that has ended.
func (s *phases) phase(p *shutdown.Phase, tasks []phaseTask) error {
	if len(tasks) == 0 {
		return nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), p.Timeout)
	defer cancel()
	s.log.Info("shutdown phase", "phase", p.Name, "tasks", len(tasks), "limit", p.Timeout)
	type outcome struct {
		name string
		err  error
	}
	done := make(chan outcome, len(tasks)) // a task that is left behind never blocks
	open := map[string]int{}
	for _, t := range tasks {
		open[t.name]++
		go func() {
			o := outcome{t.name, fmt.Errorf("%w: runtime.Goexit was called", shutdown.ErrTaskPanic)}
			defer func() { done <- o }() // also when the task ends its goroutine
			o.err = guarded(ctx, t.run)
		}()
	}
	var errs []error
	for range tasks {
		select {
		case o := <-done:
			if open[o.name]--; open[o.name] == 0 {
				delete(open, o.name)
			}
			if o.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.name, o.err))
			}
			continue
		case <-ctx.Done():
		}
		var names []string
		for name := range open {
			names = append(names, name)
		}
		slices.Sort(names)
		errs = append(errs, fmt.Errorf("%w after %v: %v", shutdown.ErrPhaseTimeout, p.Timeout, names))
		break
	}
	err := errors.Join(errs...)
	if err != nil {
		s.log.Warn("shutdown phase failed", "phase", p.Name, "took", time.Since(began), "strict", p.Strict, "error", err)
		return err
	}
	s.log.Info("shutdown phase done", "phase", p.Name, "took", time.Since(began))
	return nil
}

// guarded runs a task; a panic of it is its error.
func guarded(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v\n%s", shutdown.ErrTaskPanic, v, debug.Stack())
		}
	}()
	return run(ctx)
}
