// Etcd: one server, and a proxy for each node, which lets pass what comes or nothing.

package leasestore

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// etcd is the store.
type etcd struct {
	server *etcdserver.Server
	log    *os.File
	gates  []*Gate
}

func newEtcd(c Config) (Store, error) {
	e := &etcd{}
	err := os.MkdirAll(c.Dir, 0o755)
	if err == nil {
		e.log, err = os.Create(filepath.Join(c.Dir, "etcd.log"))
	}
	if err == nil {
		e.server, err = etcdserver.New(e.log)
	}
	if err == nil {
		err = e.server.Start()
	}
	for slot := 0; slot < c.Nodes && err == nil; slot++ {
		var ln net.Listener
		if ln, err = c.Listen(slot); err == nil {
			to := strings.TrimPrefix(e.server.URL(), "http://")
			e.gates = append(e.gates, NewGate(ln, func() (net.Conn, error) { return net.Dial("tcp4", to) }))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("leasestore: etcd: %w", errors.Join(err, e.Close()))
	}
	return e, nil
}

// Address implements Store.
func (e *etcd) Address(slot int) string {
	return "etcd://" + e.gates[slot].ln.Addr().String() + "/lab/"
}

// Cut implements Store.
func (e *etcd) Cut(slots []int) error {
	for slot, g := range e.gates {
		g.Set(!slices.Contains(slots, slot))
	}
	return nil
}

// Stop implements Store.
func (e *etcd) Stop(on bool) error {
	if on {
		return e.server.Signal(syscall.SIGSTOP)
	}
	return e.server.Signal(syscall.SIGCONT)
}

// Restart implements Store.
func (e *etcd) Restart() error {
	e.server.Stop(syscall.SIGKILL)
	return e.server.Start()
}

// Close implements Store.
func (e *etcd) Close() (err error) {
	for _, g := range e.gates {
		err = errors.Join(err, g.Close())
	}
	if e.server != nil {
		err = errors.Join(err, e.server.Remove())
	}
	if e.log != nil {
		err = errors.Join(err, e.log.Close())
	}
	return err
}

// Gate is a way to a server that can be cut. Make it with NewGate.
type Gate struct {
	ln   net.Listener
	dial func() (net.Conn, error)
	busy sync.WaitGroup

	mu    sync.Mutex
	open  chan struct{} // closed: what comes passes
	conns []net.Conn
	over  bool
}

// NewGate takes what comes to a listener, which it closes in the end, to the server that dial connects to. It is open.
func NewGate(ln net.Listener, dial func() (net.Conn, error)) *Gate {
	g := &Gate{ln: ln, dial: dial, open: make(chan struct{})}
	close(g.open)
	g.busy.Go(g.accept)
	return g
}

// Set lets pass what comes, or keeps it, as a network does that loses all: what was sent before comes when it is back.
func (g *Gate) Set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	is := closed(g.open)
	switch {
	case open && !is:
		close(g.open)
	case !open && is:
		g.open = make(chan struct{})
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pass waits until what comes passes.
func (g *Gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

// keep notes a connection that is to end with the gate, and reports whether there still is one.
func (g *Gate) keep(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		_ = c.Close()
		return false
	}
	g.conns = append(g.conns, c)
	return true
}

func (g *Gate) accept() {
	for {
		c, err := g.ln.Accept()
		if err != nil {
			return
		}
		if g.keep(c) {
			g.busy.Go(func() { g.serve(c) })
		}
	}
}

// serve carries a connection, which ends with the server's.
func (g *Gate) serve(c net.Conn) {
	defer g.forget(c)
	g.pass()
	up, err := g.dial()
	if err != nil || !g.keep(up) {
		return
	}
	defer g.forget(up)
	var busy sync.WaitGroup
	busy.Go(func() { g.carry(up, c) })
	g.carry(c, up)
	busy.Wait()
}

// carry carries one way, until one end has gone.
func (g *Gate) carry(to, from net.Conn) {
	b := make([]byte, 16<<10)
	for {
		n, err := from.Read(b)
		g.pass()
		if n > 0 {
			if _, bad := to.Write(b[:n]); bad != nil {
				err = bad
			}
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}

func (g *Gate) forget(c net.Conn) {
	_ = c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = slices.DeleteFunc(g.conns, func(have net.Conn) bool { return have == c })
}

// Close ends all connections, and waits.
func (g *Gate) Close() error {
	g.Set(true)
	err := g.ln.Close()
	g.mu.Lock()
	g.over = true
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.busy.Wait()
	return err
}
