// Serve: the child's side, which answers calls from stdin until it is closed.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Ops names what a child can be asked to do. Each op runs in its own goroutine; its context ends with the parent.
type Ops map[string]func(ctx context.Context, args json.RawMessage) (any, error)

// Op makes an entry of Ops from a function with typed arguments and result. Unknown arguments are refused.
func Op[A, R any](f func(context.Context, A) (R, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var a A
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return f(ctx, a)
	}
}

// None is the argument or the result of an op that has none.
type None struct{}

// maxCalls bounds the calls that a child works on at once; a further one waits in the pipe.
const maxCalls = 64

// lastGrace is how long the calls under way get to end after the parent has gone.
const lastGrace = 2 * time.Second

// Serve answers the calls that come from in on out until in ends: the parent closed it, or died. Then it cancels what
// is under way, waits for it a moment, and returns. SIGINT is ignored from then on: the parent decides when to end.
func Serve(in io.Reader, out io.Writer, ops Ops) error {
	signal.Ignore(syscall.SIGINT)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var (
		mu   sync.Mutex // of out
		busy sync.WaitGroup
		room = make(chan struct{}, maxCalls)
	)
	send := func(a answer) {
		b, err := json.Marshal(a)
		if err != nil { // cannot be: the result was marshalled before
			b, _ = json.Marshal(answer{ID: a.ID, Error: err.Error()})
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.Write(append(b, '\n')) // a parent that is gone shows at in
	}
	s := lines(pollable(in))
	for s.Scan() {
		var c call
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return fmt.Errorf("call is not the protocol's: %w", err)
		}
		room <- struct{}{}
		busy.Go(func() {
			defer func() { <-room }()
			send(serveOne(ctx, ops, c))
		})
	}
	cancel()
	ended := make(chan struct{})
	go func() { busy.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(lastGrace):
	}
	return s.Err()
}

// pollable returns what reads in without holding up others. A read of a pipe that blocks keeps a place of the Go
// runtime from all that could run there, until its monitor notices: with two cores up to 20 ms behind each call, which
// showed in what the callers measure.
func pollable(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok || f.SetReadDeadline(time.Time{}) == nil { // it is polled already
		return in
	}
	if i, err := f.Stat(); err != nil || i.Mode()&os.ModeNamedPipe == 0 {
		return in // a terminal belongs to others too
	}
	fd := f.Fd()
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		return in
	}
	return os.NewFile(fd, f.Name())
}

func serveOne(ctx context.Context, ops Ops, c call) answer {
	f, ok := ops[c.Op]
	if !ok {
		return answer{ID: c.ID, Error: fmt.Sprintf("unknown op %q", c.Op)}
	}
	r, err := f(ctx, c.Args)
	if err != nil {
		return answer{ID: c.ID, Error: err.Error()}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return answer{ID: c.ID, Error: "result: " + err.Error()}
	}
	return answer{ID: c.ID, Result: raw}
}
