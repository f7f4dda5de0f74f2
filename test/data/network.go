// Network: a proxy before each node, by which nodes are cut off from each other.

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// network is what lies between the nodes. Node i is known by addr(i) and listens at back(i).
type network struct {
	mu    sync.Mutex
	all   []net.Listener
	side  []int // of each node: links between two sides are cut
	conns map[net.Conn][2]int
}

// lay makes the proxies.
func lay(n int) (*network, error) {
	w := &network{side: make([]int, n), conns: map[net.Conn][2]int{}}
	for i := range n {
		ln, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			w.close()
			return nil, err
		}
		w.all = append(w.all, ln)
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
	return w, nil
}

func (w *network) close() {
	for _, ln := range w.all {
		_ = ln.Close()
	}
}

func (w *network) addr(i int) *net.TCPAddr { return w.all[i].Addr().(*net.TCPAddr) }

func (w *network) back(i int) string { return fmt.Sprintf("127.0.1.1:%d", w.addr(i).Port) }

// carry carries a connection, unless its ends are cut off from each other: then it is silent until its dialler gives up.
func (w *network) carry(c net.Conn, to int) {
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
	silent := from >= 0 && w.side[from] != w.side[to]
	if !silent {
		w.conns[c] = [2]int{from, to}
	}
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
	d, err := net.Dial("tcp4", w.back(to))
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

// cut puts nodes on the other side, and breaks the connections between both; with none all are on one side again.
func (w *network) cut(nodes ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.side)
	for _, i := range nodes {
		w.side[i] = 1
	}
	for c, ends := range w.conns {
		if ends[0] >= 0 && w.side[ends[0]] != w.side[ends[1]] {
			_ = c.Close()
		}
	}
}
