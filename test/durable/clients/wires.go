// Wires: a proxy before each process, by which the processes of one side of a cut hear nothing of the other.

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// wires are the proxies.
type wires struct {
	all []net.Listener

	mu    sync.Mutex
	first int                 // of the side that is cut off; as many as there are: none
	conns map[net.Conn][2]int // the numbers of the dialler and of the process it dialled
}

// lay makes as many proxies.
func lay(n int) (*wires, error) {
	w := &wires{first: n, conns: map[net.Conn][2]int{}}
	for range n {
		ln, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			w.close()
			return nil, err
		}
		w.all = append(w.all, ln)
	}
	for i, ln := range w.all {
		go w.accept(ln, i)
	}
	return w, nil
}

func (w *wires) accept(ln net.Listener, i int) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go w.carry(c, i)
	}
}

func (w *wires) close() {
	for _, ln := range w.all {
		_ = ln.Close()
	}
}

// addr is by what a process is known to the others, back where it listens: the same port of another address of
// loopback, which Linux has.
func (w *wires) addr(i int) *net.TCPAddr { return w.all[i].Addr().(*net.TCPAddr) }
func (w *wires) back(i int) string       { return fmt.Sprintf("127.0.1.1:%d", w.addr(i).Port) }

// parted reports whether a cut lies between two.
func (w *wires) parted(a, b int) bool { return a >= 0 && (a >= w.first) != (b >= w.first) }

// carry carries a connection, unless its ends are parted: then it is silent until it is given up.
func (w *wires) carry(c net.Conn, to int) {
	defer c.Close()
	hello := make([]byte, 1024) // has the address by which its sender is known
	n, err := io.ReadAtLeast(c, hello, 64)
	if err != nil {
		return
	}
	from := -1
	for i := range w.all {
		at := w.addr(i)
		if bytes.Contains(hello[:n], binary.LittleEndian.AppendUint16(at.IP.To4(), uint16(at.Port))) {
			from = i
		}
	}
	w.mu.Lock()
	silent := w.parted(from, to)
	w.conns[c] = [2]int{from, to}
	w.mu.Unlock()
	defer w.forget(c)
	if silent {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	d, err := net.Dial("tcp4", w.back(to))
	if err != nil {
		return
	}
	defer d.Close()
	if _, err := d.Write(hello[:n]); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(c, d)
		_ = c.Close()
	}()
	_, _ = io.Copy(d, c)
}

func (w *wires) forget(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// sever cuts the processes from first on off from those before.
func (w *wires) sever(first int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = first
	for c, ends := range w.conns {
		if w.parted(ends[0], ends[1]) {
			_ = c.Close()
		}
	}
}
