// Test of a network that breaks: three nodes, each behind a proxy, one of which is cut off.

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/store/sqlite"
)

// network is a proxy before each node.
type network struct {
	mu    sync.Mutex
	all   []net.Listener
	cut   int                 // the node that is cut off; -1: none
	conns map[net.Conn][2]int // the two ends: dialler, dialled
}

// lay makes the proxies. They end with the test.
func lay(t *testing.T, nodes int) *network {
	w := &network{cut: -1, conns: map[net.Conn][2]int{}}
	for range nodes {
		ln, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		w.all = append(w.all, ln)
		t.Cleanup(func() { _ = ln.Close() })
	}
	for i, ln := range w.all {
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
	return w
}

// addr is by what a node is known to the others.
func (w *network) addr(i int) *net.TCPAddr { return w.all[i].Addr().(*net.TCPAddr) }

// back is where it listens.
func (w *network) back(i int) string { return fmt.Sprintf("127.0.1.1:%d", w.addr(i).Port) }

// carry carries a connection, unless one of its ends is cut off: then it is silent until it is given up.
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
	silent := w.cut >= 0 && (w.cut == from || w.cut == to)
	if !silent {
		w.conns[c] = [2]int{from, to}
	}
	w.mu.Unlock()
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

// sever cuts a node off.
func (w *network) sever(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = node
	for c, ends := range w.conns {
		if ends[0] == node || ends[1] == node {
			_ = c.Close()
		}
	}
}

// TestPartition: a node is cut off from the others while its clients and its store still reach it. The others go on
// without it, it ends, and no money is lost or made, whichever was asked.
func TestPartition(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the nodes want loopback addresses beside 127.0.0.1, where the proxies have the same ports")
	}
	const opened, lost = 1000, 2
	w := lay(t, 3)
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var nodes []*kith.Node
	var doors []string
	for i := range w.all {
		cfg := kith.Config{Name: "bank", Listen: w.back(i), Advertise: w.addr(i).String()}
		if i > 0 {
			cfg.Seeds = []string{w.addr(0).String()}
		}
		n, err := kith.Start(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		nodes, doors = append(nodes, n), append(doors, door(t, n, db))
		require.NoError(t, n.Ready(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	number, want := 0, [20]int64{}
	do := func(doors []string, i int, o order) int64 {
		number++
		a, err := ask(ctx, doors, fmt.Sprint("order ", number), fmt.Sprint("account-", i), o)
		require.NoError(t, err)
		return a.Balance
	}
	for i := range want {
		want[i] = do(doors, i, order{Deposit: opened})
	}
	transfer := func() {
		from := rand.IntN(len(want))
		to := (from + 1 + rand.IntN(len(want)-1)) % len(want)
		do(doors, from, order{Transfer: 1, To: fmt.Sprint("account-", to)})
		want[from], want[to] = want[from]-1, want[to]+1
	}
	for range 50 {
		transfer()
	}
	w.sever(lost)
	for over := false; !over; transfer() {
		select {
		case <-nodes[lost].Done():
			over = true
		default:
		}
	}
	var ended *kith.EndedError
	require.ErrorAs(t, nodes[lost].Err(), &ended)
	require.NoError(t, errors.Join(nodes[0].Err(), nodes[1].Err()))
	for range 50 {
		transfer()
	}
	for i := range want {
		has := int64(-1)
		for has < want[i] { // some may be on its way
			has = do(doors[:lost], i, order{})
		}
		require.Equal(t, want[i], has)
	}
}
