// Processes: what is done with all of a fleet at once, and what of them is waited for.

package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// How long things may take that each process of a fleet does.
const (
	FormLimit  = 60 * time.Second // until all see all of them Up
	DrainLimit = 60 * time.Second // for what is in flight when the senders stop
	CloseGrace = 5 * time.Second  // to end when it is asked to

	drainQuiet = 5 * time.Second // without any arrival what is missing is taken for lost
)

// Each calls f for all of a list at once, and joins the errors.
func Each[T any](list []T, f func(i int, x T) error) error {
	errs := make([]error, len(list))
	var busy sync.WaitGroup
	for i, x := range list {
		busy.Go(func() { errs[i] = f(i, x) })
	}
	busy.Wait()
	return errors.Join(errs...)
}

// Caller is a process that answers calls, as a *cli.Child does.
type Caller interface {
	Call(ctx context.Context, op string, args, result any) error
}

// Ask makes the same call to all processes at once, and returns what each has answered.
func Ask[R any, C Caller](ctx context.Context, list []C, op string, args any) ([]R, error) {
	all := make([]R, len(list))
	return all, Each(list, func(i int, c C) error { return c.Call(ctx, op, args, &all[i]) })
}

// Tell makes the same call to all processes at once, whatever they answer.
func Tell[C Caller](ctx context.Context, list []C, op string, args any) error {
	return Each(list, func(_ int, c C) error { return c.Call(ctx, op, args, nil) })
}

// Close ends all processes, each of which may take CloseGrace.
func Close(list []*cli.Child) error {
	return Each(list, func(_ int, c *cli.Child) error { return c.Close(CloseGrace) })
}

// Kill ends all processes as a crash would, and waits until they are gone.
func Kill(list []*cli.Child) {
	for _, c := range list {
		c.Kill()
	}
}

// Until looks every so often until what it sees is ok, and returns what it saw last. It fails when a look does, and
// when ctx ends.
func Until[T any](ctx context.Context, every time.Duration, look func(context.Context) (T, error),
	ok func(T) bool) (T, error) {
	for {
		seen, err := look(ctx)
		if err != nil || ok(seen) {
			return seen, err
		}
		if !cli.Pause(ctx, every) {
			return seen, context.Cause(ctx)
		}
	}
}

// Drain waits until as many messages have come as were sent, or none has come for a while, and tells of those that did
// not.
func Drain(ctx context.Context, sent uint64, progress *cli.Progress, came func(context.Context) (uint64, error)) error {
	began := time.Now()
	last, moved := uint64(0), began
	_, err := Until(ctx, 20*time.Millisecond, came, func(n uint64) bool {
		if n != last {
			last, moved = n, time.Now()
		}
		return n >= sent || time.Since(moved) > drainQuiet || time.Since(began) > DrainLimit
	})
	if err == nil && last < sent {
		progress.Printf("%d of %d messages did not come", sent-last, sent)
	}
	return err
}
