// Cuts: a proxy before each node process, by which nodes are cut off from each other, and which is gone with its node.

// Package cuts lays proxies on loopback between node processes. A node is known by the address of its proxy.
package cuts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
)

// Network is what lies between the nodes. Node i is known by Addr(i) and listens at Back(i). Its methods are safe for
// concurrent use.
type Network struct {
	mu    sync.Mutex
	addrs []*net.TCPAddr
	open  []net.Listener // nil: nobody answers there
	side  []int          // of each node: links between two sides are cut
	conns map[net.Conn][2]int
}

// host is an address of loopback at which no connection begins by itself, where there is one.
func host(part, i int) string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.0.%d.%d", part, i+1)
}

// Lay makes the proxies of n nodes.
func Lay(n int) (*Network, error) {
	w := &Network{open: make([]net.Listener, n), side: make([]int, n), conns: map[net.Conn][2]int{}}
	for i := range n {
		ln, err := net.Listen("tcp4", host(1, i)+":0")
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.addrs = append(w.addrs, ln.Addr().(*net.TCPAddr))
		w.serve(i, ln)
	}
	return w, nil
}

// serve has a listener be the proxy of a node.
func (w *Network) serve(i int, ln net.Listener) {
	w.open[i] = ln
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go w.carry(c, i)
		}
	}()
}

// Addr is where others reach a node.
func (w *Network) Addr(i int) *net.TCPAddr { return w.addrs[i] }

// Back is where a node listens itself.
func (w *Network) Back(i int) string { return fmt.Sprintf("%s:%d", host(2, i), w.addrs[i].Port) }

// Gone refuses connections to a node from now on, as the system does for a process that has ended.
func (w *Network) Gone(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[i] != nil {
		_ = w.open[i].Close()
		w.open[i] = nil
	}
}

// Comes accepts connections to a node again.
func (w *Network) Comes(i int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[i] != nil {
		return nil
	}
	ln, err := net.ListenTCP("tcp4", w.addrs[i])
	if err != nil {
		return err
	}
	w.serve(i, ln)
	return nil
}

// Close ends all proxies, and what they carry.
func (w *Network) Close() error {
	for i := range w.open {
		w.Gone(i)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns { // in any order
		_ = c.Close()
	}
	return nil
}

// carry carries a connection, unless its ends are cut off from each other: then it is silent until the dialler ends it.
func (w *Network) carry(c net.Conn, to int) {
	defer c.Close()
	hello := make([]byte, 1024) // has the address by which its sender is known
	n, err := io.ReadAtLeast(c, hello, 64)
	if err != nil {
		return
	}
	from := -1
	for i := range w.addrs {
		at := w.addrs[i]
		if bytes.Contains(hello[:n], append(at.IP.To4(), byte(at.Port), byte(at.Port>>8))) {
			from = i
		}
	}
	w.mu.Lock()
	silent := from >= 0 && w.side[from] != w.side[to]
	w.conns[c] = [2]int{from, to}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.conns, c)
		w.mu.Unlock()
	}()
	if silent {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	d, err := net.Dial("tcp4", w.Back(to))
	if err != nil {
		return
	}
	defer d.Close()
	if _, err := d.Write(hello[:n]); err != nil {
		return
	}
	go func() { _, _ = io.Copy(c, d); _ = c.Close() }()
	_, _ = io.Copy(d, c)
}

// Cut puts nodes on the other side, and breaks the connections between both, and those that were silent; with none all
// are on one side again.
func (w *Network) Cut(nodes ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := append([]int(nil), w.side...)
	clear(w.side)
	for _, i := range nodes {
		w.side[i] = 1
	}
	for c, ends := range w.conns { // in any order
		if from, to := ends[0], ends[1]; from >= 0 && (w.side[from] != w.side[to] || was[from] != was[to]) {
			_ = c.Close()
		}
	}
}
