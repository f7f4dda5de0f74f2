// Child: a process of the same program that answers calls over its pipes and dies with its parent.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// ErrChildGone is wrapped by every error that a call gets because the child's process ended.
var ErrChildGone = errors.New("child process ended")

// Options says how a child is started.
type Options struct {
	Name   string    // stands in errors
	Path   string    // the program; empty means this one
	Args   []string  // its arguments
	Env    []string  // added to this process's environment
	CPUs   []int     // cores that the child may run on; empty means all that this process may
	Stderr io.Writer // takes the child's stderr; nil keeps only the end of it, for errors
}

// Child is a running child process. Its methods are safe for concurrent use.
type Child struct {
	name string
	cmd  *exec.Cmd
	tail *tail

	mu      sync.Mutex
	in      io.WriteCloser
	last    uint64
	waiting map[uint64]chan answer

	done chan struct{}
	err  error // set before done is closed
}

// Start starts a child. The child ends when its stdin is closed, so it never outlives this process.
func Start(o Options) (*Child, error) {
	path := o.Path
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", o.Name, err)
		}
		path = self
	}
	c := &Child{name: o.Name, cmd: exec.Command(path, o.Args...), tail: &tail{to: o.Stderr},
		waiting: map[uint64]chan answer{}, done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), o.Env...)
	c.cmd.Stderr = c.tail
	// Ctrl-C on the terminal reaches the parent alone, which then ends its children in order.
	c.cmd.SysProcAttr = ownGroup()
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	if err := startOn(c.cmd, o.CPUs); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	go c.read(out)
	return c, nil
}

// read hands answers to the calls that wait for them, until the child closes its stdout; then it reaps the child.
func (c *Child) read(out io.Reader) {
	s := lines(out)
	var bad error
	for s.Scan() {
		var a answer
		if bad = json.Unmarshal(s.Bytes(), &a); bad != nil {
			bad = fmt.Errorf("answer is not the protocol's: %w", bad)
			break
		}
		c.mu.Lock()
		ch := c.waiting[a.ID]
		delete(c.waiting, a.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- a // has room for the one answer
		}
	}
	if bad == nil {
		bad = s.Err()
	}
	if bad != nil { // nothing more can be understood
		_ = c.cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
	}
	c.err = errors.Join(bad, c.cmd.Wait())
	close(c.done)
}

// Name returns the name given at the start.
func (c *Child) Name() string { return c.name }

// PID returns the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Process returns the child's process, for signals.
func (c *Child) Process() *os.Process { return c.cmd.Process }

// Done is closed when the child's process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says why the child ended, with the end of its stderr; nil while it runs and after a clean exit.
func (c *Child) Err() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w%s", c.name, ErrChildGone, c.err, c.tail.String())
}

// Call sends a call and waits for its answer, which is parsed into result unless that is nil.
func (c *Child) Call(ctx context.Context, op string, args, result any) error {
	a, err := c.exchange(ctx, op, args)
	switch {
	case err != nil:
		return err
	case a.Error != "":
		return fmt.Errorf("%s: %s: %s", c.name, op, a.Error)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("%s: %s: answer: %w", c.name, op, err)
	}
	return nil
}

// CallWithin is Call with a time limit.
func (c *Child) CallWithin(ctx context.Context, limit time.Duration, op string, args, result any) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.Call(limited, op, args, result)
}

func (c *Child) exchange(ctx context.Context, op string, args any) (answer, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %s: %w", c.name, op, err)
	}
	ch := make(chan answer, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = ch
	line, _ := json.Marshal(call{ID: id, Op: op, Args: raw})
	_, err = c.in.Write(append(line, '\n'))
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err != nil {
		return answer{}, c.gone(op)
	}
	select {
	case a := <-ch:
		return a, nil
	case <-c.done:
		return answer{}, c.gone(op)
	case <-ctx.Done():
		return answer{}, fmt.Errorf("%s: %s: %w", c.name, op, ctx.Err())
	}
}

func (c *Child) gone(op string) error {
	select {
	case <-c.done:
	case <-time.After(time.Second): // the pipe broke before the process was reaped
	}
	if err := c.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %s: %w", c.name, op, ErrChildGone)
}

// Said returns the end of what the child has written to its stderr, as an appendix to an error, or nothing.
func (c *Child) Said() string { return c.tail.String() }

// Close ends the child by closing its stdin, kills it when it has not ended within grace, and returns why it ended: nil
// after a clean exit.
func (c *Child) Close(grace time.Duration) error {
	c.mu.Lock()
	_ = c.in.Close()
	c.mu.Unlock()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.done:
		return c.Err()
	case <-t.C:
	}
	_ = c.cmd.Process.Kill()
	<-c.done
	return fmt.Errorf("%s: did not end within %v of being told to: killed%s", c.name, grace, c.tail.String())
}

// Kill ends the child at once, as a crash would, and waits until it is gone.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// tailBytes is how much of a child's stderr is kept for errors.
const tailBytes = 4 << 10

// tail keeps the end of what is written to it and passes everything on when there is somewhere to pass it.
type tail struct {
	mu  sync.Mutex
	to  io.Writer
	end []byte
}

// Write never fails: a child must not stop because nobody reads its log.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(b)
	}
	t.end = append(t.end, b...)
	if over := len(t.end) - tailBytes; over > 0 {
		t.end = append(t.end[:0], t.end[over:]...)
	}
	return len(b), nil
}

// String returns what was kept as an appendix to an error, or nothing.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.end) == 0 {
		return ""
	}
	return "; end of its stderr:\n" + string(t.end)
}
