// Life: what a program does beside one of its nodes, and whether it may be sent work.

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// fitness is what a program says of itself: nothing, or why it is not ready.
type fitness struct{ unfit atomic.Pointer[string] }

// starts is what is said before the function has said anything.
const starts = "the program has not said that it is ready"

func newFitness() *fitness {
	f := &fitness{}
	f.say(starts)
	return f
}

func (f *fitness) say(why string) { f.unfit.Store(&why) }
func (f *fitness) why() string    { return *f.unfit.Load() }

type fitKey struct{}

// Ready says, within the function of Run, that the program may be sent work: the probe /health/ready of the admin
// interface follows the node from then on. A function that returns nil has said so. It does nothing with a context that
// does not come from Run's.
func Ready(ctx context.Context) { NotReady(ctx, "") }

// NotReady takes that back, for a reason in words (256 bytes of them are shown), as when a store does not answer.
// Nothing but the probe changes: what the node hosts stays. An empty reason is Ready.
func NotReady(ctx context.Context, why string) {
	if f, ok := ctx.Value(fitKey{}).(*fitness); ok {
		f.say(why)
	}
}

// life is the function of a program beside one node.
type life struct {
	fit     *fitness
	stop    context.CancelCauseFunc
	over    chan struct{} // closed when the function has returned
	err     error         // what it returned; written before over is closed
	unbound chan struct{} // closed when the leave has come to what the node itself does
}

// errLeaves is the cause of the end of a function's context while its node leaves.
var errLeaves = errors.New("service: the node leaves")

// errServes is what the phase of a shutdown says that the function held up.
var errServes = errors.New("the function of service.Run has not returned")

// whyOf returns why the context of a function ends with its node: the end, when it is known already.
func whyOf(n *kith.Node) error {
	if err := n.Err(); err != nil {
		return err
	}
	switch r := n.ShutdownReason(); r {
	case kith.ReasonLeft, kith.ReasonSignal:
		return errLeaves
	default:
		return fmt.Errorf("service: the node ends: %v", r)
	}
}

// begin starts the function beside n. Its context ends in the phase in which no new requests are taken; those under way
// have the next one to end.
func begin(ctx context.Context, n *kith.Node, f Func, log *slog.Logger) *life {
	l := &life{fit: newFitness(), over: make(chan struct{}), unbound: make(chan struct{})}
	of, stop := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), fitKey{}, l.fit))
	l.stop = stop
	for _, task := range []struct {
		phase string
		run   func(context.Context) error
	}{
		{kith.PhaseServiceUnbind, func(context.Context) error { stop(whyOf(n)); return nil }},
		{kith.PhaseServiceRequestsDone, l.served},
		{kith.PhaseServiceStop, func(context.Context) error { close(l.unbound); return nil }},
	} { // it may have ended already, and its shutdown be over
		_ = n.OnShutdown(task.phase, "service", task.run)
	}
	go func() {
		select {
		case <-n.Done():
			stop(n.Err())
		case <-l.over:
		}
	}()
	go func() {
		defer close(l.over)
		if l.err = call(of, n, f, log); l.err == nil && of.Err() == nil {
			l.fit.say("")
		}
		if errors.Is(l.err, kith.ErrStopped) { // its messages found out first, or it is another node that stops
			wait(n.Done(), endTime)
		}
		switch end := n.Err(); {
		case end != nil && (errors.Is(l.err, end) || errors.Is(l.err, kith.ErrStopped)),
			of.Err() != nil && errors.Is(l.err, context.Canceled), of.Err() != nil && errors.Is(l.err, context.Cause(of)):
			l.err = nil
		}
	}()
	return l
}

// call calls the function. A panic of it is an error: the exit code of a Go program that panics says to supervisors
// that the configuration is wrong.
func call(ctx context.Context, n *kith.Node, f Func, log *slog.Logger) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the function of service.Run panicked: %v", v)
			log.Error("the program has panicked", "event", "service-panic", "panic", fmt.Sprint(v),
				"stack", string(debug.Stack()))
		}
	}()
	return f(ctx, n)
}

// endTime is how long a node may take to end after its messages say that it has stopped.
const endTime = time.Second

// wait waits for what is over at once or soon.
func wait(over <-chan struct{}, most time.Duration) {
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-over:
	case <-limit.C:
	}
}

// served waits for the function.
func (l *life) served(ctx context.Context) error {
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return errServes
	}
}

// end ends the function's context, and waits until it has returned, so long or until ctx has ended; late says that it
// has not.
func (l *life) end(ctx context.Context, most time.Duration) (late bool, err error) {
	l.stop(errLeaves)
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-l.over:
		return false, l.err
	case <-limit.C:
	case <-ctx.Done():
	}
	select { // of several that are ready at once the first select takes any
	case <-l.over:
		return false, l.err
	default:
		return ctx.Err() == nil, nil
	}
}

// failed returns why the function has failed, nil while it has not.
func (l *life) failed() error {
	select {
	case <-l.over:
		return l.err
	default:
		return nil
	}
}
