// The cluster: processes, oldest first, and their store.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/pgserver"
)

// process is one of them.
type process struct {
	cmd        *exec.Cmd
	stdin      io.Closer
	log        *os.File
	node, door string
	struck     atomic.Bool
	said       chan string // lines of stdout
	done       chan struct{}
}

// cluster is all of them, and what they stand on.
type cluster struct {
	self   []string // environment of a child
	dir    string
	want   int
	order  order
	server *pgserver.Server
	wires  *wires // nil: none are between the processes

	mu      sync.Mutex
	all     []*process // that run, the oldest first
	started int
}

const (
	startTime = 2 * time.Minute
	endTime   = time.Minute
)

func newCluster(ctx context.Context, e *env.Env, c *runCmd, proof, wired bool) (f *cluster, err error) {
	f = &cluster{self: e.SelfEnv, want: c.Nodes, order: order{Engine: c.Engine, Proof: proof, Listen: "127.0.0.1:0"}}
	if f.dir, err = os.MkdirTemp("", "kith-clients"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if c.Engine == sqliteEngine {
		f.order.Source = filepath.Join(f.dir, "db")
	} else if err := f.serveStore(); err != nil {
		return f, err
	}
	if wired {
		if f.wires, err = lay(c.Nodes); err != nil {
			return f, err
		}
	}
	return f, f.fill(ctx)
}

// serveStore starts PostgreSQL.
func (f *cluster) serveStore() (err error) {
	log, err := os.Create(filepath.Join(f.dir, "postgres.log"))
	if err != nil {
		return err
	}
	if f.server, err = pgserver.New(log); err == nil {
		err = f.server.Init()
	}
	if err == nil {
		err = f.server.Start()
	}
	if err != nil {
		return fmt.Errorf("PostgreSQL (Debian: apt-get install postgresql): %w", err)
	}
	f.order.Source = f.server.URL()
	return nil
}

// fill starts processes until all that are wanted run.
func (f *cluster) fill(ctx context.Context) error {
	for len(f.running()) < f.want {
		if _, err := f.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// running returns those that run, the oldest first.
func (f *cluster) running() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

// pick returns any that runs, as a load balancer does that knows who has ended.
func (f *cluster) pick() *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[rand.IntN(len(f.all))]
}

// start starts one, and returns when it serves.
func (f *cluster) start(ctx context.Context) (*process, error) {
	o := f.order
	for _, p := range f.running() {
		o.Seeds = append(o.Seeds, p.node)
	}
	if f.wires != nil {
		o.Listen, o.Advertise = f.wires.back(f.started), f.wires.addr(f.started).String()
	}
	f.started++
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, "child"), said: make(chan string, 4), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), f.self...)
	p.log, err = os.Create(filepath.Join(f.dir, fmt.Sprintf("process-%d.log", f.started)))
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the parent alone
	in, err := p.cmd.StdinPipe()
	out, failed := p.cmd.StdoutPipe()
	if err := errors.Join(err, failed, p.cmd.Start()); err != nil {
		return nil, err
	}
	p.stdin = in
	go f.reap(p, out)
	if err := json.NewEncoder(in).Encode(o); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	line, err := p.says(limited)
	if err == nil {
		_, err = fmt.Sscan(line, &p.node, &p.door)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process %d did not start: see %s: %w", f.started, p.log.Name(), err), p.kill())
	}
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
	return p, nil
}

// reap hands its lines on, and takes it off when it has ended.
func (f *cluster) reap(p *process, out io.Reader) {
	s := bufio.NewScanner(out)
	for s.Scan() {
		select {
		case p.said <- s.Text():
		default:
		}
	}
	_ = p.cmd.Wait()
	f.mu.Lock()
	f.all = slices.DeleteFunc(f.all, func(x *process) bool { return x == p })
	f.mu.Unlock()
	_ = p.log.Close()
	close(p.done)
}

// says returns its next line.
func (p *process) says(ctx context.Context) (string, error) {
	select {
	case line := <-p.said:
		return line, nil
	case <-p.done:
		return "", errors.New("it has ended")
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// signal sends it a signal, and notes that something has happened to it.
func (p *process) signal(s syscall.Signal) error {
	p.struck.Store(true)
	return p.cmd.Process.Signal(s)
}

// ended waits until it has.
func (p *process) ended(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-limited.Done():
		return fmt.Errorf("a process does not end: %w", context.Cause(limited))
	}
}

// kill ends it as a crash does.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.done
	return err
}

// close ends all, and removes what they had.
func (f *cluster) close() (err error) {
	for _, p := range f.running() {
		_ = p.kill() // it may have ended
	}
	if f.wires != nil {
		f.wires.close()
	}
	if f.server != nil {
		f.server.Stop(syscall.SIGINT)
		err = f.server.Remove()
	}
	return errors.Join(err, os.RemoveAll(f.dir))
}
