// Serve: a Go peer's program, from its parts to the calls that it answers.

package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
)

// Program has the parts of one peer.
type Program struct {
	// Module is reported with its version; "" when there is none.
	Module string
	// Serve makes this process the receiver and returns its address. Every message that reaches a handler is counted
	// with in.Count, or by Counted when that is set.
	Serve func(ctx context.Context, in *Inbound) (addr string, err error)
	// Dial makes this process the sender.
	Dial func(ctx context.Context, addr string) (Sender, error)
	// Counted says how many messages have reached handlers, where the peer's own program counts.
	Counted func() uint64
	// Window bounds the messages of one way that are under way, for peers that would drop or gather them without end
	// otherwise; 0 when the peer holds its senders back by itself.
	Window func(size int) uint64
}

// Sender sends to the receiver that it was dialled to.
type Sender interface {
	// Load does what l says and returns when all asks have ended and all tells have been handed over.
	Load(ctx context.Context, l Load) (Result, error)
}

// Main answers the runner's calls until it is gone, and ends the process.
func Main(p *Program) {
	s := &server{program: p}
	err := cli.Serve(os.Stdin, os.Stdout, cli.Ops{
		"serve": cli.Op(s.serve), "dial": cli.Op(s.dial), "load": cli.Op(s.load), "usage": cli.Op(s.usage),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type server struct {
	program *Program
	in      *Inbound
	sender  Sender
	window  *window
}

func (s *server) serve(ctx context.Context, _ cli.None) (Served, error) {
	s.in = newInbound()
	addr, err := s.program.Serve(context.WithoutCancel(ctx), s.in)
	if err != nil || s.program.Window == nil {
		return Served{addr, Version(s.program.Module)}, err
	}
	credit, err := s.in.listen()
	return Served{addr + " " + credit, Version(s.program.Module)}, err
}

func (s *server) dial(ctx context.Context, a DialArgs) (cli.None, error) {
	addr, credit, found := strings.Cut(a.Addr, " ")
	var err error
	if found {
		if s.window, err = dialWindow(ctx, credit); err != nil {
			return cli.None{}, err
		}
	}
	s.sender, err = s.program.Dial(context.WithoutCancel(ctx), addr)
	return cli.None{}, err
}

func (s *server) load(ctx context.Context, l Load) (Result, error) {
	if s.sender == nil {
		return Result{}, errors.New("load: not dialled")
	}
	if err := l.Validate(); err != nil {
		return Result{}, err
	}
	if s.window != nil && l.Work == Tell {
		s.window.open(s.program.Window(l.Size))
		ctx = context.WithValue(ctx, windowKey{}, s.window)
	}
	return s.sender.Load(ctx, l)
}

func (s *server) usage(context.Context, cli.None) (Usage, error) {
	now := bench.Now()
	u := Usage{At: int64(now.At), CPU: int64(now.CPU), Mallocs: &now.Mallocs}
	switch {
	case s.program.Counted != nil:
		u.Count = s.program.Counted()
	case s.in != nil:
		u.Count = s.in.total()
	}
	return u, nil
}

// Version returns the version of a module that this program was built with, "" when it has none.
func Version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || module == "" {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module {
			if m.Replace != nil {
				m = m.Replace
			}
			return m.Version
		}
	}
	return ""
}

// NodesVariable says of how many nodes the receiver is; one without it.
const NodesVariable = "PEERS_NODES"

// Nodes returns of how many nodes the receiver is, or what a peer has in their place.
func Nodes() int {
	if n, err := strconv.Atoi(os.Getenv(NodesVariable)); err == nil && n > 0 {
		return n
	}
	return 1
}

// FreePort returns a loopback port that was free a moment ago, for libraries that cannot tell which one they got.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
